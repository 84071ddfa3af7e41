"""What the parts of the audit trail in MongoDB make of what they are given, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.storage.audit_contract import (
    HASH_BYTES,
    MAX_BLOCK_SPAN_MS,
    AuditBlock,
    AuditedVersion,
    AuditQuery,
    UnsealedEntry,
)
from fhirpub.storage.mongodb.audit import (
    _block_of,
    _end_of,
    _filter_of,
    _new,
    _pending_entry,
    _record_size,
    _records_size,
    _version_entry,
)

_VERSION = {
    "_id": 1,
    "tenant": "t",
    "audit": b"{}",
    "type": "Patient",
    "id": "a",
    "version": 2,
    "updated": 5,
}


@pytest.mark.parametrize(
    ("tenant", "number", "is_new"),
    [("known", 1, True), ("known", 2, False), ("other", 1, False), ("other", 2, False)],
)
def test_what_is_new_is_of_a_known_chain_and_in_no_block(
    tenant: str, number: int, *, is_new: bool
) -> None:
    one: dict[str, Any] = {"tenant": tenant, "_id": number}

    assert _new([one], {"known"}, {2}) == ([one] if is_new else [])  # type: ignore[arg-type]


def _wanted(**asked: Any) -> dict[str, Any]:
    found = _filter_of("t", AuditQuery(**asked))
    assert found["tenant"] == "t"
    return {name: item for name, item in found.items() if name != "tenant"}


def test_without_a_condition_all_blocks_since_the_first_moment_are_wanted() -> None:
    assert _wanted() == {"first": {"$gte": -MAX_BLOCK_SPAN_MS}, "last": {"$gte": 0}}


def test_a_block_may_begin_before_a_moment_by_its_longest_span() -> None:
    since = 7 * MAX_BLOCK_SPAN_MS

    assert _wanted(since=since) == {
        "first": {"$gte": since - MAX_BLOCK_SPAN_MS},
        "last": {"$gte": since},
    }


@pytest.mark.parametrize("until", [0, 5])
def test_a_block_begins_at_the_last_moment_at_the_latest(until: int) -> None:
    assert _wanted(until=until)["first"]["$lte"] == until


@pytest.mark.parametrize(
    ("until", "latest"), [(None, 9), (8, 8), (9, 9), (10, 9)], ids=["none", "8", "9", "10"]
)
def test_what_is_before_a_place_begins_no_later(until: int | None, latest: int) -> None:
    found = _wanted(before=(9, 4), until=until)

    assert found["first"]["$lte"] == latest
    assert found["$or"] == [{"first": {"$lt": 9}}, {"first": 9, "number": {"$lt": 4}}]


def test_a_block_has_all_keys_that_are_asked_for() -> None:
    assert _wanted(keys=(3, -4))["keys"] == {"$all": [3, -4]}
    assert "keys" not in _wanted()


def test_the_end_of_a_chain_is_the_last_hash_of_its_last_block() -> None:
    hashes = b"a" * HASH_BYTES + b"b" * HASH_BYTES

    assert _end_of({"number": 4, "hashes": hashes}) == (4, b"b" * HASH_BYTES)
    assert _end_of(None) == (0, b"")


@pytest.mark.parametrize("stored", ["Patient", "!Patient"])
def test_an_entry_of_a_write_names_the_type_also_of_what_was_erased(stored: str) -> None:
    assert _version_entry({**_VERSION, "type": stored}) == UnsealedEntry(
        tenant="t",
        records=b"{}",
        version=AuditedVersion(type="Patient", id="a", version=2, updated=5),
        source=1,
    )


def test_an_entry_of_what_was_handed_in_names_no_write() -> None:
    found = _pending_entry({"_id": 3, "tenant": "t", "records": b"{}\n"})

    assert found == UnsealedEntry(tenant="t", records=b"{}\n", version=None, source=3)


def test_the_size_of_what_waits_is_that_of_its_record() -> None:
    assert _record_size({"audit": b"12"}) == 2
    assert _record_size({"records": b"123"}) == 3


def test_a_block_is_read_with_all_of_its_fields() -> None:
    fields = {"tenant": "t", "number": 2, "first": 3, "last": 4, "records": b"56", "hashes": b"7"}

    block = _block_of({**fields, "_id": "t/2", "keys": [], "sources": []})

    assert block == AuditBlock(**fields)  # type: ignore[arg-type]
    assert _records_size(block) == 2
