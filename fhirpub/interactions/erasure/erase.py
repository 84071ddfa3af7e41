"""Erase: a tombstone is committed, then all below it is removed (ADR 36).

The order is recorded first. Of what is interrupted, `resume` finds the order and goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from fhirpub.errors import StoreUnavailable
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.erasure.extent import Extent, NotErasable, extent_of
from fhirpub.interactions.erasure.holds import check_holds
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.storage.erasure.tombstones import Tombstone, husk_of, is_erased, tombstone_of
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant

_RACES = 100
_PATIENCE_SECONDS, _PAUSE_SECONDS = 10.0, 0.05
_RELAY_LEASE, _LEASE_MS = "relay", 5_000
_ACTION = "erased"

Strip = Callable[[bytes], bytes]
"""Returns the body of a delivery without details of its resource."""

_log = logger()


@dataclass(slots=True, kw_only=True)
class Erased:
    """What was erased of a resource, or is to be.

    Attributes:
        type: The FHIR type of the resource.
        id: The id of the resource.
        version: The number of the tombstone; 0 as long as there is none.
        versions: The number of versions.
        members: The number of members, such as results.
        documents: The number of documents that are deleted, or are to be.
        documents_kept: The number of documents that stay, since other resources refer to them, or
            this one does, which was registered again.
        documents_later: The number of documents that the next sweep deletes.
        deliveries: The number of deliveries whose content was removed.
        bytes: The size of what was erased, without documents that have records of their own.
        is_complete: Whether nothing is left as far as the store knows.
    """

    type: str
    id: str
    version: int = 0
    versions: int = 0
    members: int = 0
    documents: int = 0
    documents_kept: int = 0
    documents_later: int = 0
    deliveries: int = 0
    bytes: int = 0
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class Begun:
    """An order of which the resource is erased, to be finished; and what was erased."""

    order: Erasure
    erased: Erased


@dataclass(frozen=True, slots=True, kw_only=True)
class Eraser:
    """Erases resources of one tenant; ``on_progress`` is called after each step."""

    tenant: Tenant
    store: Store
    context: Context
    strip: Strip
    on_progress: Callable[[Erased], None] = lambda _erased: None

    async def plan(self, resource_id: str, *, besides: Iterable[str] = ()) -> Erased:
        """Return what :meth:`erase` would erase. Raises NotErasable.

        ``besides`` are the ids of what is to be erased with it: documents are not kept for them.
        """
        extent = await extent_of(resource_id, tenant=self.tenant, store=self.store)
        await self._check_holds(extent)
        kept = await self.store.shared_documents(
            self.tenant.id, extent.documents, besides=[resource_id, *besides]
        )
        return Erased(
            type=extent.type,
            id=extent.id,
            version=extent.newest.version if is_erased(extent.newest) else 0,
            versions=extent.versions,
            members=len(extent.members) if extent.versions else 0,
            documents=len(extent.documents) - len(kept),
            documents_kept=len(kept),
            bytes=extent.size,
        )

    async def erase(self, order: Erasure) -> Erased:
        """Erase a resource; what is erased already is completed.

        Raises what :meth:`begin` and :meth:`finish` raise.
        """
        begun = await self.begin(order)
        await self.finish([begun])
        return begun.erased

    async def begin(self, order: Erasure, *, is_repeated: bool = False) -> Begun:
        """Erase all versions and documents of a resource; :meth:`finish` does the rest.

        Raises NotErasable if there is no such resource or it is on hold, StoreUnavailable: then
        the order is recorded, and to be resumed.
        """
        extent = await extent_of(order.id, tenant=self.tenant, store=self.store)
        order = replace(order, type=extent.type)
        if not is_erased(extent.newest):
            if extent.tombstones and not is_repeated:  # whatever the clocks of others say
                order = replace(order, ordered=max(order.ordered, extent.tombstones[-1].at + 1))
            if not is_repeated:
                await self._check_holds(extent)
            await self.store.put_erasure(order)
        return await self.resume(order, is_repeated=is_repeated)

    async def resume(self, order: Erasure, *, is_repeated: bool = False) -> Begun:
        """Go on with an order that was interrupted. Raises what :meth:`begin` raises.

        An order that is refused, since the resource was put on hold, is not resumed again.
        """
        try:
            extent, tombstone = await self._commit(order, is_repeated=is_repeated)
        except NotErasable:
            await self.store.put_erasure(replace(order, finished=self.context.clock()))
            raise
        said = tombstone_of(tombstone)  # another order may have been first
        order = replace(
            order,
            version=said.version,
            ordered=min(order.ordered, said.at),
            operator=said.operator,
            reason=said.reason,
            allows_reuse=said.allows_reuse,
        )
        await self.store.put_erasure(order)
        erased = Erased(type=order.type, id=order.id, version=tombstone.version)
        while step := await self.store.erase_versions(self.tenant.id, tombstone):
            erased.versions += step.versions
            erased.members += step.members
            erased.bytes += step.size
            self.on_progress(erased)
        await self._erase_documents(extent, erased)
        _log.warning(
            "resource erased",
            tenant=self.tenant.id,
            resource=f"{order.type}/{order.id}",
            operator=order.operator,
            versions=erased.versions,
        )
        return Begun(order, erased)

    async def forbid(self, order: Erasure) -> Begun:
        """Erase a resource that the store may not have, as one that was erased elsewhere.

        Its identifier cannot be registered any more, or above the tombstone: the order decides.
        No hold forbids it: when the order was carried out there was none.
        """
        if await self.store.latest(self.tenant.id, order.id) is None:
            tombstone = _tombstone_of(order, number=1, at=order.ordered)
            nothing = Version(
                id=order.id,
                version=1,
                type=order.type,
                system="",
                value="",
                status="",
                created=order.ordered,
                updated=order.ordered,
                body=b"",
            )
            await self.store.put_erasure(order)
            await self.store.add(self.tenant.id, husk_of(nothing, tombstone))
        return await self.begin(order, is_repeated=True)

    async def finish(self, begun: Sequence[Begun]) -> None:
        """Remove content from deliveries and journals, and record that orders are finished.

        Of several orders together, since it may have to wait for the relay. An order of which
        something is on its way stays open, to be resumed. Raises StoreUnavailable.
        """
        if not begun:
            return
        is_published = await self._wait_for_relay([one.order for one in begun])
        is_sent = [await self._erase_deliveries(one) for one in begun]
        is_gone = await self.store.forget_erased()
        for one, sent in zip(begun, is_sent, strict=True):
            if is_published and sent and is_gone:
                one.erased.is_complete = not one.erased.documents_later
                await self.store.put_erasure(replace(one.order, finished=self.context.clock()))

    async def _check_holds(self, extent: Extent) -> None:
        await check_holds(extent, tenant=self.tenant, store=self.store)

    async def _commit(self, order: Erasure, *, is_repeated: bool) -> tuple[Extent, Version]:
        """Add the tombstone of an order unless it is there; return what was below, and it."""
        for _race in range(_RACES):
            extent = await extent_of(order.id, tenant=self.tenant, store=self.store)
            number = order.version or _number_of(order, extent)
            if number:
                found = await self.store.version(self.tenant.id, order.id, number)
                if found is None:
                    raise NotErasable(f"{order.type}/{order.id} has no version {number}")
                return extent, found
            if not is_repeated:
                await self._check_holds(extent)
            tombstone = self._tombstone(order, extent)
            if await self.store.add(self.tenant.id, tombstone):
                self.context.added()
                return extent, replace(tombstone, members=())
        raise StoreUnavailable(f"lost {_RACES} races for the next version")

    def _tombstone(self, order: Erasure, extent: Extent) -> Version:
        newest = extent.newest
        number = newest.version + 1
        at = max(self.context.clock(), newest.updated + 1)
        tombstone = _tombstone_of(order, number=number, at=at)
        # Above every version of a member, each of which came with another version of this.
        one = husk_of(replace(newest, version=number, updated=at), tombstone)
        members = [
            husk_of(replace(each, version=number, updated=at), tombstone.of_member())
            for each in extent.members.values()
        ]
        events = [
            {"id": f"{order.id}.{number}.{place}", "type": f"{subject}.{_ACTION}", "data": {}}
            for place, subject in enumerate(sorted(extent.subjects), start=1)
        ]
        return replace(one, members=tuple(members), events=dumps(events), audit=b"")

    async def _erase_documents(self, extent: Extent, erased: Erased) -> None:
        names, tenant = extent.documents, self.tenant.id
        erased.documents = await self.store.erase_documents(tenant, names)
        # Of this resource, too: versions above its tombstone may refer to the same documents.
        kept = await self.store.shared_documents(tenant, names, besides=())
        erased.documents_kept = len(kept)
        erased.documents_later = max(0, len(names) - len(kept) - erased.documents)

    async def _erase_deliveries(self, begun: Begun) -> bool:
        """Remove content from deliveries, also what receivers respond to those on their way.

        Returns whether none of them is on its way any more: the last look has to find no content,
        since an attempt that began after a look has sent what the look then removed.
        """
        events = f"evt_{begun.order.id.replace('-', '')}_"
        until = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        while True:
            erased = await self.store.erase_deliveries(self.tenant.id, events, self.strip)
            begun.erased.deliveries += erased.changed
            is_sent = not erased.changed and erased.leased <= self.context.clock()
            if is_sent or asyncio.get_running_loop().time() > until:
                return is_sent
            if not erased.changed:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _wait_for_relay(self, orders: Sequence[Erasure]) -> bool:
        """Wait until the events of tombstones are published, or no relay works.

        Whatever was below them and was on its way is published by then. Returns whether it is.
        """
        keys = [(order.id, order.version) for order in orders]
        owner = f"erasure of {orders[0].id}"
        until = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        while await self.store.outbox_contains(keys):
            now = self.context.clock()
            lease = await self.store.lease(
                [_RELAY_LEASE], owner=owner, now=now, until=now + _LEASE_MS
            )
            if lease:
                await self.store.release([_RELAY_LEASE], owner=owner)
                return True
            if asyncio.get_running_loop().time() > until:
                return False
            await asyncio.sleep(_PAUSE_SECONDS)
        return True


def _number_of(order: Erasure, extent: Extent) -> int:
    """Return the number of the tombstone of an order, 0 if there is none yet."""
    for tombstone in extent.tombstones:
        if tombstone.at >= order.ordered:
            return tombstone.version
    return extent.newest.version if is_erased(extent.newest) else 0


def _tombstone_of(order: Erasure, *, number: int, at: int) -> Tombstone:
    return Tombstone(
        version=number,
        at=at,
        operator=order.operator,
        reason=order.reason,
        allows_reuse=order.allows_reuse,
    )
