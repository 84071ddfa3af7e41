"""fhirpub-client against the service, in both kinds: registers, reads, repeats, refuses."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from fhirpub.auth.clients import NewClient, add_client
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.service import Integrator, RunningService
from fhirpub_client import Client, Document, PrivateKey, Refused, Secret, Unanswered, retries
from tests.bodies import register_body
from tests.client.conftest import Fault, Front, Open
from tests.unit.auth.assertions.signing import key_set, pair

TYPE_OF_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    """A document that takes several pieces."""
    file = tmp_path / "scan.pdf"
    file.write_bytes(b"%PDF-1.4 " + bytes(range(256)) * 2_000 + b"!")
    return file


def body(value: str = "R-1", **changes: Any) -> dict[str, Any]:
    """Return a registration, with a small document in it."""
    return register_body(value, **changes)


def test_a_report_is_registered_with_its_file_and_read_back_whole(client: Any, scan: Path) -> None:
    registered = client.register(body(), documents=[Document(scan)])

    read = client.read(registered.id)
    _small, attachment = read.resource["presentedForm"]
    assert (registered.version, registered.is_replayed, registered.is_different) == (
        1,
        False,
        False,
    )
    assert read.version == 1
    assert attachment["contentType"] == "application/pdf"
    assert attachment["title"] == "scan.pdf"
    assert attachment["hash"] == hashlib.sha256(scan.read_bytes()).hexdigest()
    assert client.read_document(attachment) == scan.read_bytes()


def test_a_document_that_is_only_named_is_downloaded(client: Any, scan: Path) -> None:
    registered = client.register(body(), documents=[Document(scan)])
    digest = hashlib.sha256(scan.read_bytes()).hexdigest()

    named = {"url": f"Binary/{digest}", "hash": digest}

    assert client.read_document(named) == scan.read_bytes()
    with pytest.raises(ValueError, match="another hash"):
        client.read_document(named | {"hash": "0" * 64})
    assert registered.location.endswith("/_history/1")


def test_the_second_registration_is_a_replay(client: Any) -> None:
    first = client.register(body())
    second = client.register(body())

    assert second.is_replayed
    assert (second.id, second.body) == (first.id, first.body)
    assert not second.is_different


def test_an_identifier_of_another_report_is_noticed(client: Any) -> None:
    client.register(body())

    assert client.register(body(conclusion="Another report.")).is_different


@pytest.mark.parametrize("fault", ["cut reply", "defer"])
def test_a_registration_that_got_no_response_is_sent_again(
    opened: Open, front: Front, scan: Path, fault: Fault
) -> None:
    client = opened(front.url)
    front.faults = [fault, fault]

    registered = client.register(body(), documents=[Document(scan)])

    assert front.faults == []
    assert registered.version == 1
    assert registered.is_replayed == (fault == "cut reply")


def test_a_service_that_cannot_be_reached_leaves_it_open(opened: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]

    with pytest.raises(Unanswered):
        opened(f"http://127.0.0.1:{port}").register(body())


def test_a_service_that_always_defers_leaves_it_open(opened: Open, front: Front) -> None:
    front.faults = ["defer"] * 6

    with pytest.raises(Unanswered, match="defers"):
        opened(front.url).register(body())


def test_a_token_that_was_revoked_is_replaced(client: Any, lab: Integrator) -> None:
    client.register(body())
    token = client_token(client)
    fields = {
        "token": token,
        "client_id": lab.client_id,
        "client_secret": lab.client_secret,
    }
    lab.service.request(
        "POST", "/oauth/revoke", urlencode(fields).encode(), headers=dict(TYPE_OF_FORM)
    )

    assert client.register(body()).is_replayed
    assert client_token(client) != token


def client_token(client: Any) -> str:
    opened = getattr(client, "_client", client)
    token: str = opened._http.auth._token
    return token


def test_one_token_serves_many_requests(client: Any) -> None:
    client.register(body())
    token = client_token(client)

    client.search({"status": "final"})

    assert client_token(client) == token


def test_a_wrong_secret_is_refused(opened: Open, lab: Integrator) -> None:
    wrong = Secret(lab.client_id, "fhirsk_wrong", lab.service.config.auth.audience)

    with pytest.raises(Refused) as refusal:
        opened(credentials=wrong).read("x")

    assert refusal.value.status == 401
    assert refusal.value.problems[0].code == "invalid_client"


def test_a_private_key_proves_a_client(
    opened: Open, service: RunningService, lab: Integrator
) -> None:
    signer = pair("ES384")
    new = NewClient(
        tenant=lab.tenant.id,
        name="ward",
        environment="sandbox",
        scopes=("system/DiagnosticReport.cruds",),
        jwks=key_set(signer).decode(),
    )
    added, _secret = service.call(add_client(service.services.store, new, clock=now_ms))
    key = signer.private.as_dict(private=True) | {"kid": signer.private.kid}

    client = opened(credentials=PrivateKey(added.id, key))

    assert client.register(body()).version == 1


def test_every_problem_of_a_body_is_named_with_its_place(client: Any) -> None:
    with pytest.raises(Refused) as refusal:
        client.register(body(status="unheard", code=None))

    places = {place for problem in refusal.value.problems for place in problem.places}
    assert refusal.value.status == 400
    assert len(refusal.value.problems) >= 2
    assert any(place.endswith(".status") for place in places)
    assert refusal.value.request_id


def test_a_search_yields_what_all_pages_have(client: Any) -> None:
    ids = {client.register(body(f"R-{number}")).id for number in range(5)}

    found = [*client.search({"status": "final", "_count": "2"})]

    assert {resource["id"] for resource in found} == ids


def test_an_update_returns_the_new_version_and_a_stale_one_is_refused(client: Any) -> None:
    registered = client.register(body())

    assert client.update(registered.id, {"conclusion": "New."}, version=1) == 2
    with pytest.raises(Refused) as refusal:
        client.update(registered.id, {"conclusion": "Stale."}, version=1)
    assert refusal.value.status == 412
    assert client.read(registered.location).resource.get("conclusion") != "New."


@pytest.mark.parametrize(
    "address", ["https://other.example/fhir/r4/Patient/1", "http://127.0.0.1:"]
)
def test_no_token_goes_to_another_service(client: Any, address: str) -> None:
    with pytest.raises(ValueError, match="is not an address of"):
        client.read(address)


@pytest.mark.parametrize(
    "address",
    [
        "../../../../other",
        "/../other",
        "http://127.0.0.1:1/fhirpub/../other",
        "%2e%2e/%2E%2e/%2e%2e/other",
        "..\\..\\..\\other",
    ],
)
def test_no_token_leaves_the_path_of_the_service(opened: Open, address: str) -> None:
    with pytest.raises(ValueError, match="is not an address of"):
        opened("http://127.0.0.1:1/fhirpub").read(address)


def test_a_redirect_gets_neither_secret_nor_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "PAUSES", ())
    with (
        socket.create_server(("127.0.0.1", 0)) as elsewhere,
        socket.create_server(("127.0.0.1", 0)) as service,
    ):
        elsewhere.settimeout(0)
        target = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/"
        thread = threading.Thread(target=_redirect, args=(service, target))
        thread.start()
        base = f"http://127.0.0.1:{service.getsockname()[1]}"
        with (
            Client(base, Secret("id", "secret"), follow_redirects=True, timeout=30) as client,
            pytest.raises(Refused, match="307"),
        ):
            client.register(body())
        thread.join()

        with pytest.raises(BlockingIOError):
            elsewhere.accept()


def _redirect(service: socket.socket, target: str) -> None:
    connection, _ = service.accept()
    with connection:
        connection.recv(65536)
        head = f"HTTP/1.1 307 Moved\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"
        connection.sendall(head.encode())


def test_documents_need_the_entry_of_the_report(client: Any, scan: Path) -> None:
    with pytest.raises(ValueError, match="no entry diagnosticReport"):
        client.register({"resourceType": "Parameters"}, documents=[Document(scan)])


@pytest.mark.parametrize("credentials", [Secret("id", "word"), PrivateKey("id", {"d": "word"})])
def test_what_is_printed_of_credentials_has_no_secret(credentials: object) -> None:
    assert "word" not in repr(credentials)
    assert "word" not in json.dumps(str(credentials))
