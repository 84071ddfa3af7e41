"""Records become blocks in the order of their times, bound to all before them."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from fhirpub.audit.chain import (
    ENTRY_SPAN_MS,
    beginning,
    first_wrong,
    hashes_after,
    next_blocks,
    records_of,
    time_of,
)
from fhirpub.storage.audit_contract import (
    HASH_BYTES,
    MAX_BLOCK_SPAN_MS,
    AuditBlock,
    AuditedVersion,
    UnsealedAudit,
    UnsealedEntry,
)


def lines(*times: int) -> bytes:
    return b"".join(b'{"at":%d,"action":"read","status":200}\n' % time for time in times)


def entry(records: bytes, tenant: str = "t", source: int = 0) -> UnsealedEntry:
    return UnsealedEntry(tenant=tenant, records=records, version=None, source=source)


def unsealed(*entries: UnsealedEntry, number: int = 0, end: bytes = b"") -> UnsealedAudit:
    ends = {each.tenant: (number, end) for each in entries}
    return UnsealedAudit(entries=entries, ends=ends, place=None, is_complete=True)


def wrong_place(block: AuditBlock, previous: bytes) -> int | None:
    return first_wrong(records_of(block), block.hashes, previous)


def test_the_first_hash_follows_from_the_tenant() -> None:
    (sealed,) = next_blocks(unsealed(entry(lines(5))))

    (record,) = records_of(sealed.block)
    assert sealed.block.number == 1
    assert sealed.block.end == hashlib.sha256(beginning("t") + record).digest()


def test_a_block_follows_from_the_end_of_the_last_one() -> None:
    end = b"x" * HASH_BYTES
    (sealed,) = next_blocks(unsealed(entry(lines(5)), number=7, end=end))

    assert sealed.block.number == 8
    assert wrong_place(sealed.block, end) is None
    assert wrong_place(sealed.block, beginning("t")) == 0


def test_the_record_of_a_write_gets_the_time_and_the_name_of_its_version() -> None:
    written = AuditedVersion(type="DiagnosticReport", id="r", version=2, updated=9)
    audit = b'{"action":"update","status":200}'
    (sealed,) = next_blocks(
        unsealed(UnsealedEntry(tenant="t", records=audit, version=written, source=1))
    )

    (record,) = records_of(sealed.block)
    assert record == (
        b'{"at":9,"action":"update","status":200,"what":["DiagnosticReport/r/_history/2"]}'
    )


def test_records_are_in_the_order_of_their_times() -> None:
    (sealed,) = next_blocks(unsealed(entry(lines(5, 9)), entry(lines(7))))

    assert [time_of(record) for record in records_of(sealed.block)] == [5, 7, 9]
    assert (sealed.block.first, sealed.block.last) == (5, 9)


def test_tenants_have_blocks_of_their_own() -> None:
    blocks = next_blocks(unsealed(entry(lines(5)), entry(lines(5), "other")))

    assert [sealed.block.tenant for sealed in blocks] == ["t", "other"]
    assert blocks[0].block.end != blocks[1].block.end
    assert blocks[0].keys.isdisjoint(blocks[1].keys)


@given(st.lists(st.integers(1, 10 * ENTRY_SPAN_MS), min_size=1, max_size=40))
def test_every_entry_is_in_one_block_and_no_block_spans_a_long_time(times: list[int]) -> None:
    entries = [entry(lines(time), source=place) for place, time in enumerate(times)]

    blocks = next_blocks(unsealed(*entries))

    sources = [each.source for sealed in blocks for each in sealed.entries]
    assert sorted(map(str, sources)) == sorted(map(str, range(len(times))))
    end = beginning("t")
    for number, sealed in enumerate(blocks, 1):
        assert sealed.block.number == number
        assert sealed.block.last - sealed.block.first <= MAX_BLOCK_SPAN_MS
        assert wrong_place(sealed.block, end) is None
        end = sealed.block.end


def test_each_hash_depends_on_all_records_before() -> None:
    first = hashes_after(b"", [b"a", b"b", b"c"])
    second = hashes_after(b"", [b"x", b"b", b"c"])

    assert not {*first} & {*second}


def record(action: str, status: int, request: str) -> bytes:
    return f'{{"at":5,"action":"{action}","status":{status},"request":"{request}"}}\n'.encode()


def test_an_announcement_stands_before_its_outcome_of_the_same_millisecond() -> None:
    search_and_outcome = lines(4) + record("endpoint.delete", 204, "r-1")
    announcement = record("endpoint.delete", 102, "r-1")

    (sealed,) = next_blocks(unsealed(entry(search_and_outcome), entry(announcement, source=1)))

    assert records_of(sealed.block)[1:] == [
        announcement.strip(),
        record("endpoint.delete", 204, "r-1").strip(),
    ]


def test_another_outcome_stays_before_an_announcement_of_the_same_millisecond() -> None:
    written = [
        record("client.add", 102, "r-1"),
        record("client.add", 200, "r-1"),
        record("client.invite", 102, "r-1"),
        record("client.invite", 200, "r-1"),
        record("client.invite", 102, "r-2"),
    ]

    (sealed,) = next_blocks(unsealed(*(entry(each) for each in written)))

    assert records_of(sealed.block) == [each.strip() for each in written]
