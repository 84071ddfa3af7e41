"""Records whose block was stored, and which were not released then, are not sealed again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.audit.sealing import blocks_of, read_unsealed, seal_all
from fhirpub.testing.store_contract import LAB, Reopen, a_version

WRITE = b'{"action":"register"}'
READ = b'{"action":"read"}\n'


async def stop_before_the_release(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal what waits, as a process does that ends before it has released it."""
    assert isinstance(store, MongoStore)
    unsealed = await read_unsealed(store)

    async def end(_versions: Sequence[object], _pending: Sequence[object]) -> None:
        raise StoreUnavailable("ended")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_release", end)
        with pytest.raises(StoreUnavailable):
            await store.seal_audit(blocks_of(unsealed), unsealed)


async def test_what_a_block_holds_that_was_not_released_is_not_sealed_again(
    store: Store, reopen: Reopen, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.add(LAB, a_version(audit=WRITE))
    await store.add_audit_records({LAB: READ})
    await stop_before_the_release(store, monkeypatch)

    other = await reopen()

    assert await seal_all(other) == []
    (block,) = await other.audit_chain(LAB)
    assert block.records == WRITE + b"\n" + READ


async def test_what_came_after_such_a_block_is_sealed_behind_it(
    store: Store, reopen: Reopen, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.add_audit_records({LAB: READ})
    await stop_before_the_release(store, monkeypatch)
    other = await reopen()
    await other.add(LAB, a_version(audit=WRITE))

    (block,) = await seal_all(other)

    assert (block.number, block.records) == (2, WRITE + b"\n")
    assert await seal_all(store) == []
