"""The proxy's faults do what their names say."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, NetworkTimeout, ServerSelectionTimeoutError

from tests.mongod.replica_set import ProxiedSet
from tests.mongod.server import eventually
from tests.mongodb_proxy import Fault

Client = MongoClient[dict[str, Any]]


@pytest.fixture
def hasty_client(proxied_set: ProxiedSet) -> Iterator[Client]:
    """A client that retries nothing, and waits for half a second."""
    yield from connect(proxied_set, wait_ms=500)


@pytest.fixture
def client(proxied_set: ProxiedSet) -> Iterator[Client]:
    """A client that retries nothing, and waits longer than any machine stalls."""
    yield from connect(proxied_set, wait_ms=30_000)


def connect(proxied_set: ProxiedSet, *, wait_ms: int) -> Iterator[Client]:
    with Client(
        proxied_set.url(),
        retryWrites=False,
        retryReads=False,
        socketTimeoutMS=wait_ms,
        serverSelectionTimeoutMS=2000,
    ) as client:
        eventually(lambda: is_reached(client) or None)
        yield client
        proxied_set.proxy.heal()  # before the client closes


def is_reached(client: Client) -> bool:
    try:
        client.admin.command("ping")
    except AutoReconnect:
        return False
    return True


def insert(client: Client, key: str) -> None:
    client["test"]["proxied"].insert_one({"_id": key})


def is_kept(proxied_set: ProxiedSet, key: str) -> bool:
    """Query the server directly, not through the proxy."""
    member = proxied_set.members[0]
    return member.client["test"]["proxied"].find_one({"_id": key}) is not None


def test_clients_reach_the_set_through_the_proxy_alone(
    proxied_set: ProxiedSet, client: Client
) -> None:
    insert(client, "pass")

    assert client.primary == ("127.0.0.1", proxied_set.proxy.port)
    assert is_kept(proxied_set, "pass")


def test_a_cut_reply_belongs_to_a_write_that_happened(
    proxied_set: ProxiedSet, client: Client
) -> None:
    proxied_set.proxy.inject(Fault.CUT_REPLY, "insert")

    with pytest.raises(AutoReconnect) as error:
        insert(client, "cut reply")

    assert not isinstance(error.value, NetworkTimeout)
    assert is_kept(proxied_set, "cut reply")
    assert proxied_set.proxy.hits == 1


def test_a_cut_request_belongs_to_a_write_that_never_happened(
    proxied_set: ProxiedSet, client: Client
) -> None:
    proxied_set.proxy.inject(Fault.CUT_REQUEST, "insert")

    with pytest.raises(AutoReconnect):
        insert(client, "cut request")

    assert not is_kept(proxied_set, "cut request")
    assert proxied_set.proxy.hits == 1


def test_a_dropped_reply_is_a_time_out_of_a_write_that_happened(
    proxied_set: ProxiedSet, hasty_client: Client
) -> None:
    proxied_set.proxy.inject(Fault.DROP_REPLY, "insert")

    with pytest.raises(NetworkTimeout):
        insert(hasty_client, "dropped reply")

    eventually(lambda: is_kept(proxied_set, "dropped reply") or None, seconds=30)


def test_a_fault_ends_after_its_number_of_requests_and_spares_other_commands(
    proxied_set: ProxiedSet, client: Client
) -> None:
    proxied_set.proxy.inject(Fault.CUT_REPLY, "insert", times=1)
    client.admin.command("ping")

    with pytest.raises(AutoReconnect):
        insert(client, "first")
    insert(client, "second")

    assert proxied_set.proxy.hits == 1


def test_a_drivers_own_second_try_gets_through_after_a_cut_reply(proxied_set: ProxiedSet) -> None:
    with Client(proxied_set.url()) as client:
        client.admin.command("ping")
        proxied_set.proxy.inject(Fault.CUT_REPLY, "insert", times=1)

        insert(client, "retried")

    assert proxied_set.proxy.hits == 1
    assert is_kept(proxied_set, "retried")


def test_a_stalled_write_arrives_after_all_when_no_client_waits_for_it(
    proxied_set: ProxiedSet, hasty_client: Client
) -> None:
    proxied_set.proxy.inject(Fault.STALL, "insert")

    with pytest.raises(NetworkTimeout):
        insert(hasty_client, "stalled")
    before = is_kept(proxied_set, "stalled")
    proxied_set.proxy.heal()

    assert not before
    eventually(lambda: is_kept(proxied_set, "stalled") or None)


def test_a_stall_of_everything_ends_with_the_healing(
    proxied_set: ProxiedSet, client: Client
) -> None:
    proxied_set.proxy.inject(Fault.STALL)
    healing = threading.Timer(0.1, proxied_set.proxy.heal)
    healing.start()
    begun = time.monotonic()

    insert(client, "all stalled")

    assert time.monotonic() - begun > 0.09
    healing.join()


def test_dropping_everything_lets_nothing_come_back(
    proxied_set: ProxiedSet, hasty_client: Client
) -> None:
    proxied_set.proxy.inject(Fault.DROP_REPLY)

    with pytest.raises(NetworkTimeout):
        hasty_client.admin.command("ping")


def test_refused_connections_leave_no_server_to_select(proxied_set: ProxiedSet) -> None:
    proxied_set.proxy.inject(Fault.REFUSE)

    with (
        Client(proxied_set.url(), serverSelectionTimeoutMS=300) as client,
        pytest.raises(ServerSelectionTimeoutError),
    ):
        insert(client, "refused")


def test_refusing_ends_open_connections_and_healing_lets_new_ones_in(
    proxied_set: ProxiedSet, client: Client
) -> None:
    proxied_set.proxy.inject(Fault.REFUSE)
    with pytest.raises(AutoReconnect):
        insert(client, "refused")
    proxied_set.proxy.heal()
    eventually(lambda: is_reached(client) or None)

    insert(client, "taken again")

    assert is_kept(proxied_set, "taken again")


def test_the_set_comes_back_behind_its_proxy(proxied_set: ProxiedSet, client: Client) -> None:
    insert(client, "before")
    proxied_set.proxy.inject(Fault.REFUSE)
    proxied_set.members[0].kill()

    proxied_set.restore()
    eventually(lambda: is_reached(client) or None)

    assert client["test"]["proxied"].find_one({"_id": "before"}) is not None
