"""When a connection makes room for another, to the moment, and what is no fault of a listener."""

from __future__ import annotations

import socket
from typing import cast

import pytest

from fhirpub.http.connections import accept_some
from tests.unit.http.test_connections import LOCAL, FakeConnection, fill, table


@pytest.mark.parametrize(("since", "served"), [(99.0, True), (99.9, False)])
def test_a_connection_makes_room_from_the_moment_its_time_is_over(
    since: float, *, served: bool
) -> None:
    full = table(per_address=1)
    full.add(LOCAL, FakeConnection(since, served=served))

    assert full.admits(LOCAL)


def test_a_connection_makes_room_as_soon_as_its_request_was_read() -> None:
    full = table(per_address=1)
    (connection,) = fill(full, "a", 50.0)
    connection.unread = True
    before = full.admits("a")

    connection.unread = False

    assert (before, full.admits("a"), connection.is_closed) == (False, True, True)


def test_connections_are_looked_at_again_when_the_first_of_them_can_be_closed() -> None:
    now = [100.0]
    full = table(per_address=2, clock=lambda: now[0])
    first, second = fill(full, "a", 99.05, 99.9)
    before = full.admits("a")

    now[0] = 100.06

    assert (before, full.admits("a")) == (False, True)
    assert (first.is_closed, second.is_closed) == (True, False)


@pytest.mark.parametrize(("count", "closed"), [(1, 1), (7, 1), (8, 2), (16, 3)])
def test_one_in_eight_connections_of_an_address_makes_room_at_once(
    count: int, closed: int
) -> None:
    full = table(per_address=count)
    connections = fill(full, "a", *[float(number) for number in range(count)])

    assert full.admits("a")

    assert [connection.is_closed for connection in connections] == [
        number < closed for number in range(count)
    ]


def test_an_address_that_came_back_is_looked_at_again() -> None:
    full = table(per_address=1)
    (young,) = fill(full, LOCAL, 99.5)
    assert not full.admits(LOCAL)
    full.remove(LOCAL, young)
    (old,) = fill(full, LOCAL, 10.0)

    assert full.admits(LOCAL)
    assert old.is_closed


def test_a_connection_that_its_client_gave_up_ends_the_turn_and_is_no_fault() -> None:
    class Listening:
        def accept(self) -> None:
            raise ConnectionAbortedError

    assert [*accept_some(cast("socket.socket", Listening()))] == []
