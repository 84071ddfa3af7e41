"""Bytes on a socket, for requests that no HTTP library would send."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from fhirpub.testing.service import Answer, Integrator, Service

PATIENCE_SECONDS = 20.0
_STATUS = re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")  # a body ends where the next response begins


@dataclass(frozen=True, slots=True)
class Talk:
    """The service's response, whether it then closed the connection, and read everything sent."""

    received: bytes
    closed: bool
    heard_out: bool

    @property
    def status(self) -> int:
        """The first status, or 0 without a response."""
        return int(self.received.split(b" ", 2)[1]) if self.received else 0

    @property
    def statuses(self) -> list[int]:
        """The status of every response to a pipeline."""
        return [int(item) for item in _STATUS.findall(self.received)]

    @property
    def answer(self) -> Answer:
        """The first response, as an HTTP library would return it."""
        head, _, body = self.received.partition(b"\r\n\r\n")
        _status, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        return Answer(self.status, headers, body)


def talk(service: Service, *pieces: bytes, seconds: float = PATIENCE_SECONDS) -> Talk:
    """Send pieces without reading, then read until there is silence or the connection ends."""
    address = ("127.0.0.1", service.config.server.port)
    with socket.create_connection(address, timeout=PATIENCE_SECONDS) as connection:
        heard_out = _send(connection, pieces)
        received, closed = _listen(connection, seconds)
    return Talk(received, closed, heard_out)


def request(
    service: Service,
    start: str,
    *headers: str,
    body: bytes | Iterable[bytes] = b"",
    host: str = "Host: localhost",
) -> Talk:
    """Send one request with these header lines and `Connection: close`, and nothing else.

    Bytes are sent with the head, so that no limit of time can end between the two.
    """
    lines = [f"{start} HTTP/1.1", *filter(None, [host]), *headers, "Connection: close"]
    head = "".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n"
    return talk(service, head + body) if isinstance(body, bytes) else talk(service, head, *body)


def chunked(body: bytes, size: int = 65_536) -> Iterable[bytes]:
    """Yield a body in chunked encoding."""
    for start in range(0, len(body), size):
        piece = body[start : start + size]
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def _send(connection: socket.socket, pieces: Iterable[bytes]) -> bool:
    """Send until the other side stops reading; return whether it took everything."""
    try:
        for piece in pieces:
            connection.sendall(piece)
    except ConnectionError:
        return False
    return True


def _listen(connection: socket.socket, seconds: float) -> tuple[bytes, bool]:
    connection.settimeout(seconds)
    received = b""
    try:
        while chunk := connection.recv(65_536):
            received += chunk
    except TimeoutError:
        return received, False
    except ConnectionError:
        return received, True
    return received, True


def asking(lab: Integrator, path: str, *more: str) -> socket.socket:
    """Send a GET request without reading the response."""
    wire = socket.create_connection(("127.0.0.1", lab.service.port), timeout=60)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    lines = (
        f"GET {path} HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {lab.token}",
        *more,
        "",
        "",
    )
    wire.sendall("\r\n".join(lines).encode())
    return wire
