"""What a store in a file finds: pages of all versions, values of searches, documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.id_search import FEW
from fhirpub.storage.sqlite import blobs
from fhirpub.storage.sqlite import store as module
from fhirpub.storage.sqlite.rows import PIECE_BYTES
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.queries import find_ids, has, token, wanting
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import FOREVER, LAB, OTHER, a_version, new_id, successor

CODE_A, CODE_B = b'[["code","a",""]]', b'[["code","b",""]]'


async def test_a_scan_goes_through_the_versions_of_all_tenants_by_their_keys(
    store: SqliteStore,
) -> None:
    first, other = (a_version(id=id_) for id_ in sorted([new_id(), new_id()]))
    second = successor(first)
    for tenant, version in ((OTHER, other), (LAB, first), (LAB, second)):
        await store.add(tenant, version)

    assert await store.scan() == [(LAB, first), (LAB, second), (OTHER, other)]
    assert await store.scan(limit=2) == [(LAB, first), (LAB, second)]
    assert await store.scan(after=(first.id, 1), limit=1) == [(LAB, second)]
    assert await store.scan(after=(other.id, 1)) == []


async def test_a_version_is_scanned_with_its_members_and_documents(store: SqliteStore) -> None:
    blob = a_blob()
    version = a_version(
        members=(a_result(), a_result()), documents=(blob.sha256,), attached=(blob,)
    )
    await store.add(LAB, version)

    assert await store.scan() == [(LAB, version)]


async def test_a_large_version_is_read_by_its_number_with_all_of_its_content(
    store: SqliteStore,
) -> None:
    version = a_version(body=b"b" * PIECE_BYTES, response=b"r" * 1_000, parts=b"p" * 100)
    await store.add(LAB, version)

    assert await store.version(LAB, version.id, 1) == version
    assert await store.latest(LAB, version.id) == version
    assert [*await store.history(LAB, version.id)] == [version]
    assert await store.latest_public(LAB, version.id) == version.without_internal_fields()


@pytest.mark.parametrize("number", [2, 2**63 - 1, 2**63, 10**30])
async def test_a_number_that_no_version_has_finds_none_however_large(
    store: SqliteStore, number: int
) -> None:
    version = a_version()
    await store.add(LAB, version)

    assert await store.version(LAB, version.id, number) is None
    assert [*await store.history(LAB, version.id, below=number)] == [version]


async def test_a_large_version_is_scanned_with_its_content_and_that_of_its_members(
    store: SqliteStore,
) -> None:
    member = a_result(body=b"m" * (PIECE_BYTES + 1))
    version = a_version(body=b"b" * PIECE_BYTES, response=b"r" * 100, members=(member,))
    await store.add(LAB, version)

    assert await store.scan() == [(LAB, version)]


async def test_a_history_below_the_first_version_is_empty(store: SqliteStore) -> None:
    version = a_version()
    await store.add(LAB, version)

    assert [*await store.history(LAB, version.id, below=2)] == [version]
    assert [*await store.history(LAB, version.id, below=1)] == []
    assert [*await store.history(LAB, version.id, below=0)] == []


async def test_a_page_of_a_scan_ends_with_the_version_that_fills_it(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [a_version(id=id_, body=b"x" * 500) for id_ in sorted(new_id() for _ in range(3))]
    for version in versions:
        await store.add(LAB, version)

    for size, count in ((1, 1), (versions[0].size, 1), (versions[0].size + 1, 2)):
        monkeypatch.setattr(module, "MAX_PAGE_BYTES", size)
        assert len(await store.scan()) == count


async def test_a_page_of_a_scan_is_filled_by_the_members_of_its_versions_as_well(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for id_ in sorted(new_id() for _ in range(3)):
        await store.add(LAB, a_version(id=id_, members=(a_result(body=b"x" * 1_000),)))

    monkeypatch.setattr(module, "MAX_PAGE_BYTES", 1_000)

    assert len(await store.scan()) == 1


async def test_a_sweep_goes_on_until_all_is_deleted_and_counts_the_documents_of_each_step(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "_SWEEP_BATCH_SIZE", 2)
    large = a_blob(bytes(2 * PIECE_BYTES + 1))
    for blob in (large, *(a_blob() for _ in range(4))):
        await store.add(LAB, a_version(), [blob])

    assert await store.sweep_blobs(LAB, before=FOREVER) == 5
    for table in ("blob", "blob_bytes", "blob_piece"):
        assert await store._fetch_in_thread(f"SELECT count(*) FROM {table}", ()) == [(0,)]


async def test_other_search_values_lead_to_a_version_once_they_are_replaced(
    store: SqliteStore,
) -> None:
    version, kept = a_version(search=CODE_A), a_version(search=CODE_A)
    await store.add(LAB, version)
    await store.add(LAB, kept)

    await store.replace_search(LAB, version.id, 1, CODE_B)

    assert await find_ids(store, wanting(has("code", token("a")))) == {kept.id}
    assert await find_ids(store, wanting(has("code", token("b")))) == {version.id}
    assert await store.latest(LAB, version.id) == replace(version, search=CODE_B)
    ((count,),) = await store._fetch_in_thread("SELECT count(*) FROM search_value", ())
    assert count == 2


@pytest.mark.parametrize("count", [FEW, FEW + 1])
async def test_documents_are_found_however_many_are_asked_for(
    store: SqliteStore, count: int
) -> None:
    loose, attached = a_blob(), a_blob()
    await store.add(LAB, a_version(documents=(loose.sha256,)), [loose])
    await store.add(LAB, a_version(documents=(attached.sha256,), attached=(attached,)))
    others = [f"{number:064x}" for number in range(count - 2)]
    names = [loose.sha256, attached.sha256, *others]

    found = await store.blobs(LAB, names)

    assert {*found} == {loose.sha256, attached.sha256}
    assert [found[one.sha256].data for one in (loose, attached)] == [loose.data, attached.data]
    assert await store.blobs(OTHER, names) == {}


async def test_each_large_document_of_a_version_is_sent_in_pieces(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = [a_blob(bytes([number]) * (PIECE_BYTES + 1)) for number in range(2)]
    written, write = [], store._open.write

    def noted(item: Any, **options: Any) -> Any:
        written.append(type(item).__name__)
        return write(item, **options)

    monkeypatch.setattr(store._open, "write", noted)
    await store.add(LAB, a_version(), large)

    assert written == ["Piece"] * 4 + ["Addition"]


async def test_a_search_may_take_as_long_as_it_asks_for(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    async def spy(tenant: str, _work: Any, **options: Any) -> None:
        asked.append((tenant, options))

    monkeypatch.setattr(store._open, "read_for", spy)

    await store.search(LAB, wanting(max_seconds=0.25))

    assert asked == [(LAB, {"max_seconds": 0.25})]


async def test_a_file_is_closed_when_its_store_stops(store: SqliteStore) -> None:
    journal = store._path.with_name(f"{store._path.name}-wal")
    assert journal.exists()

    await store.stop()

    assert not journal.exists()
    with pytest.raises(StoreUnavailable):
        await store.latest(LAB, new_id())
