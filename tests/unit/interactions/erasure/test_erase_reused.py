"""What becomes of an order if the identifier was registered again before it was finished."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import Version
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.testing.samples import LAB
from tests.bodies import register_body
from tests.unit.interactions.erasure.erasers import eraser, order, orders
from tests.unit.interactions.erasure.registered import registered


class Interrupted:
    """A store that cannot be reached once the tombstone is there."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def erase_versions(self, *_arguments: Any) -> None:
        raise StoreUnavailable("away")


@pytest.fixture
async def again(store: SqliteStore) -> Version:
    """What was registered again while its erasure was interrupted, with the same document."""
    first = await registered(store, register_body("R-1"))
    with pytest.raises(StoreUnavailable):
        await eraser(cast("Store", Interrupted(store))).begin(order(first.id, allows_reuse=True))
    again = replace(first, version=3)
    assert await store.add(LAB, again)
    return again


async def test_a_document_that_was_registered_again_is_kept_and_delays_nothing(
    store: SqliteStore, again: Version
) -> None:
    [interrupted] = await orders(store)

    begun = await eraser(store).resume(interrupted)
    await eraser(store).finish([begun])

    erased = begun.erased
    assert (erased.documents, erased.documents_kept, erased.documents_later) == (0, 1, 0)
    assert erased.is_complete
    assert await store.version(LAB, again.id, 3) == replace(again, audit=b"")
    assert (await store.blobs(LAB, again.documents)).keys() == {*again.documents}
