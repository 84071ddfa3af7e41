"""The listener of administration: slow clients, proxies, and forms of the address."""

from __future__ import annotations

import hashlib
import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from urllib.parse import urlsplit

import orjson
import pytest

from fhirpub.administration.http.listener import MAX_CONNECTIONS
from fhirpub.config.administration import AdminConfig
from fhirpub.config.settings import Config
from fhirpub.testing.service import Answer, RunningService
from tests.administration.conftest import BOOTSTRAP_KEY
from tests.ports import free_port
from tests.waiting import wait_until

_BODY_SECONDS = 0.5
_AUTHORIZATION = {"Authorization": f"Bearer {BOOTSTRAP_KEY}"}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where a service behind a proxy serves administration; it waits shortly for bodies."""
    hashed = hashlib.sha256(BOOTSTRAP_KEY.encode()).hexdigest()
    base = Config()
    config = replace(
        base,
        admin=AdminConfig(port=free_port(), bootstrap_key_hash=hashed),
        server=replace(base.server, trusted_proxies=["127.0.0.1"]),
        limits=replace(base.limits, body_seconds=_BODY_SECONDS),
    )
    with RunningService(tmp_path_factory.mktemp("listener"), config=config):
        yield config.admin.port


def ask(port: int, method: str, target: str, **headers: str) -> Answer:
    """Send a request in one piece: its body must not come late on a busy machine."""
    body = b'{"name": "Lab"}' if method == "POST" else b""
    host = {"Host": urlsplit(target).netloc or f"127.0.0.1:{port}"}
    sent = host | _AUTHORIZATION | {"Content-Type": "application/json"} | headers
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in sent.items()]
    lines = [f"{method} {target} HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall("\r\n".join(lines).encode() + body)
        with closing(http.client.HTTPResponse(connection, method=method)) as response:
            response.begin()
            return Answer(response.status, dict(response.getheaders()), response.read())


def begin(port: int) -> socket.socket:
    """Send the head of a request, without a key, and no body."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(b"POST /admin/v1/token HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
    return connection


def test_a_body_that_does_not_come_is_refused_and_its_connection_closed(port: int) -> None:
    with begin(port) as connection:
        received = b"".join(iter(lambda: connection.recv(65_536), b""))

    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    (issue,) = orjson.loads(body)["issue"]
    assert issue["details"]["coding"][0]["code"] == "request-timeout"


def test_clients_that_send_no_body_do_not_lock_others_out_for_long(port: int) -> None:
    with ExitStack() as held:
        for _ in range(MAX_CONNECTIONS):
            held.enter_context(begin(port))

        assert wait_until(lambda: ask(port, "GET", "/admin/v1/tenants").status == 200)

    # The next test may not come before the service has noticed that these are closed.
    assert wait_until(lambda: ask(port, "GET", "/admin/v1/tenants").status == 200)


def test_a_body_that_is_too_long_is_refused_once(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(
            b"POST /admin/v1/token HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n"
        )
        received = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert received.count(b"HTTP/1.1 ") == 1
    assert received.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [("192.0.2.7", "192.0.2.7"), ("198.51.100.1, 192.0.2.7", "192.0.2.7"), ("x", "127.0.0.1")],
)
def test_the_address_behind_a_trusted_proxy_is_recorded(
    port: int, forwarded: str, address: str
) -> None:
    tenant = ask(port, "POST", "/admin/v1/tenants", X_Forwarded_For=forwarded).json["id"]

    (ended,) = ask(port, "GET", f"/admin/v1/audit/{tenant}/records").json["records"]

    assert ended["address"] == address


def test_a_connection_goes_on_after_a_response_to_head(port: int) -> None:
    lines = f"HEAD /admin/v1/tenants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {BOOTSTRAP_KEY}"
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(f"{lines}\r\n\r\n{lines}\r\nConnection: close\r\n\r\n".encode())
        received = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert received.count(b"HTTP/1.1 405 ") == 2
    assert received.endswith(b"\r\n\r\n")


def test_an_address_in_its_absolute_form_is_the_same(port: int) -> None:
    assert ask(port, "GET", "http://admin.example.org/admin/v1/tenants").status == 200


@pytest.mark.parametrize("name", ["%ff", "%ED%A0%80", "a%C3"])
def test_a_name_that_is_not_utf_8_is_refused(port: int, name: str) -> None:
    answer = ask(port, "GET", f"/admin/v1/tenants/{name}")

    assert (answer.status, answer.problems) == (400, ["request-malformed"])


@pytest.mark.parametrize(
    ("head", "status", "problem"),
    [
        (
            b"GET /admin/v1/tenants HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n",
            400,
            "request-malformed",
        ),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000, 431, "head-too-large"),
        (b"GET /" + b"x" * 20_000, 414, "address-too-long"),
    ],
)
def test_what_breaks_http_gets_an_outcome(
    port: int, head: bytes, status: int, problem: str
) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(head)
        received = b"".join(iter(lambda: connection.recv(65_536), b""))

    start, _, body = received.partition(b"\r\n\r\n")
    (issue,) = orjson.loads(body)["issue"]
    assert start.startswith(b"HTTP/1.1 %d " % status)
    assert issue["details"]["coding"][0]["code"] == problem
