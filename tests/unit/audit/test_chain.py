"""Records become blocks in the order of their times, bound to all before them."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.audit.chain import (
    ENTRY_SPAN_MS,
    MAX_BLOCK_BYTES,
    beginning,
    first_wrong,
    hashes_after,
    next_blocks,
    records_of,
    time_of,
    with_keys,
)
from fhirpub.audit.record import key_of
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


def test_chains_of_two_tenants_begin_with_different_hashes() -> None:
    assert beginning("t") == hashlib.sha256(b"fhirpub audit trail 1\nt").digest()
    assert beginning("") != beginning("t")


def test_each_tenant_goes_on_from_the_end_of_its_own_chain() -> None:
    ends = {"t": (7, b"x" * HASH_BYTES), "other": (0, b"")}
    waiting = UnsealedAudit(
        entries=[entry(lines(5)), entry(lines(5), "other")],
        ends=ends,
        place=None,
        is_complete=True,
    )

    ours, theirs = next_blocks(waiting)

    assert (ours.block.number, theirs.block.number) == (8, 1)
    assert wrong_place(ours.block, b"x" * HASH_BYTES) is None
    assert wrong_place(theirs.block, beginning("other")) is None


def test_nothing_that_waits_makes_no_block() -> None:
    assert next_blocks(unsealed()) == []


def padded(size: int, time: int) -> bytes:
    """Return a line of so many bytes."""
    frame = b'{"at":%d,"query":"%b"}\n'
    return frame % (time, b"x" * (size - len(frame % (time, b""))))


@pytest.mark.parametrize(("size", "blocks"), [(MAX_BLOCK_BYTES - 1, 1), (MAX_BLOCK_BYTES, 2)])
def test_a_block_takes_no_other_entry_once_it_is_large(size: int, blocks: int) -> None:
    sealed = next_blocks(unsealed(entry(padded(size, 5)), entry(lines(6))))

    assert len(sealed) == blocks
    assert [time for one in sealed for time in map(time_of, records_of(one.block))] == [5, 6]


def test_entries_of_two_half_hours_are_sealed_apart() -> None:
    sealed = next_blocks(unsealed(entry(lines(ENTRY_SPAN_MS)), entry(lines(ENTRY_SPAN_MS - 1))))

    assert [one.block.first for one in sealed] == [ENTRY_SPAN_MS - 1, ENTRY_SPAN_MS]


def test_an_entry_stands_where_its_earliest_record_belongs() -> None:
    late_first = entry(lines(ENTRY_SPAN_MS + 5, ENTRY_SPAN_MS - 5))

    (sealed,) = next_blocks(unsealed(late_first, entry(lines(ENTRY_SPAN_MS - 1))))

    assert (sealed.block.first, sealed.block.last) == (ENTRY_SPAN_MS - 5, ENTRY_SPAN_MS + 5)


def test_a_write_stands_among_other_records_by_the_time_of_its_version() -> None:
    written = AuditedVersion(type="DiagnosticReport", id="r", version=1, updated=7)
    write = UnsealedEntry(tenant="t", records=b'{"status":201}', version=written, source=1)

    (sealed,) = next_blocks(unsealed(write, entry(lines(5, 9))))

    assert [time_of(one) for one in records_of(sealed.block)] == [5, 7, 9]
    assert key_of("t", "entity", "DiagnosticReport/r") in sealed.keys


def test_a_block_names_the_entries_that_it_holds() -> None:
    entries = [entry(lines(time), source=time) for time in (9, 5)]

    (sealed,) = next_blocks(unsealed(*entries))

    assert [each.source for each in sealed.entries] == [5, 9]


def test_the_keys_of_a_copy_are_those_of_the_block() -> None:
    access = b'{"at":5,"action":"read","client":"c","what":["A/b"],"patients":["Patient/p"]}\n'
    (sealed,) = next_blocks(unsealed(entry(access)))

    copied = with_keys(sealed.block)

    assert (copied.block, copied.keys, copied.entries) == (sealed.block, sealed.keys, ())
    assert len(copied.keys) == 3


def test_a_hash_without_a_record_is_wrong_behind_the_last_record() -> None:
    (sealed,) = next_blocks(unsealed(entry(lines(5, 6))))
    records, hashes = records_of(sealed.block), sealed.block.hashes

    assert first_wrong(records, hashes, beginning("t")) is None
    assert first_wrong(records, hashes + b"x", beginning("t")) == 2
    assert first_wrong(records, hashes + b"x" * HASH_BYTES, beginning("t")) == 2


def test_a_record_without_a_whole_hash_is_wrong() -> None:
    (sealed,) = next_blocks(unsealed(entry(lines(5, 6))))
    records, hashes = records_of(sealed.block), sealed.block.hashes

    assert first_wrong(records, hashes[:-1], beginning("t")) == 1
    assert first_wrong(records, hashes[:HASH_BYTES], beginning("t")) == 1
    assert first_wrong(records, b"", beginning("t")) == 0


def test_records_of_one_millisecond_without_a_request_stay_in_their_order() -> None:
    first, second = (b'{"at":5,"action":"token","status":%d}' % status for status in (401, 102))

    (sealed,) = next_blocks(unsealed(entry(first + b"\n" + second + b"\n")))

    assert records_of(sealed.block) == [first, second]


def test_outcomes_of_two_requests_stand_behind_their_own_announcements() -> None:
    written = [
        record("erase", 200, "r-1"),
        record("erase", 200, "r-2"),
        record("erase", 102, "r-2"),
        record("erase", 102, "r-1"),
    ]

    (sealed,) = next_blocks(unsealed(*(entry(each) for each in written)))

    expected = [written[3], written[0], written[2], written[1]]
    assert records_of(sealed.block) == [each.strip() for each in expected]


def test_each_block_has_room_for_entries_up_to_its_size() -> None:
    large = [entry(padded(MAX_BLOCK_BYTES, time)) for time in (1, 3)]
    small = [entry(lines(time)) for time in (5, 6)]

    sealed = next_blocks(unsealed(large[0], large[1], *small))

    assert [len(records_of(one.block)) for one in sealed] == [1, 1, 2]
