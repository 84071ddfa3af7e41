"""How the mark of the outbox moves: what a read finds, and which step publishes which versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import pytest

from fhirpub.storage.sqlite import outbox
from fhirpub.storage.sqlite.database import _insert
from fhirpub.storage.sqlite.outbox import _Page, _read_step, _Step, read_page
from fhirpub.storage.sqlite.parameters import json_pairs
from fhirpub.storage.sqlite.rows import Addition
from fhirpub.storage.sqlite.tables import webhooks as sql
from fhirpub.storage.webhook_contract import OutboxEntry
from fhirpub.testing.contracts.erasure.content import a_tombstone
from fhirpub.testing.samples import LAB, OTHER, a_version
from fhirpub.testing.webhook_contract import EVENTS


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """One read passes over five versions without events, not over ten thousand."""
    monkeypatch.setattr(outbox, "MAX_ROWS_PASSED", 5)


def fill(connection: sqlite3.Connection, events: str) -> list[tuple[str, int]]:
    """Add a version for each letter, with events where it is ``x``; return their keys."""
    versions = [a_version(events=EVENTS) if each == "x" else a_version() for each in events]
    for version in versions:
        _insert(connection, Addition(LAB, version, (), now=1).rows)
    return [(version.id, version.version) for version in versions]


def publish(connection: sqlite3.Connection, *, mark: int, exceptions: str = "[]") -> None:
    """Move the mark from the beginning."""
    connection.execute(sql.MOVE_MARK, (mark, 0))
    connection.execute(sql.ADD_EXCEPTIONS, (exceptions,))


# What a read finds


def test_an_entry_has_what_its_version_has(connection: sqlite3.Connection) -> None:
    version = a_version(version=3, events=EVENTS, updated=77, type="Patient")
    _insert(connection, Addition(OTHER, version, (), now=1).rows)

    _page, entries = read_page(connection, limit=1)

    assert entries == [(OTHER, OutboxEntry.of(version))]


def test_a_tombstone_is_an_entry_of_its_type(connection: sqlite3.Connection) -> None:
    tombstone = a_tombstone(a_version(type="Patient"), operator="eve")
    version = a_version(id=tombstone.id, type=tombstone.type, events=EVENTS)
    _insert(connection, Addition(LAB, version, (), now=1).rows)

    _page, ((_tenant, entry),) = read_page(connection, limit=1)

    assert (tombstone.type, entry.type) == ("!Patient", "Patient")


@pytest.mark.parametrize(
    ("events", "limit", "found", "page"),
    [
        # mark, end of what was looked at, how many behind it, whether that is all
        ("", 2, "", (0, 0, [], True)),
        ("xx", 5, "01", (0, 2, [1, 2], True)),
        ("x.x.", 5, "02", (0, 4, [1, 3], True)),
        ("x.x.x.", 3, "024", (0, 5, [1, 3, 5], True)),
        ("x.x.x.", 2, "02", (0, 3, [1, 3], True)),
        (".......x", 2, "7", (0, 7, [], False)),
        (".......x", 3, "7", (0, 8, [8], True)),
        ("x........x", 2, "0", (0, 7, [1], False)),
        ("x.....", 1, "0", (0, 1, [1], True)),
        (".....x", 1, "5", (0, 6, [6], True)),
        ("......x", 1, "6", (0, 6, [], False)),
        ("......", 1, "", (0, 6, [], True)),
    ],
)
def test_a_read_finds_the_first_entries_and_passes_over_others_up_to_a_limit(
    connection: sqlite3.Connection,
    events: str,
    limit: int,
    found: str,
    page: tuple[int, int, list[int], bool],
) -> None:
    keys = fill(connection, events)

    read, entries = read_page(connection, limit=limit)

    assert (read.mark, read.to, [*read.behind], read.is_complete) == page
    expected = [keys[int(each)] for each in found] if page[2] else []
    assert [(entry.id, entry.version) for _tenant, entry in entries] == expected
    assert read.numbers == {key: keys.index(key) + 1 for key in expected}


@pytest.mark.parametrize(
    ("limit", "found", "behind", "to"),
    [(1, [0], [], 4), (2, [0, 2], [], 4), (3, [0, 2, 4], [5], 5), (9, [0, 2, 4, 5], [5, 6], 6)],
)
def test_exceptions_are_found_before_what_stands_behind_the_mark(
    connection: sqlite3.Connection, limit: int, found: list[int], behind: list[int], to: int
) -> None:
    keys = fill(connection, "xxxxxx")
    publish(connection, mark=4, exceptions="[3, 1]")

    page, entries = read_page(connection, limit=limit)

    assert [(entry.id, entry.version) for _tenant, entry in entries] == [keys[n] for n in found]
    assert [*page.behind] == behind
    assert (page.mark, page.to, page.is_complete) == (4, to, True)
    assert page.numbers == {keys[number]: number + 1 for number in found}


@pytest.mark.parametrize(
    ("to", "behind", "is_complete", "is_sparse"),
    [
        (110, [], False, True),
        (110, [], True, False),
        (111, [], True, True),
        (211, [11], True, False),
        (212, [11], True, True),
        (11, [11], False, True),
        (312, [11, 312], True, False),
        (313, [11, 313], True, True),
        (20, [*range(11, 21)], True, False),
    ],
)
def test_a_page_is_sparse_with_a_hundred_others_for_each_entry_and_one_more(
    to: int, behind: Sequence[int], *, is_complete: bool, is_sparse: bool
) -> None:
    page = _Page(10, to, {}, behind, is_complete)

    assert page.is_sparse is is_sparse


# Which step publishes which versions


@pytest.mark.parametrize(
    ("numbers", "to", "behind", "step"),
    [
        # the step: from, to, added, removed, whether it is the last one
        ([6], 6, [6], _Step(5, 6)),
        ([8], 8, [6, 7, 8], _Step(5, 8, [6, 7])),
        ([7], 8, [6, 7, 8], _Step(5, 8, [6, 8])),
        ([6], 7, [6, 7, 8], _Step(5, 7, [7])),
        ([3], 5, [], _Step(5, 5, [], [3])),
        ([5], 5, [6], _Step(5, 5, [], [5])),
        ([2, 7], 7, [6, 7], _Step(5, 7, [6], [2])),
        ([9], 8, [6, 8, 9], _Step(5, 8, [6, 8], is_last=False)),
        ([9, 3], 8, [], _Step(5, 8, [], [3], is_last=False)),
        ([], 5, [6], _Step(5, 5)),
    ],
)
def test_a_step_leaves_out_what_is_published_and_keeps_all_else_pending(
    numbers: list[int], to: int, behind: list[int], step: _Step
) -> None:
    found = _Step.publishing(numbers, mark=5, to=to, behind=behind)

    assert found == _Step(step.mark, step.to, [*step.added], [*step.removed], step.is_last)


PAGE = _Page(
    5, 9, {("old", 1): 3, ("a", 1): 6, ("a", 2): 8, ("b", 1): 9}, [6, 8, 9], is_complete=True
)


@pytest.mark.parametrize(
    ("keys", "step"),
    [
        ([("a", 1)], _Step(5, 6, [], [])),
        ([("a", 2)], _Step(5, 8, [6], [])),
        ([("b", 1), ("old", 1)], _Step(5, 9, [6, 8], [3])),
        ([("old", 1)], _Step(5, 5, [], [3])),
        ([("a", 3)], None),
        ([("a", 1), ("c", 1)], None),
    ],
)
def test_the_step_for_versions_of_a_page_needs_no_read(
    keys: list[tuple[str, int]], step: _Step | None
) -> None:
    assert PAGE.step_for(keys) == step


@pytest.mark.parametrize(
    ("published", "step"),
    [
        ([2], _Step(0, 3, [1], [])),
        ([0], _Step(0, 1, [], [])),
        ([2, 0], _Step(0, 3, [], [])),
        ([5], _Step(0, 5, [1, 3, 5], [], is_last=False)),
        ([4], _Step(0, 5, [1, 3], [])),
        ([1], _Step(0, 2, [1], [])),
    ],
)
def test_a_step_is_read_from_the_file_as_far_as_one_read_goes(
    connection: sqlite3.Connection, published: list[int], step: _Step
) -> None:
    keys = fill(connection, "x.x.xx")

    found = _read_step(connection, pairs=json_pairs(keys[number] for number in published))

    assert found == step


def test_a_step_goes_on_from_the_mark(connection: sqlite3.Connection) -> None:
    keys = fill(connection, "xxxxxxxx")
    publish(connection, mark=2, exceptions="[1]")

    one = _read_step(connection, pairs=json_pairs([keys[0]]))
    other = _read_step(connection, pairs=json_pairs([keys[7], keys[3]]))

    assert one == _Step(2, 2, [], [1])
    assert other == _Step(2, 7, [3, 5, 6, 7], [], is_last=False)


def test_a_version_that_is_not_stored_is_published_without_a_step(
    connection: sqlite3.Connection,
) -> None:
    fill(connection, "xx")

    assert _read_step(connection, pairs=json_pairs([("none", 1)])) == _Step(0, 0, [], [])


def test_a_read_leaves_no_transaction_open(connection: sqlite3.Connection) -> None:
    fill(connection, "x")

    read_page(connection, limit=1)
    _read_step(connection, pairs="[]")

    assert not connection.in_transaction
