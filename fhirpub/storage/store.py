"""The interface of an engine: every group of promises, with a start and a stop."""

from __future__ import annotations

from abc import abstractmethod

from fhirpub.storage.contract import CredentialStore, Resources, StoreAdmin
from fhirpub.storage.webhook_contract import DeliveryQueueStore, Endpoints


class Store(Resources, CredentialStore, Endpoints, DeliveryQueueStore, StoreAdmin):
    """A store: all groups of methods, with a start, a check and a stop.

    An engine is a subclass of it that keeps the promises of `fhirpub.storage.contract` and
    `fhirpub.storage.webhook_contract`.
    """

    @abstractmethod
    async def start(self) -> None:
        """Open the store, create missing files, tables and indexes, and check the others.

        Raises:
            ConfigurationError: The store exists but cannot be used, for example because a newer
                release wrote it.
            StoreUnavailable: The store cannot be reached.
        """

    @abstractmethod
    async def check(self) -> None:
        """Check that the store can be read and written now.

        Raises:
            StoreUnavailable: It cannot.
        """

    @abstractmethod
    async def stop(self) -> None:
        """Finish the writes that were handed in, and close the store.

        Every later call raises StoreUnavailable, except `stop` itself, which does nothing.
        """
