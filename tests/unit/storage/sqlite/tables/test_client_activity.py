"""Revoked tokens, used assertions and uses of clients, as their statements keep them."""

from __future__ import annotations

import sqlite3

import pytest

from fhirpub.storage.sqlite.tables import client_activity as sql


def revoked(connection: sqlite3.Connection, client: str = "c") -> list[tuple[str, int]]:
    return [(jti, until) for _client, jti, until in connection.execute(sql.REVOKED, (client,))]


def test_a_token_is_revoked_until_the_later_of_two_times(connection: sqlite3.Connection) -> None:
    for until in (5, 9, 7):
        connection.execute(sql.REVOKE, ("c", "t", until, 10))

    assert revoked(connection) == [("t", 9)]


def test_tokens_of_another_client_are_not_revoked(connection: sqlite3.Connection) -> None:
    connection.execute(sql.REVOKE, ("c", "t", 5, 10))

    assert revoked(connection, "other") == []


def test_a_client_has_no_more_revoked_tokens_than_it_may(connection: sqlite3.Connection) -> None:
    added = [connection.execute(sql.REVOKE, ("c", jti, 5, 2)).rowcount for jti in "abc"]

    assert (added, [jti for jti, _until in revoked(connection)]) == ([1, 1, 0], ["a", "b"])


def test_a_token_that_is_revoked_can_be_revoked_for_longer_at_the_limit(
    connection: sqlite3.Connection,
) -> None:
    for until in (5, 8):
        connection.execute(sql.REVOKE, ("c", "a", until, 1))

    assert revoked(connection) == [("a", 8)]


def test_the_limit_is_that_of_each_client(connection: sqlite3.Connection) -> None:
    for client in ("c", "d"):
        connection.execute(sql.REVOKE, (client, "a", 5, 1))

    assert revoked(connection, "d") == [("a", 5)]


@pytest.mark.parametrize(("now", "left"), [(5, 1), (6, 0)])
def test_a_revocation_stays_until_its_end(
    connection: sqlite3.Connection, now: int, left: int
) -> None:
    connection.execute(sql.REVOKE, ("c", "a", 5, 1))

    connection.execute(sql.SWEEP_REVOKED, (now,))

    assert len(revoked(connection)) == left


def test_an_assertion_is_used_once_by_its_owner(connection: sqlite3.Connection) -> None:
    used = [connection.execute(sql.USE, (owner, "j", 5)).rowcount for owner in ("c", "c", "d")]

    assert used == [1, 0, 1]


@pytest.mark.parametrize(("now", "found"), [(4, 1), (5, 0)])
def test_used_assertions_count_until_their_end(
    connection: sqlite3.Connection, now: int, found: int
) -> None:
    connection.execute(sql.USE, ("c", "j", 5))
    connection.execute(sql.USE, ("d", "j", 50))

    assert connection.execute(sql.COUNT_USED, ("c", now)).fetchone() == (found,)


@pytest.mark.parametrize(("now", "swept"), [(5, 0), (6, 1)])
def test_a_used_assertion_stays_until_its_end(
    connection: sqlite3.Connection, now: int, swept: int
) -> None:
    connection.execute(sql.USE, ("c", "j", 5))

    assert connection.execute(sql.SWEEP_USED, (now,)).rowcount == swept


def test_the_latest_use_of_a_client_is_kept(connection: sqlite3.Connection) -> None:
    def put(**uses: int) -> None:
        pairs = ",".join(f'"{client}":{used}' for client, used in uses.items())
        connection.execute(sql.PUT_USES, (f"{{{pairs}}}",))

    put(c=5, d=5)
    put(c=4, d=6)

    assert sorted(connection.execute(sql.USES).fetchall()) == [("c", 5), ("d", 6)]
