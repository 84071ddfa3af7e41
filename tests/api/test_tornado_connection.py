"""The service answers through Tornado's own HTTP connection, too: it depends on nothing of ours.

It is slower, and it refuses what breaks HTTP without an OperationOutcome (ADR 5).
"""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Iterable, Iterator
from socket import socket
from typing import Any

import pytest
from tornado.http1connection import HTTP1Connection
from tornado.httpserver import HTTPServer

from fhirpub.http.server import Bounds, Delegate
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import document, register_body

CORRECTED = {"resourceType": "DiagnosticReport", "status": "corrected", "conclusion": "Repeated"}
LARGE = b"%PDF-1.7\n" + bytes(3_000_000)


class TornadoServer:
    """Tornado's server in place of `fhirpub.http.server.Server`."""

    def __init__(self, delegate: Delegate, bounds: Bounds) -> None:
        self._server = HTTPServer(
            delegate,
            max_header_size=bounds.head_bytes,
            max_body_size=bounds.body_bytes,
        )

    def add_sockets(self, sockets: Iterable[socket]) -> None:
        """Take the connections that come to these."""
        self._server.add_sockets(sockets)

    def stop(self) -> None:
        """Take no more connections."""
        self._server.stop()

    def close_idle(self) -> bool:
        """Leave all connections to the end."""
        return False

    async def close_all_connections(self) -> None:
        """Close what is left."""
        await self._server.close_all_connections()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service behind Tornado's connections."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fhirpub.app.server.Server", TornadoServer)
        with RunningService(tmp_path_factory.mktemp("tornado")) as running:
            yield running


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[HTTP1Connection]:
    """The connections of Tornado that a test used."""
    used: list[HTTP1Connection] = []
    write_headers = HTTP1Connection.write_headers

    def record(connection: HTTP1Connection, *given: Any, **more: Any) -> asyncio.Future[None]:
        used.append(connection)
        return write_headers(connection, *given, **more)

    monkeypatch.setattr(HTTP1Connection, "write_headers", record)
    return used


def registered(lab: Integrator, value: str, **changes: Any) -> str:
    """Register a report; return its path."""
    location = lab.register(register_body(value, **changes)).headers["location"]
    return location.partition("/_history")[0]


def test_a_report_is_registered_read_updated_and_found(
    lab: Integrator, seen: list[HTTP1Connection]
) -> None:
    path = registered(lab, "T-1")
    again = lab.register(register_body("T-1"))
    updated = lab.patch(path, CORRECTED, If_Match='W/"1"')
    refused = lab.patch(path, CORRECTED, If_Match='W/"1"')
    found = lab.get("/fhir/r4/DiagnosticReport?status=corrected").json

    assert (again.status, updated.status, refused.status) == (201, 204, 412)
    assert found["total"] == 1
    assert len(seen) == 5


def test_a_large_document_is_sent_whole_and_in_pieces(lab: Integrator) -> None:
    sent = document(LARGE)

    (form,) = lab.get(registered(lab, "T-2", presentedForm=[sent])).json["presentedForm"]

    assert form["data"] == sent["data"]


def test_all_problems_of_a_body_are_reported(lab: Integrator) -> None:
    answer = lab.register(register_body("T-3", status="done", issued="yesterday"))

    assert answer.status == 400
    assert len(answer.issues) > 1


def test_a_batch_is_answered_entry_by_entry(lab: Integrator) -> None:
    entry = {"request": {"method": "GET", "url": "DiagnosticReport/none"}}

    answer = lab.request(
        "POST", "/fhir/r4", {"resourceType": "Bundle", "type": "batch", "entry": [entry] * 3}
    )

    statuses = [each["response"]["status"][:3] for each in answer.json["entry"]]
    assert statuses == ["404"] * 3


def test_a_connection_is_kept_for_the_next_request(lab: Integrator) -> None:
    headers = {"Authorization": f"Bearer {lab.token}"}
    connection = http.client.HTTPConnection("127.0.0.1", lab.service.port, timeout=20)
    statuses = []
    for _ in range(3):
        connection.request("GET", "/fhir/r4/DiagnosticReport/none", headers=headers)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()

    assert statuses == [404, 404, 404]


def test_an_answer_without_a_body_has_none(lab: Integrator) -> None:
    answer: Answer = lab.request("HEAD", registered(lab, "T-4"))

    assert (answer.status, answer.body) == (200, b"")
