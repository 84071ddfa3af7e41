"""The promises of a store about erasure: content that goes, the orders, and what is on hold.

Every method may raise StoreUnavailable; every write is safe to repeat. An order is recorded before
its first change and finished after its last one: what was interrupted is found by it, and goes on.
`fhirpub.testing.StoreContract` holds a test for each promise below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass

from fhirpub.storage.records import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """An order to erase one resource.

    Attributes:
        tenant: The tenant of the resource.
        type: The FHIR type of the resource.
        id: The id of the resource.
        ordered: When it was ordered, in milliseconds.
        operator: The person that ordered it.
        reason: Why.
        allows_reuse: Whether the identifier may be registered again.
        version: The number of the tombstone; 0 as long as there is none.
        finished: When nothing of the content was left, in milliseconds; None before.
    """

    tenant: str
    type: str
    id: str
    ordered: int
    operator: str
    reason: str
    allows_reuse: bool = False
    version: int = 0
    finished: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A legal hold: the resource, or everything of the Patient, must not be erased.

    Attributes:
        tenant: The tenant of the resource.
        type: The FHIR type of the resource.
        id: The id of the resource.
        since: When it was put on hold, in milliseconds.
        operator: The person that put it on hold.
        reason: Why.
    """

    tenant: str
    type: str
    id: str
    since: int
    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class ErasedStep:
    """What one step of an erasure has erased: versions with their members, and their bytes."""

    versions: int = 0
    members: int = 0
    size: int = 0

    def __bool__(self) -> bool:
        """Return whether there was anything to erase."""
        return bool(self.versions or self.members)


@dataclass(frozen=True, slots=True)
class ErasedDeliveries:
    """What was erased of deliveries.

    Attributes:
        changed: The number of deliveries that had another body, or a response, when they were
            read. An attempt that begins between the read and the change has the old body, and a
            response to it may follow: nothing is left once a call changes nothing.
        leased: Until when, in milliseconds, a process may be sending one of them; 0 for never.
    """

    changed: int = 0
    leased: int = 0


class ErasureStore(ABC):
    """Erasure. Every method may raise StoreUnavailable."""

    @abstractmethod
    async def put_erasure(self, erasure: Erasure) -> None:
        """Record an order, durably; it replaces an earlier one for the same resource."""

    @abstractmethod
    async def erasures(
        self,
        *,
        tenant: str | None = None,
        unfinished: bool = False,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> Sequence[Erasure]:
        """Return orders in the order of (tenant, id).

        Args:
            tenant: The tenant whose orders are returned; None returns those of all.
            unfinished: Return only orders that are not finished.
            after: Return only orders behind this tenant and id.
            limit: The maximum number of orders.

        Returns:
            The orders; empty only if there are no more.
        """

    @abstractmethod
    async def erase_versions(self, tenant: str, tombstone: Version) -> ErasedStep:
        """Erase the content of some versions below a tombstone, in one short commit.

        Each keeps its key, as `tombstones.husk_of` returns it, and an audit record that is not
        sealed yet; its members do so too. Version 1 is erased first. Nothing else finds them
        afterwards: not the values that they were found by, nor the documents that they had. The
        bytes of erased versions and documents no longer count for the tenant.

        Args:
            tenant: The tenant of the resource.
            tombstone: The tombstone, which is stored.

        Returns:
            What was erased. Empty only if nothing is left: the call is to be repeated until then.
        """

    @abstractmethod
    async def erase_documents(self, tenant: str, names: Collection[str]) -> int:
        """Delete the documents of erased versions that no other version of the tenant refers to.

        A document that a concurrent `add` brings is not lost. An engine that cannot exclude that
        otherwise leaves documents which were last added within the last hour to `sweep_blobs`.

        Args:
            tenant: The tenant of the documents.
            names: The SHA-256 names of the documents, in lower-case hex.

        Returns:
            The number of documents that are gone.
        """

    @abstractmethod
    async def shared_documents(
        self, tenant: str, names: Collection[str], *, besides: Collection[str]
    ) -> frozenset[str]:
        """Return which documents versions of other resources refer to.

        Args:
            tenant: The tenant of the documents.
            names: The SHA-256 names of the documents, in lower-case hex.
            besides: The ids of the resources whose versions do not count.
        """

    @abstractmethod
    async def erase_deliveries(
        self, tenant: str, events: str, change: Callable[[bytes], bytes]
    ) -> ErasedDeliveries:
        """Replace the bodies of deliveries, and forget what receivers responded.

        The call is to be repeated until it changes nothing and finds no delivery leased: a
        response to the old body may be stored as long as an attempt is in flight.

        Args:
            tenant: The tenant of the endpoints.
            events: What the ids of the events begin with.
            change: Returns a body without the content; called again, it returns the same.

        Returns:
            What was erased.
        """

    @abstractmethod
    async def put_hold(self, hold: Hold) -> None:
        """Record a hold, durably; it replaces an earlier one for the same resource."""

    @abstractmethod
    async def delete_hold(self, tenant: str, resource: tuple[str, str]) -> bool:
        """Release a hold on a resource, named by type and id; return whether there was one."""

    @abstractmethod
    async def holds(self, tenant: str) -> Sequence[Hold]:
        """Return all holds of a tenant, oldest first."""

    async def forget_erased(self) -> bool:
        """Remove what was erased from files beside those of the store, such as a journal.

        Returns:
            Whether nothing is left there as far as the engine knows. False means that another
            process holds it open: a later call may succeed.
        """
        return True


_PAGE = 100


async def erasures_of(store: ErasureStore) -> AsyncIterator[Erasure]:
    """Yield every order of a store, in the order of (tenant, id).

    Args:
        store: The store, which is read a page at a time.

    Raises:
        StoreUnavailable: The store cannot be read.
    """
    after = ("", "")
    while page := await store.erasures(after=after, limit=_PAGE):
        for erasure in page:
            yield erasure
        after = (page[-1].tenant, page[-1].id)
