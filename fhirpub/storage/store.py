"""All that an engine has to be: every group of the store's promises, with a start and a stop."""

from __future__ import annotations

from abc import abstractmethod

from fhirpub.storage.contract import CredentialStore, Resources, StoreAdmin
from fhirpub.storage.webhook_contract import DeliveryQueueStore, Endpoints


class Store(Resources, CredentialStore, Endpoints, DeliveryQueueStore, StoreAdmin):
    """All groups, with a beginning and an end."""

    @abstractmethod
    async def start(self) -> None:
        """Open the store, make what is missing (files, tables, indexes), check what is there.

        Raises ConfigurationError when the store is there but cannot be used, such as one
        written by a newer release.
        """

    @abstractmethod
    async def check(self) -> None:
        """Return if the store can be read and written now, else raise StoreUnavailable."""

    @abstractmethod
    async def stop(self) -> None:
        """Finish the writes that were handed in and close; after it every call is refused."""
