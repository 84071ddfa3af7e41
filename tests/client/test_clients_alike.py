"""Both kinds of clients do the same, by what they send and what they make of a response."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from fhirpub_client import Client, Document, Refused, Secret, Unanswered, retries
from tests.client.recorded import BASE, Recorded, with_async_client, with_client

R4 = f"{BASE}/fhir/r4"
Run = Callable[..., Any]
BOTH = pytest.mark.parametrize("run", [with_client, with_async_client])
REPORT = {"name": "diagnosticReport", "resource": {"resourceType": "DiagnosticReport"}}


@pytest.fixture(autouse=True)
def _moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients wait for moments only."""
    monkeypatch.setattr(retries, "PAUSES", (0.001, 0.002, 0.003))


def resource(**headers: str) -> httpx.Response:
    return httpx.Response(200, json={"id": "1"}, headers={"ETag": 'W/"12"', **headers})


def created() -> httpx.Response:
    headers = {"Location": f"{R4}/DiagnosticReport/d-1/_history/1", "ETag": 'W/"1"'}
    return httpx.Response(201, json={"parameter": []}, headers=headers)


@BOTH
def test_the_scope_is_asked_for(run: Run) -> None:
    service = Recorded(resource())

    run(service, lambda client: client.read("1"), scope="system/Patient.r")

    (sent,) = service.token_requests
    assert parse_qs(sent.content.decode())["scope"] == ["system/Patient.r"]


@BOTH
def test_without_a_scope_none_is_asked_for(run: Run) -> None:
    service = Recorded(resource())

    run(service, lambda client: client.read("1"))

    assert "scope" not in parse_qs(service.token_requests[0].content.decode())


@BOTH
@pytest.mark.parametrize("status", [300, 302, 307, 308])
def test_a_redirect_is_refused_whatever_the_options(run: Run, status: int) -> None:
    service = Recorded(httpx.Response(status, headers={"Location": f"{R4}/Patient/2"}))

    with pytest.raises(Refused) as refused:
        run(service, lambda client: client.read("1"), follow_redirects=True)

    assert refused.value.status == status
    assert len(service.requests) == 1


@BOTH
@pytest.mark.parametrize("place", ["within", "beside"])
def test_a_document_of_another_hash_is_refused_wherever_it_is(run: Run, place: str) -> None:
    service = Recorded(httpx.Response(200, content=b"one"))
    found = {"data": base64.b64encode(b"one").decode()} if place == "within" else {"url": "x/1"}
    attachment = {**found, "hash": hashlib.sha256(b"two").hexdigest()}

    with pytest.raises(ValueError, match="another hash"):
        run(service, lambda client: client.read_document(attachment))


@BOTH
def test_a_registration_has_its_length_and_is_sent_whole_each_time(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "scan.pdf"
    file.write_bytes(b"x" * 500_000)
    service = Recorded(httpx.ReadError("cut"), httpx.Response(503), created())

    def register(client: Any) -> Any:
        return client.register({"parameter": [REPORT]}, documents=[Document(file)])

    run(service, register)

    sizes = [(int(sent.headers["Content-Length"]), len(sent.content)) for sent in service.requests]
    assert len({*sizes}) == 1
    assert sizes[0][0] == sizes[0][1] > 600_000
    assert len({sent.content for sent in service.requests}) == 1


LOST = [httpx.ReadTimeout("x"), httpx.ConnectError("x"), httpx.RemoteProtocolError("x")]


@BOTH
@pytest.mark.parametrize("problem", LOST, ids=lambda one: type(one).__name__)
def test_a_request_without_a_response_is_sent_again_and_then_left_open(
    run: Run, problem: Exception
) -> None:
    service = Recorded(problem, resource())
    assert run(service, lambda client: client.read("1")).version == 12

    away = Recorded(*[problem] * 4)
    with pytest.raises(Unanswered, match=type(problem).__name__):
        run(away, lambda client: client.read("1"))
    assert len(away.requests) == 4


@BOTH
def test_a_service_that_always_defers_leaves_it_open_with_its_last_answer(run: Run) -> None:
    service = Recorded(*[httpx.Response(503) for _ in range(4)])

    with pytest.raises(Unanswered) as unanswered:
        run(service, lambda client: client.read("1"))

    assert isinstance(unanswered.value.__cause__, Refused)
    assert len(service.requests) == 4


@BOTH
def test_an_update_names_the_version_that_it_is_for(run: Run) -> None:
    service = Recorded(resource())

    version = run(service, lambda client: client.update("1", {"status": "amended"}, version=11))

    assert service.requests[0].headers["If-Match"] == 'W/"11"'
    assert version == 12


@BOTH
def test_each_request_is_tried_as_often_as_the_first(run: Run) -> None:
    defers = [httpx.Response(503) for _ in range(3)]
    service = Recorded(*defers, resource(), *defers, resource())

    def twice(client: Any) -> Any:
        if run is with_client:
            return [client.read("1"), client.read("2")]
        return _both(client)

    assert [found.version for found in run(service, twice)] == [12, 12]


async def _both(client: Any) -> list[Any]:
    return [await client.read("1"), await client.read("2")]


@pytest.mark.parametrize("base", ["HTTPS://FHIR.Example.ORG", f"{BASE}/", f"{BASE}//"])
def test_the_base_address_may_be_written_in_other_ways(base: str) -> None:
    service = Recorded(resource(), resource())

    with Client(base, Secret("id", "secret"), transport=service) as client:
        client.read("Patient/1")
        client.read(f"{R4}/Patient/1")

    assert {str(sent.url) for sent in service.requests} == {f"{R4}/Patient/1"}
