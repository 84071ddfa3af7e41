"""The hash chain of a tenant: each record is bound to all before it.

The hash after a record is SHA-256 over the hash before it and the record. Before the first record
it is a hash of the tenant's id, so that records of one tenant do not fit into the chain of
another. To change, remove, insert or move a record means to compute all later hashes again, and
the next checkpoint, which is signed, shows it (ADR 35).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

import orjson

from fhirpub.audit.record import BEGUN, Members, complete, keys_of, name_of
from fhirpub.storage.audit_contract import (
    HASH_BYTES,
    MAX_BLOCK_SPAN_MS,
    AuditBlock,
    SealedBlock,
    UnsealedAudit,
    UnsealedEntry,
)

_BEGINNING = b"fhirpub audit trail 1\n"
_AT = b'{"at":'
MAX_BLOCK_BYTES = 1024 * 1024
"""The size in bytes at which a block takes no other entry."""
_Record = tuple[bytes, Members]
ENTRY_SPAN_MS = MAX_BLOCK_SPAN_MS // 2
"""The longest time between records that are handed in together, in milliseconds."""


def beginning(tenant: str) -> bytes:
    """Return the hash before the first record of a tenant's chain."""
    return hashlib.sha256(_BEGINNING + tenant.encode()).digest()


def hashes_after(previous: bytes, records: Iterable[bytes]) -> list[bytes]:
    """Return the hash after each record, the first of which follows ``previous``."""
    hashes = []
    for record in records:
        previous = hashlib.sha256(previous + record).digest()
        hashes.append(previous)
    return hashes


def next_blocks(unsealed: UnsealedAudit) -> list[SealedBlock]:
    """Return the next blocks of each tenant, so that no block has a long span of time."""
    waiting: dict[str, list[_Entry]] = {}
    for entry in unsealed.entries:
        waiting.setdefault(entry.tenant, []).append(_Entry.of(entry))
    blocks: list[SealedBlock] = []
    for tenant, entries in waiting.items():
        entries.sort(key=lambda each: each.first)
        number, end = unsealed.ends[tenant]
        for some in _portions(entries):
            sealed = _block(tenant, some, number + 1, end or beginning(tenant))
            number, end = sealed.block.number, sealed.block.end
            blocks.append(sealed)
    return blocks


def _portions(entries: Iterable[_Entry]) -> Iterator[list[_Entry]]:
    """Yield the entries of one block each: of a short span of time, and not too large."""
    for _span, some in groupby(entries, key=lambda each: each.first // ENTRY_SPAN_MS):
        portion: list[_Entry] = []
        size = 0
        for entry in some:
            portion.append(entry)
            size += len(entry.entry.records)
            if size >= MAX_BLOCK_BYTES:
                yield portion
                portion, size = [], 0
        if portion:
            yield portion


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry with its records, each with its members, and the time of the first."""

    entry: UnsealedEntry
    records: Sequence[_Record]
    first: int

    @classmethod
    def of(cls, entry: UnsealedEntry) -> _Entry:
        written = entry.version
        if written is None:
            records = [(line, orjson.loads(line)) for line in entry.records.splitlines()]
        else:
            what = name_of(written.type, written.id, written.version)
            members = complete(entry.records, at=written.updated, what=what)
            records = [(orjson.dumps(members), members)]
        return cls(entry, records, min(map(_time, records)))


def _time(record: _Record) -> int:
    at: int = record[1]["at"]
    return at


def _in_order(records: Iterable[_Record]) -> Sequence[_Record]:
    """Return records in the order of their times, each announcement before its outcome.

    Within a millisecond, the outcome may be in an entry that begins before that of the
    announcement. Both have the same request and action.
    """
    ordered = sorted(records, key=_time)
    firsts: dict[tuple[object, ...], int] = {}
    places = []
    for number, (_line, members) in enumerate(ordered):
        together = (members["at"], members.get("request", number), members.get("action"))
        first = firsts.setdefault(together, number)
        places.append((first, members.get("status") != BEGUN, number))
    return [ordered[number] for _first, _is_outcome, number in sorted(places)]


def _block(tenant: str, entries: list[_Entry], number: int, previous: bytes) -> SealedBlock:
    records = _in_order(chain.from_iterable(entry.records for entry in entries))
    lines, members = zip(*records, strict=True)
    block = AuditBlock(
        tenant=tenant,
        number=number,
        first=_time(records[0]),
        last=_time(records[-1]),
        records=b"\n".join([*lines, b""]),
        hashes=b"".join(hashes_after(previous, lines)),
    )
    return SealedBlock(
        block=block,
        keys=keys_of(tenant, members),
        entries=tuple(entry.entry for entry in entries),
    )


def time_of(record: bytes) -> int:
    """Return the time of a record, which is its first member, in milliseconds."""
    return int(record[len(_AT) : record.index(b",")])


def records_of(block: AuditBlock) -> list[bytes]:
    """Return the records of a block."""
    return block.records.splitlines()


def with_keys(block: AuditBlock) -> SealedBlock:
    """Return a block with the keys that it is found by, computed from its records."""
    members = map(orjson.loads, records_of(block))
    return SealedBlock(block=block, keys=keys_of(block.tenant, members))


def first_wrong(records: Sequence[bytes], hashes: bytes, previous: bytes) -> int | None:
    """Return the place of the first record that does not follow from those before it.

    Args:
        records: The records of a block.
        hashes: The hashes of the block.
        previous: The hash before its first record.

    Returns:
        The place, counted from 0; that behind the last record if there are more or fewer hashes
        than records; None if all is right.
    """
    kept = [*_cut(hashes)]
    for place, expected in enumerate(hashes_after(previous, records)):
        if place >= len(kept) or kept[place] != expected:
            return place
    return None if len(kept) == len(records) else len(records)


def _cut(hashes: bytes) -> Iterable[bytes]:
    for start in range(0, len(hashes), HASH_BYTES):
        yield hashes[start : start + HASH_BYTES]
