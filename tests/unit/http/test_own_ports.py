"""Ports beside that of the service: bound, reserved, and the error if that fails."""

from __future__ import annotations

import gc
import socket
from contextlib import closing
from dataclasses import dataclass

import pytest

from fhirpub.errors import ConfigurationError
from fhirpub.http.own_ports import bind_own_port, reserve_own_port


@dataclass(frozen=True)
class Port:
    port: int
    host: str = "127.0.0.1"


def taken() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def test_a_port_is_bound_on_its_host_only() -> None:
    (bound,) = bind_own_port("metrics", Port(0))

    with closing(bound):
        assert bound.getsockname()[0] == "127.0.0.1"
        assert bound.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 0


def test_a_port_may_be_shared_by_workers() -> None:
    (first,) = bind_own_port("admin", Port(0), reuse_port=True)
    with closing(first):
        port = first.getsockname()[1]
        (second,) = bind_own_port("admin", Port(port), reuse_port=True)
        second.close()


@pytest.mark.filterwarnings("ignore:.*socket")  # Tornado leaves the one that failed open
def test_a_port_that_is_taken_is_refused_with_its_group_and_address() -> None:
    with taken() as other:
        port = other.getsockname()[1]

        with pytest.raises(
            ConfigurationError, match=r"^\[metrics\] port: cannot listen on "
        ) as no:
            bind_own_port("metrics", Port(port))

    text = str(no.value)
    del no
    gc.collect()  # here, where the warning is ignored, and not in another test
    assert f"cannot listen on 127.0.0.1 port {port}: " in text


def test_a_reservation_of_a_port_that_is_taken_is_refused() -> None:
    with (
        taken() as other,
        pytest.raises(ConfigurationError, match=r"^\[console\] port: "),
        reserve_own_port("console", Port(other.getsockname()[1])),
    ):
        pass


def test_a_reservation_leaves_the_port_to_workers_and_ends() -> None:
    with taken() as other:
        port = other.getsockname()[1]
    with reserve_own_port("admin", Port(port)):
        (worker,) = bind_own_port("admin", Port(port), reuse_port=True)
        worker.close()

    with reserve_own_port("admin", Port(port)):
        pass


def test_without_a_port_nothing_is_reserved() -> None:
    with reserve_own_port("admin", Port(0, host="a..b")):
        pass


def test_a_host_without_a_valid_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"a\.\.b port 1"):
        bind_own_port("admin", Port(1, host="a..b"))
