"""Orders to erase, and what is on hold, as their statements keep them."""

from __future__ import annotations

import sqlite3

from fhirpub.storage.sqlite.tables import erasure as sql


def order(
    connection: sqlite3.Connection,
    tenant: str,
    id_: str,
    *,
    finished: int | None = None,
    allows_reuse: bool = False,
) -> None:
    row = (tenant, "A", id_, 1, "o", "r", allows_reuse, 0, finished)
    connection.execute(sql.PUT_ERASURE, row)


def hold(connection: sqlite3.Connection, tenant: str, id_: str, *, since: int = 1) -> None:
    connection.execute(sql.PUT_HOLD, (tenant, "A", id_, since, "o", "r"))


def orders(
    connection: sqlite3.Connection,
    *,
    after: tuple[str, str] = ("", ""),
    tenant: str | None = None,
    unfinished: bool = False,
    limit: int = 10,
) -> list[str]:
    given = (*after, tenant, unfinished, limit)
    return [row[0] + row[2] for row in connection.execute(sql.ERASURES, given)]


def test_orders_come_by_tenant_and_id(connection: sqlite3.Connection) -> None:
    for tenant, id_ in (("u", "1"), ("t", "2"), ("t", "1")):
        order(connection, tenant, id_)

    assert orders(connection) == ["t1", "t2", "u1"]
    assert orders(connection, limit=2) == ["t1", "t2"]
    assert orders(connection, after=("t", "1")) == ["t2", "u1"]
    assert orders(connection, tenant="u") == ["u1"]


def test_finished_orders_can_be_left_out(connection: sqlite3.Connection) -> None:
    order(connection, "t", "1", finished=0)
    order(connection, "t", "2")

    assert (orders(connection), orders(connection, unfinished=True)) == (["t1", "t2"], ["t2"])


def test_an_order_replaces_the_one_of_the_same_resource(connection: sqlite3.Connection) -> None:
    order(connection, "t", "1")
    order(connection, "t", "1", finished=5)
    order(connection, "u", "1")

    assert orders(connection, unfinished=True) == ["u1"]


def test_reuse_is_that_of_the_tenant(connection: sqlite3.Connection) -> None:
    order(connection, "t", "1", allows_reuse=True)
    order(connection, "u", "1")

    found = [connection.execute(sql.HAS_REUSE, (tenant,)).fetchone() for tenant in "tu"]
    assert found == [(1,), (0,)]


def test_holds_of_the_tenant_come_oldest_first(connection: sqlite3.Connection) -> None:
    hold(connection, "t", "1", since=9)
    hold(connection, "t", "2", since=3)
    hold(connection, "u", "3")

    assert [row[2] for row in connection.execute(sql.HOLDS, ("t",))] == ["2", "1"]


def test_a_hold_ends_for_its_tenant_alone(connection: sqlite3.Connection) -> None:
    hold(connection, "t", "1")
    hold(connection, "u", "1")

    deleted = connection.execute(sql.DELETE_HOLD, ("t", "A", "1")).rowcount

    assert deleted == 1
    assert [len(connection.execute(sql.HOLDS, (one,)).fetchall()) for one in "tu"] == [0, 1]
