"""What erases resources of a store, and what is read of it afterwards."""

from __future__ import annotations

from typing import Any

from fhirpub.interactions.erasure.erase import Erased, Eraser
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from tests.unit.interactions.erasure.registered import NOW, TENANT, TYPE, context_of


def eraser(store: Store, **changes: Any) -> Eraser:
    usual: dict[str, Any] = {"strip": lambda body: body, "context": context_of(store)}
    return Eraser(**{"tenant": TENANT, "store": store, **usual, **changes})


def order(id_: str, **changes: Any) -> Erasure:
    given: dict[str, Any] = {"tenant": TENANT.id, "operator": "eve", "reason": "case 7", **changes}
    return Erasure(**{"type": TYPE, "id": id_, "ordered": NOW, **given})


async def begun(store: SqliteStore, id_: str, **changes: Any) -> Erased:
    """Erase without the deliveries, which would wait for a relay."""
    return (await eraser(store).begin(order(id_, **changes))).erased


async def orders(store: SqliteStore) -> list[Erasure]:
    return [*await store.erasures(tenant=TENANT.id)]


async def latest(store: SqliteStore, id_: str) -> Version:
    found = await store.latest(TENANT.id, id_)
    assert found is not None
    return found
