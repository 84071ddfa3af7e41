"""The client of threads and the one of event loops, used alike, and a front with faults."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal, Self

import pytest

from fhirpub.testing.service import Integrator, RunningService
from fhirpub_client import AsyncClient, Client, Secret, retries
from fhirpub_client.credentials import Credentials

Fault = Literal["cut reply", "defer"]
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)
_DEFERRED = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"


class Awaited:
    """An asynchronous client whose methods are called as those of the other one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = AsyncClient(*arguments, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            made = getattr(self._client, name)(*arguments, **options)
            return self._loop.run_until_complete(_list(made) if name == "search" else made)

        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._client.close())
        self._loop.close()


async def _list(found: Any) -> list[Any]:
    return [each async for each in found]


Open = Callable[..., Any]


@pytest.fixture(params=[Client, Awaited], ids=["threads", "asyncio"])
def opened(
    request: pytest.FixtureRequest, lab: Integrator, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Open]:
    """Return a function that opens a client of the laboratory, which waits for moments only."""
    monkeypatch.setattr(retries, "PAUSES", (0.01, 0.02, 0.04, 0.08, 0.16))
    clients = []

    def opened(base: str = "", credentials: Credentials | None = None) -> Any:
        service = lab.service
        usual = Secret(lab.client_id, lab.client_secret, service.config.auth.audience)
        clients.append(request.param(base or service.base_url, credentials or usual))
        return clients[-1]

    yield opened
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(opened: Open) -> Any:
    """A client of the laboratory."""
    return opened()


class Front:
    """Passes requests on to a service, but for those of registrations that get a fault."""

    def __init__(self, port: int) -> None:
        self.faults: list[Fault] = []
        """What happens to the next registrations, in turn."""
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        """Answer one request, and close its connection."""
        request = _read_message(connection)
        fault = self.faults.pop(0) if self.faults and b"$register" in request else None
        if fault == "defer":
            connection.sendall(_DEFERRED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            return
        with socket.create_connection(("127.0.0.1", self._port)) as service:
            head, _, body = request.partition(b"\r\n\r\n")
            service.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            response = b"".join(iter(lambda: service.recv(65536), b""))
        if fault == "cut reply":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
            return
        connection.sendall(response)


def _read_message(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    missing = int(fields.get(b"content-length", b"0")) - len(body)
    while missing > 0:
        data += (more := connection.recv(65536))
        missing -= len(more)
    return data.replace(b"\r\nConnection: keep-alive", b"")


@pytest.fixture
def front(service: RunningService) -> Iterator[Front]:
    """A front before the service, as a load balancer is."""
    with Front(service.port) as running:
        yield running
