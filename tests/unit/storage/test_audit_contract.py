"""What a block of the audit trail knows of itself, and the limits that engines share."""

from __future__ import annotations

from fhirpub.storage.audit_contract import (
    HASH_BYTES,
    MAX_BLOCK_SPAN_MS,
    MAX_UNSEALED_BYTES,
    AuditBlock,
    AuditQuery,
    SealedBlock,
)

BLOCK = AuditBlock(
    tenant="t", number=4, first=10, last=20, records=b"{}\n{}\n", hashes=b"a" * 32 + b"b" * 32
)


def test_the_end_of_a_block_is_the_hash_after_its_last_record() -> None:
    assert BLOCK.end == b"b" * 32


def test_the_place_of_a_block_is_its_first_time_then_its_number() -> None:
    assert BLOCK.place == (10, 4)


def test_a_hash_is_that_of_sha_256() -> None:
    assert HASH_BYTES == 32


def test_a_block_spans_an_hour_at_most() -> None:
    assert MAX_BLOCK_SPAN_MS == 60 * 60 * 1000


def test_a_quarter_of_a_mebibyte_is_sealed_together() -> None:
    assert MAX_UNSEALED_BYTES == 2**18


def test_a_copy_of_a_block_holds_no_entries() -> None:
    assert SealedBlock(block=BLOCK, keys=frozenset({1})).entries == ()


def test_a_query_of_blocks_restricts_nothing_until_it_names_something() -> None:
    query = AuditQuery()

    assert (query.keys, query.since, query.until, query.before) == ((), None, None, None)
    assert query.limit == 20
