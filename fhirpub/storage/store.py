"""The interface of an engine: every group of promises, with a start and a stop."""

from __future__ import annotations

from abc import abstractmethod

from fhirpub.storage.audit_contract import AuditStore
from fhirpub.storage.contract import CredentialStore, Resources, StoreAdmin
from fhirpub.storage.erasure.contract import ErasureStore
from fhirpub.storage.quota_contract import QuotaStore
from fhirpub.storage.secret_contract import SecretStore
from fhirpub.storage.webhook_contract import DeliveryQueueStore, Endpoints


class Store(
    Resources,
    CredentialStore,
    SecretStore,
    Endpoints,
    DeliveryQueueStore,
    QuotaStore,
    AuditStore,
    ErasureStore,
    StoreAdmin,
):
    """A store: all groups of methods, with a start, a check and a stop.

    An engine is a subclass of it that keeps the promises of `fhirpub.storage.contract`,
    `fhirpub.storage.secret_contract`, `fhirpub.storage.webhook_contract`,
    `fhirpub.storage.quota_contract`, `fhirpub.storage.audit_contract` and
    `fhirpub.storage.erasure.contract`.

    Attributes:
        upgrades: Whether `start` brings a store of an older release up to date.
    """

    upgrades: bool = True

    @abstractmethod
    async def start(self) -> None:
        """Open the store, create missing files, tables and indexes, and check the others.

        Raises:
            ConfigurationError: The store exists but cannot be used, for example because a newer
                release wrote it.
            UpgradeNeeded: It was written by an older release, and ``upgrades`` is false.
            StoreUnavailable: The store cannot be reached.
        """

    @abstractmethod
    async def check(self) -> None:
        """Check that the store can be read and written now, and by this release.

        Raises:
            StoreUnavailable: It cannot, for example because a newer release has upgraded it.
        """

    @abstractmethod
    async def stop(self) -> None:
        """Finish the writes that were handed in, and close the store.

        Every later call raises StoreUnavailable, except `stop` itself, which does nothing.
        """

    def for_other_loop(self) -> Store | None:
        """Return a store of the same data for an event loop in another thread of the process.

        It is started and stopped there, after the start and before the stop of this one. Webhooks
        then share the process's time fairly with requests (ADR 22).

        Returns:
            The store, not started; None if the engine has none. Webhooks then run on the event
            loop of the requests.
        """
        return None
