"""Listening sockets that clients can reach."""

from __future__ import annotations

import errno
import gc
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError
from fhirpub.http.sockets import _cannot_listen, bind, reserve, reserve_address, why_not

_MOST = int(Path("/proc/sys/net/core/somaxconn").read_text())
_SOONER_THAN_A_SECOND_TRY = 0.5
NOT_OF_THIS_MACHINE = "192.0.2.1"
"""Of TEST-NET-1, RFC 5737."""


def config_of(host: str, port: int) -> Config:
    config = Config()
    return replace(config, server=replace(config.server, host=host, port=port))


@pytest.fixture
def taken() -> Iterator[int]:
    """The port of another service on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_a_port_of_another_service_is_reported_with_the_option(taken: int) -> None:
    with pytest.raises(ConfigurationError) as caught:
        reserve(config_of("127.0.0.1", taken))

    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1 port {taken}: Address already in use; "
        "choose another with --port"
    )


@pytest.mark.filterwarnings("ignore:.*socket")  # Tornado leaves the one that failed open
def test_to_listen_on_a_port_of_another_service_is_an_error_of_the_settings(taken: int) -> None:
    with pytest.raises(ConfigurationError, match=r"in use; choose another with --port") as no:
        bind(config_of("127.0.0.1", taken))

    del no
    gc.collect()  # here, where the warning is ignored, and not in another test


def test_a_port_that_the_workers_of_another_service_share_is_not_shared_with_them() -> None:
    with (
        socket.create_server(("127.0.0.1", 0), reuse_port=True) as other,
        pytest.raises(ConfigurationError, match="already in use"),
    ):
        reserve(config_of("127.0.0.1", other.getsockname()[1]))


def test_an_address_of_another_machine_is_reported_with_the_option() -> None:
    with pytest.raises(ConfigurationError, match=r"requested address; choose another with --host"):
        reserve(config_of(NOT_OF_THIS_MACHINE, 0))


@pytest.mark.parametrize(
    ("number", "option"),
    [(errno.EADDRINUSE, "port"), (errno.EACCES, "port"), (errno.EADDRNOTAVAIL, "host")],
)
def test_the_option_that_would_help_is_named(number: int, option: str) -> None:
    refused = _cannot_listen(config_of("127.0.0.1", 80), OSError(number, "why not"))

    said = f"cannot listen on 127.0.0.1 port 80: why not; choose another with --{option}"
    assert str(refused) == said


@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)]
)
def test_an_address_is_reserved_in_its_family(host: str, family: int) -> None:
    with reserve_address(host, 0) as reserved:
        assert reserved.family == family
        assert reserved.getsockname()[0] == host
        assert reserved.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 1


def test_workers_listen_on_a_port_that_is_reserved_for_them() -> None:
    with reserve_address("127.0.0.1", 0) as reserved:
        port = reserved.getsockname()[1]
        configs = [config_of("127.0.0.1", port)] * 2

        with ExitStack() as stack:
            for config in configs:
                _bound, sockets = bind(config, reuse_port=True)
                for item in sockets:
                    stack.enter_context(item)


def test_the_port_that_the_system_has_chosen_is_in_the_configuration() -> None:
    config, (listening,) = bind(config_of("127.0.0.1", 0))

    with listening:
        assert config.server.port == listening.getsockname()[1] != 0


def test_a_reserved_port_takes_no_connection() -> None:
    with reserve_address("127.0.0.1", 0) as reserved, pytest.raises(ConnectionRefusedError):
        socket.create_connection(reserved.getsockname(), timeout=5)


def test_a_host_that_is_no_valid_name_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fhirpub", "serve", "--host", "a..b"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    message = "Error: cannot listen on a..b port 8080: the host has no valid name; "
    assert (done.returncode, done.stderr) == (1, f"{message}choose another with --host\n")


def test_hundreds_of_clients_may_connect_while_none_is_served() -> None:
    config = Config()
    config, sockets = bind(replace(config, server=replace(config.server, port=0)))
    address = (config.server.host, config.server.port)

    with ExitStack() as stack:
        for item in sockets:
            stack.enter_context(item)
        for _ in range(min(500, _MOST)):
            client = socket.create_connection(address, timeout=_SOONER_THAN_A_SECOND_TRY)
            stack.enter_context(client)


def test_why_an_address_is_refused_is_in_words() -> None:
    assert why_not(OSError(errno.EADDRINUSE, "in use")) == "in use"
    assert why_not(UnicodeError("label empty")) == "the host has no valid name"
