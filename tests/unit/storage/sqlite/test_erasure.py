"""The steps of an erasure in the file: which rows each takes, and what leads to them no more."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

import pytest

from fhirpub.storage.contract import Blob, Version
from fhirpub.storage.criteria import encode, field_number
from fhirpub.storage.erasure.contract import ErasedStep
from fhirpub.storage.erasure.tombstones import member_body
from fhirpub.storage.sqlite import schema
from fhirpub.storage.sqlite.database import _insert
from fhirpub.storage.sqlite.erasure import _erase_step, _without_answers
from fhirpub.storage.sqlite.rows import Addition, version_of
from fhirpub.testing.contracts.erasure.content import a_tombstone
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.samples import LAB, OTHER, REPORT, a_version, successor
from fhirpub.testing.store_contract import a_blob

FINAL = encode([("status", "final", ""), ("date", 5, 9), ("name", None, None)])


def add(
    connection: sqlite3.Connection,
    *versions: Version,
    tenant: str = LAB,
    blobs: tuple[Blob, ...] = (),
) -> None:
    for version in versions:
        _insert(connection, Addition(tenant, version, blobs, now=1).rows)


def step(
    connection: sqlite3.Connection, tombstone: Version, *, passed: int = 0, tenant: str = LAB
) -> tuple[ErasedStep, int]:
    return _erase_step(connection, tenant=tenant, tombstone=tombstone, passed=passed)


def stored(connection: sqlite3.Connection, number: int) -> Version:
    """Return a version by its number in the file."""
    (row,) = connection.execute(schema.WHOLE_ROW, (number,))
    return version_of(row)


def rows_of(connection: sqlite3.Connection, statement: str) -> list[tuple[object, ...]]:
    return connection.execute(statement).fetchall()


# Which rows a step takes


def test_a_step_erases_the_first_version_and_passes_no_member(
    connection: sqlite3.Connection,
) -> None:
    first = a_version()
    second = successor(first)
    tombstone = a_tombstone(second)
    add(connection, first, second, tombstone)

    steps = [step(connection, tombstone) for _ in range(3)]

    assert steps == [
        (ErasedStep(1, 0, first.own_size), 0),
        (ErasedStep(1, 0, second.own_size), 0),
        (ErasedStep(), 0),
    ]
    assert [stored(connection, number).body for number in (1, 2, 3)] == [tombstone.body] * 3


def test_members_follow_all_versions_ten_at_once(connection: sqlite3.Connection) -> None:
    first = a_version(members=tuple(a_result() for _ in range(12)))
    tombstone = a_tombstone(first)
    add(connection, first, tombstone)

    found, passed = step(connection, tombstone)
    assert (found.versions, found.members, passed) == (1, 0, 0)

    found, passed = step(connection, tombstone)
    assert (found.versions, found.members, passed) == (0, 10, 11)
    assert found.size == sum(member.own_size for member in first.members[:10])

    found, passed = step(connection, tombstone, passed=passed)
    assert (found.versions, found.members, passed) == (0, 2, 13)

    assert step(connection, tombstone, passed=passed) == (ErasedStep(), 13)


def test_members_that_were_passed_are_not_looked_at_again(connection: sqlite3.Connection) -> None:
    first = a_version(members=(a_result(), a_result(), a_result()))
    tombstone = a_tombstone(first)
    add(connection, first, tombstone)
    step(connection, tombstone)

    found, passed = step(connection, tombstone, passed=2)

    assert (found.members, passed) == (2, 4)
    assert [stored(connection, number).type[0] for number in (1, 2, 3, 4)] == ["!", "O", "!", "!"]


def test_members_that_stand_before_those_that_were_passed_are_erased_in_the_end(
    connection: sqlite3.Connection,
) -> None:
    first = a_version(members=(a_result(), a_result()))
    tombstone = a_tombstone(first)
    add(connection, first, tombstone)
    step(connection, tombstone)

    found, passed = step(connection, tombstone, passed=99)

    assert (found.members, passed) == (2, 3)


def test_members_have_the_tombstone_without_who_ordered_it_and_why(
    connection: sqlite3.Connection,
) -> None:
    first = a_version(members=(a_result(),))
    tombstone = a_tombstone(first)
    add(connection, first, tombstone)

    for _ in range(2):
        step(connection, tombstone)

    assert stored(connection, 2).body == member_body(tombstone) != tombstone.body
    assert b"order 7" in tombstone.body
    assert b"order 7" not in stored(connection, 2).body


@pytest.mark.parametrize(("tenant", "number"), [(OTHER, 2), (LAB, 1)])
def test_nothing_of_another_tenant_and_no_version_above_is_erased(
    connection: sqlite3.Connection, tenant: str, number: int
) -> None:
    first = a_version(members=(a_result(),))
    add(connection, first)
    tombstone = replace(a_tombstone(first), version=number)

    assert step(connection, tombstone, tenant=tenant) == (ErasedStep(), 0)
    assert stored(connection, 1) == replace(first, members=())


# What is left


def test_an_erased_row_has_its_key_and_times_and_nothing_else(
    connection: sqlite3.Connection,
) -> None:
    blob = a_blob()
    full = a_version(
        search=FINAL,
        digest=b"d" * 32,
        response=b"r",
        parts=b"p",
        status="x",
        documents=(blob.sha256,),
        attached=(blob,),
        events=b'[{"e":1}]',
    )
    tombstone = a_tombstone(full)
    add(connection, full, tombstone)

    step(connection, tombstone)

    assert stored(connection, 1) == Version(
        id=full.id,
        version=1,
        type=f"!{REPORT}",
        system="",
        value="",
        status="",
        created=full.created,
        updated=full.updated,
        body=tombstone.body,
    )
    assert rows_of(connection, "SELECT size FROM version WHERE rowid = 1") == [
        (len(tombstone.body) + len(b"[]"),)
    ]


@pytest.mark.parametrize(("sealed", "audit"), [(0, b"record"), (1, b""), (2, b"")])
def test_the_record_of_a_write_goes_once_it_is_sealed(
    connection: sqlite3.Connection, sealed: int, audit: bytes
) -> None:
    first = a_version(audit=b"record")
    tombstone = a_tombstone(first)
    add(connection, first, tombstone)
    connection.execute("UPDATE audit_mark SET last = ?", (sealed,))

    step(connection, tombstone)

    assert stored(connection, 1).audit == audit


def test_the_values_of_other_versions_still_lead_to_them(connection: sqlite3.Connection) -> None:
    first, other, theirs = (a_version(search=FINAL) for _ in range(3))
    tombstone = a_tombstone(first)
    add(connection, first, other, tombstone)
    add(connection, theirs, tenant=OTHER)

    step(connection, tombstone)

    values = rows_of(connection, "SELECT field, value, number FROM search_value ORDER BY number")
    assert sorted(values, key=str) == sorted(
        [
            (field_number(tenant, REPORT, name), value, number)
            for tenant, number in ((LAB, 2), (OTHER, 4))
            for name, value in (("status", "final"), ("date", 9))
        ],
        key=str,
    )


def test_values_of_an_earlier_time_lead_nowhere(connection: sqlite3.Connection) -> None:
    first = a_version(search=FINAL, updated=10)
    later = successor(first)
    tombstone = a_tombstone(later)
    add(connection, first, later, tombstone)

    step(connection, tombstone)

    assert {row[0] for row in rows_of(connection, "SELECT number FROM search_value")} == {2}


# Documents


def test_documents_that_no_version_has_any_more_may_be_swept(
    connection: sqlite3.Connection,
) -> None:
    own, shared, theirs = a_blob(), a_blob(), a_blob()
    names = (own.sha256, shared.sha256, theirs.sha256)
    first = a_version(documents=names)
    tombstone = a_tombstone(first)
    add(connection, first, tombstone, blobs=(own, shared, theirs))
    add(connection, a_version(documents=names[1:2]))
    add(connection, a_version(documents=names), tenant=OTHER, blobs=(own, shared, theirs))

    step(connection, tombstone)

    loose = rows_of(connection, "SELECT tenant, sha256, added FROM blob WHERE named = 0")
    assert sorted(loose) == sorted([(LAB, own.sha256, 0), (LAB, theirs.sha256, 0)])
    left = rows_of(connection, f"SELECT sha256 FROM document WHERE tenant = '{LAB}'")
    assert left == [(shared.sha256,)]


def test_documents_that_a_later_version_still_has_stay(connection: sqlite3.Connection) -> None:
    blob = a_blob()
    first = a_version(documents=(blob.sha256,))
    second = successor(first)
    tombstone = a_tombstone(second)
    add(connection, first, blobs=(blob,))
    add(connection, second, tombstone)

    step(connection, tombstone)
    assert rows_of(connection, "SELECT named FROM blob") == [(1,)]

    step(connection, tombstone)
    assert rows_of(connection, "SELECT named FROM blob") == [(0,)]


# Stored bytes


def bytes_of(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many bytes are counted for each tenant."""
    return dict(connection.execute("SELECT tenant, bytes FROM stored_bytes").fetchall())


def test_what_stays_of_erased_rows_still_counts(connection: sqlite3.Connection) -> None:
    first = a_version(body=b"b" * 500, members=tuple(a_result(body=b"m" * 300) for _ in range(3)))
    tombstone = a_tombstone(first)
    add(connection, first, tombstone)
    add(connection, a_version(), tenant=OTHER)
    before = bytes_of(connection)

    for _ in range(2):
        step(connection, tombstone)

    left = len(tombstone.body) + 3 * len(member_body(tombstone)) + 4 * len(b"[]")
    after = bytes_of(connection)
    assert after == before | {LAB: left + tombstone.size}
    sizes = rows_of(connection, f"SELECT sum(size) FROM version WHERE tenant = '{LAB}'")
    assert sizes == [(after[LAB],)]


# The logs of deliveries


def test_a_log_without_responses_is_the_same_text() -> None:
    for log in ("[]", '[[1,2,3,200,"",4,[],""]]', '[[1,2,3,0,"x",4,["a"],""] ]'):
        assert _without_answers(log) == log


def test_a_log_keeps_everything_but_the_responses() -> None:
    attempts = [
        [1, 2, 3, 500, "reason", 4, ["192.0.2.1"], "c2VjcmV0"],
        [2, 5, 6, 0, "", 7, [], ""],
    ]

    found = json.loads(_without_answers(json.dumps(attempts)))

    assert found == [[1, 2, 3, 500, "reason", 4, ["192.0.2.1"], ""], attempts[1]]
