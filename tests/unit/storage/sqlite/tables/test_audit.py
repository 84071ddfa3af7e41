"""Statements on the audit trail: of one chain, and of the block that a key belongs to."""

from __future__ import annotations

import sqlite3

import pytest

from fhirpub.storage.sqlite.tables import audit as sql


def put(connection: sqlite3.Connection, tenant: str, number: int, first: int, *keys: int) -> None:
    connection.execute(sql.PUT_BLOCK, (tenant, number, first, first + 5, b"r\n", b"h"))
    connection.execute(sql.PUT_VALUES, (first, number, str([*keys])))


def found(connection: sqlite3.Connection, *keys: int, **changes: int) -> list[tuple[str, int]]:
    """Return the tenants and numbers of the blocks of tenant a that have all of the keys."""
    parameters = {
        "tenant": "a",
        "since": 0,
        "since_first": -10,
        "until": 999,
        "before_first": 999,
        "before_number": 999,
        "limit": 9,
    }
    parameters |= {f"key{place}": key for place, key in enumerate(keys)} | changes
    return [row[:2] for row in connection.execute(sql.find_blocks(len(keys)), parameters)]


def test_checkpoints_below_a_number_go_and_that_of_the_number_stays(
    connection: sqlite3.Connection,
) -> None:
    for tenant in "ab":
        for number in (1, 2, 3):
            connection.execute(sql.PUT_CHECKPOINT, (tenant, number, f"c{number}"))

    connection.execute(sql.DELETE_CHECKPOINTS, ("a", 2))

    assert connection.execute(sql.CHECKPOINTS, ("a", 0, 9)).fetchall() == [(2, "c2"), (3, "c3")]
    assert len(connection.execute(sql.CHECKPOINTS, ("b", 0, 9)).fetchall()) == 3


def test_the_last_number_is_that_of_the_chain(connection: sqlite3.Connection) -> None:
    for tenant, number in (("a", 1), ("a", 2), ("b", 7)):
        put(connection, tenant, number, number)

    last = [connection.execute(sql.LAST_NUMBER, (one,)).fetchone()[0] for one in ("a", "b", "c")]

    assert last == [2, 7, 0]


def test_all_keys_must_be_those_of_one_block(connection: sqlite3.Connection) -> None:
    put(connection, "a", 1, 10, 7, 9)
    put(connection, "b", 1, 20, 8, 9)

    assert found(connection, 7) == found(connection, 7, 9) == found(connection, 9) == [("a", 1)]
    assert found(connection, 7, 8) == found(connection, 8, 7) == found(connection, 9, 7, 8) == []


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        ({"since": 15}, [2, 1]),
        ({"since": 16}, [2]),
        ({"until": 20}, [2, 1]),
        ({"until": 19}, [1]),
        ({"since_first": 11}, [2]),
        ({"before_first": 20, "before_number": 2}, [1]),
        ({"before_first": 20, "before_number": 3}, [2, 1]),
        ({"limit": 1}, [2]),
    ],
)
@pytest.mark.parametrize("keys", [(), (7,)])
def test_blocks_are_found_from_the_newest_on_by_times_and_places(
    connection: sqlite3.Connection,
    keys: tuple[int, ...],
    changes: dict[str, int],
    numbers: list[int],
) -> None:
    for number in (1, 2):
        put(connection, "a", number, number * 10, 7)

    assert [number for _tenant, number in found(connection, *keys, **changes)] == numbers
