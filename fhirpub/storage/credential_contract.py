"""The promises of a store about tenants, clients and signing keys (see `contract.py`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from fhirpub.storage.client_activity_contract import ClientActivity
from fhirpub.storage.records import Client, SigningKey
from fhirpub.tenant import Tenant


class CredentialStore(ClientActivity):
    """Tenants, clients and signing keys. Every method may raise StoreUnavailable."""

    @abstractmethod
    async def put_tenant(self, tenant: Tenant) -> None:
        """Add a tenant, or replace the one with this id."""

    @abstractmethod
    async def add_tenant(self, tenant: Tenant) -> bool:
        """Add a tenant unless there is one with its id.

        Returns:
            Whether it was added. False means that nothing was changed. After StoreUnavailable a
            repeat may return False although the first call succeeded.
        """

    @abstractmethod
    async def change_tenant(
        self, tenant_id: str, *, name: str | None = None, disabled: bool | None = None
    ) -> None:
        """Change the name of a tenant, or whether it is disabled; do nothing for an unknown id.

        Args:
            tenant_id: The id of the tenant.
            name: The new name; None leaves it as it is, also if it changes at the same time.
            disabled: Whether it is disabled from now on; None leaves it as it is.
        """

    @abstractmethod
    async def tenant(self, tenant_id: str) -> Tenant | None:
        """Return a tenant.

        Returns:
            The tenant, disabled or not, or None if the id is unknown.
        """

    @abstractmethod
    async def tenants(self) -> Sequence[Tenant]:
        """Return all tenants.

        Returns:
            The tenants, oldest first, including disabled ones.
        """

    @abstractmethod
    async def put_client(self, client: Client) -> None:
        """Add a client, or replace the one with this id unconditionally.

        Concurrent changes are overwritten; `replace_client` detects them.
        """

    @abstractmethod
    async def add_client(self, client: Client) -> bool:
        """Add a client unless there is one with its id.

        Returns:
            Whether it was added. False means that nothing was changed. After StoreUnavailable a
            repeat may return False although the first call succeeded.
        """

    @abstractmethod
    async def replace_client(self, client: Client, *, over: Client) -> bool:
        """Replace a client if it has not changed since it was read (compare and set).

        Args:
            client: The new record.
            over: The record that is expected to be stored.

        Returns:
            Whether the client was replaced. False means that the stored client does not equal
            ``over``, and that nothing was changed: read the client again. After StoreUnavailable a
            repeat may return False although the first call succeeded.
        """

    @abstractmethod
    async def client(self, client_id: str) -> Client | None:
        """Return a client.

        Returns:
            The client, disabled or not, or None if the id is unknown.
        """

    @abstractmethod
    async def clients(self, *, tenant: str | None = None) -> Sequence[Client]:
        """Return all clients, or those of one tenant.

        Args:
            tenant: The id of the tenant; None returns the clients of all tenants.

        Returns:
            The clients, oldest first, including disabled ones.
        """

    @abstractmethod
    async def put_signing_key(self, key: SigningKey) -> None:
        """Add a signing key, or replace the one with this kid."""

    @abstractmethod
    async def signing_keys(self, environment: str) -> Sequence[SigningKey]:
        """Return the signing keys of an environment.

        Returns:
            The keys, oldest first, including retired ones.
        """

    @abstractmethod
    async def rotate_signing_key(self, new: SigningKey, *, expected: Sequence[str]) -> bool:
        """Add a signing key and retire the current ones of its environment in one atomic step.

        Args:
            new: The key to add. The others are retired at its ``created``.
            expected: The kids of the keys that are expected to be current, in any order.

        Returns:
            Whether the keys were rotated. False means that the current keys are not exactly the
            expected ones, and that nothing was changed. Of concurrent calls one returns True.
            After StoreUnavailable read the keys: a repeat returns False although the first call
            succeeded.
        """
