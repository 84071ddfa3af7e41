"""What the clients send: method, address, headers and body of each kind of request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from fhirpub_client import AsyncClient, Client, Document, Secret
from tests.client.recorded import BASE, Recorded, with_async_client, with_client

R4 = f"{BASE}/fhir/r4"
Run = Callable[..., Any]
BOTH = pytest.mark.parametrize("run", [with_client, with_async_client])


def patient(version: int = 1) -> httpx.Response:
    return httpx.Response(200, json={"id": "1"}, headers={"ETag": f'W/"{version}"'})


def created() -> httpx.Response:
    headers = {"Location": f"{R4}/Observation/o-1/_history/1", "ETag": 'W/"1"'}
    return httpx.Response(201, json={"parameter": []}, headers=headers)


@BOTH
@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("1", f"{R4}/DiagnosticReport/1"),
        ("Patient/1", f"{R4}/Patient/1"),
        ("Patient/1/_history/2", f"{R4}/Patient/1/_history/2"),
        ("/fhir/r4/Patient/1", f"{R4}/Patient/1"),
        (f"{R4}/Patient/1", f"{R4}/Patient/1"),
    ],
)
def test_a_resource_is_read_at_its_address(run: Run, address: str, url: str) -> None:
    service = Recorded(patient(4))

    stored = run(service, lambda client: client.read(address))

    (sent,) = service.requests
    assert (sent.method, str(sent.url)) == ("GET", url)
    assert sent.headers["Accept"] == "application/fhir+json"
    assert sent.headers["Authorization"] == "Bearer t-1"
    assert stored.version == 4


@BOTH
def test_an_update_is_a_merge_patch_of_one_version(run: Run) -> None:
    service = Recorded(patient(8))

    version = run(service, lambda client: client.update("1", {"conclusion": None}, version=7))

    (sent,) = service.requests
    assert (sent.method, str(sent.url)) == ("PATCH", f"{R4}/DiagnosticReport/1")
    assert sent.headers["If-Match"] == 'W/"7"'
    assert sent.headers["Content-Type"] == "application/merge-patch+json"
    assert sent.headers["Accept"] == "application/fhir+json"
    assert json.loads(sent.content) == {"conclusion": None}
    assert version == 8


@BOTH
def test_a_registration_of_another_type_is_sent_to_it(run: Run, tmp_path: Path) -> None:
    service = Recorded(created())
    file = tmp_path / "a.txt"
    file.write_bytes(b"abc")
    body = {"parameter": [{"name": "observation", "resource": {}}]}

    registered = run(
        service,
        lambda client: client.register(body, documents=[Document(file)], element="scan"),
        type_name="Observation",
    )

    (sent,) = service.requests
    (entry,) = json.loads(sent.content)["parameter"]
    assert (sent.method, str(sent.url)) == ("POST", f"{R4}/Observation/$register")
    assert sent.headers["Content-Type"] == sent.headers["Accept"] == "application/fhir+json"
    assert sent.headers["Content-Length"] == str(len(sent.content))
    assert "Transfer-Encoding" not in sent.headers
    assert entry["resource"]["scan"][0]["data"] == "YWJj"
    assert registered.id == "o-1"


def test_a_registration_names_its_host_with_the_port() -> None:
    service = Recorded(created())

    with Client("https://fhir.example.org:8443", Secret("i", "s"), transport=service) as client:
        client.register({"parameter": []})

    assert service.requests[0].headers["Host"] == "fhir.example.org:8443"


def test_a_search_asks_for_the_type_with_its_parameters() -> None:
    service = Recorded(httpx.Response(200, json={}))

    found = with_client(service, lambda client: [*client.search({"code": ["a", "b"]})])

    assert found == []
    assert service.requests[0].method == "GET"
    assert str(service.requests[0].url) == f"{R4}/DiagnosticReport?code=a&code=b"
    assert service.requests[0].headers["Accept"] == "application/fhir+json"


def test_a_search_goes_on_at_the_next_link_until_there_is_none() -> None:
    first = {
        "link": [
            {"relation": "self", "url": f"{R4}/DiagnosticReport?a=0"},
            {"relation": "next", "url": f"{R4}/DiagnosticReport?a=1"},
            {"relation": "last", "url": f"{R4}/DiagnosticReport?a=9"},
        ],
        "entry": [{"resource": {"id": "1"}}, {"fullUrl": "urn:x"}],
    }
    last = {"link": [{"relation": "self", "url": f"{R4}/x"}], "entry": [{"resource": {"id": "2"}}]}
    service = Recorded(httpx.Response(200, json=first), httpx.Response(200, json=last))

    found = with_client(service, lambda client: [*client.search({})])

    assert found == [{"id": "1"}, {"id": "2"}]
    assert str(service.requests[1].url) == f"{R4}/DiagnosticReport?a=1"
    assert [sent.headers["Accept"] for sent in service.requests] == ["application/fhir+json"] * 2


def test_a_next_page_of_another_service_is_not_asked_for() -> None:
    link = {"relation": "next", "url": "https://other.example/fhir/r4/DiagnosticReport"}
    service = Recorded(httpx.Response(200, json={"link": [link]}))

    with pytest.raises(ValueError, match="is not an address of"):
        with_client(service, lambda client: [*client.search({})])


@BOTH
def test_a_document_is_downloaded_in_its_own_type(run: Run) -> None:
    service = Recorded(httpx.Response(200, content=b"%PDF"))

    data = run(service, lambda client: client.read_document({"url": "Binary/d"}))

    assert data == b"%PDF"
    assert service.requests[0].method == "GET"
    assert str(service.requests[0].url) == f"{R4}/Binary/d"
    assert service.requests[0].headers["Accept"] == "*/*"


@BOTH
def test_a_document_that_is_in_its_attachment_is_not_downloaded(run: Run) -> None:
    service = Recorded()
    attachment = {"data": "YWJj", "url": "Binary/d"}

    assert run(service, lambda client: client.read_document(attachment)) == b"abc"
    assert service.requests == []


@pytest.mark.parametrize(
    "address",
    [f"{BASE}.evil.example/x", f"{BASE}:8443/x", "http://fhir.example.org/x", f"{BASE}@evil/x"],
)
def test_an_address_that_only_begins_alike_gets_no_token(address: str) -> None:
    service = Recorded()

    with pytest.raises(ValueError, match="is not an address of"):
        with_client(service, lambda client: client.read(address))

    assert service.requests == []
    assert service.token_requests == []


@pytest.mark.parametrize("query", ["identifier=https://lab.example|R-1", "_since=a://b"])
def test_a_relative_address_may_have_a_url_in_its_query(query: str) -> None:
    service = Recorded(patient())

    with_client(service, lambda client: client.read(f"/fhir/r4/Patient/1?{query}"))

    assert str(service.requests[0].url).startswith(f"{R4}/Patient/1?")


def test_a_base_may_end_with_a_slash() -> None:
    service = Recorded(patient())

    with Client(f"{BASE}/", Secret("id", "s"), transport=service) as client:
        client.read(f"{R4}/Patient/1")

    assert str(service.requests[0].url) == f"{R4}/Patient/1"
    assert str(service.token_requests[0].url) == f"{BASE}/oauth/token"


@BOTH
def test_a_client_waits_a_minute_unless_it_is_given_another_time(run: Run) -> None:
    usual = run(Recorded(), _timeout)
    other = run(Recorded(), _timeout, timeout=3)

    assert (usual.read, other.read) == (60.0, 3.0)


def _timeout(client: Any) -> Any:
    found = client._http.timeout
    return found if isinstance(client, Client) else _later(found)


async def _later(found: Any) -> Any:
    return found


@BOTH
@pytest.mark.parametrize("refused", [0, 1])
def test_a_token_is_waited_for_as_long_as_every_other_response(run: Run, refused: int) -> None:
    service = Recorded(*[httpx.Response(401)] * refused, patient())

    run(service, lambda client: client.read("1"), timeout=3)

    every = [*service.token_requests, *service.requests]
    assert len(every) == 2 + 2 * refused
    assert {one.extensions["timeout"]["read"] for one in every} == {3}


def test_a_closed_client_sends_nothing() -> None:
    client = Client(BASE, Secret("id", "s"), transport=Recorded(patient()))
    client.close()

    with pytest.raises(RuntimeError, match="closed"):
        client.read("1")


def test_a_client_is_closed_at_the_end_of_its_block() -> None:
    with Client(BASE, Secret("id", "s"), transport=Recorded(patient())) as client:
        pass

    with pytest.raises(RuntimeError, match="closed"):
        client.read("1")


async def test_a_client_of_an_event_loop_is_closed_at_the_end_of_its_block() -> None:
    async with AsyncClient(BASE, Secret("id", "s"), transport=Recorded(patient())) as client:
        pass

    with pytest.raises(RuntimeError, match="closed"):
        await client.read("1")


@pytest.mark.parametrize("step", ["%2e%2e", "..\\x", "x\\.."])
def test_steps_that_others_may_take_get_no_token(step: str) -> None:
    service = Recorded()

    with pytest.raises(ValueError, match="is not an address of"):
        with_client(service, lambda client: client.read(f"Patient/{step}/other"))

    assert service.requests == service.token_requests == []


def test_a_client_of_an_event_loop_reads_all_pages_of_a_search() -> None:
    pages = [
        {
            "entry": [{"resource": {"id": "1"}}],
            "link": [{"relation": "next", "url": f"{R4}/DiagnosticReport?page=2"}],
        },
        {"entry": [{"resource": {"id": "2"}}], "link": [{"relation": "self", "url": R4}]},
    ]
    service = Recorded(*(httpx.Response(200, json=page) for page in pages))

    async def all_of(client: AsyncClient) -> list[Any]:
        return [each["id"] async for each in client.search({"code": "a"})]

    assert with_async_client(service, all_of) == ["1", "2"]
    assert [sent.headers["Accept"] for sent in service.requests] == ["application/fhir+json"] * 2
    assert [str(sent.url) for sent in service.requests] == [
        f"{R4}/DiagnosticReport?code=a",
        f"{R4}/DiagnosticReport?page=2",
    ]


def test_an_address_of_another_service_is_named_with_the_one_of_the_client() -> None:
    with pytest.raises(ValueError, match=rf"^https://b.example/x is not an address of {BASE}$"):
        with_client(Recorded(), lambda client: client.read("https://b.example/x"))
