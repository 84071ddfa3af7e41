"""The published service runs as its arguments say, and its integrator sends what it is given."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.clock import HandClock
from fhirpub.testing.receiver import Received, Receiver, Reply
from fhirpub.testing.service import Answer, Integrator, RunningService, Service
from tests.bodies import register_body

NOW = 1_795_000_000_000
CUSTOM = replace(Config(), auth=replace(Config().auth, audience="urn:service"))


class At(Service):
    """A service in whose place there is a receiver."""

    def __init__(self, receiver: Receiver) -> None:
        self.config = replace(CUSTOM, server=replace(CUSTOM.server, port=receiver.port))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        running.answer(Reply(status=200, body=b'{"access_token":"t-2"}', headers={"X-One": "1"}))
        yield running


@pytest.fixture
def caller(receiver: Receiver) -> Integrator:
    """An integrator whose requests a receiver gets."""
    tenant = Tenant.new("Lab", created=1)
    return Integrator(At(receiver), tenant, "id", "secret", token="t-1")


def sent(receiver: Receiver) -> Received:
    (received,) = receiver.wait(1)
    return received


def claims(integrator: Integrator) -> dict[str, Any]:
    part = integrator.token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


# What an integrator sends


def test_a_request_has_token_and_type(caller: Integrator, receiver: Receiver) -> None:
    caller.request("POST", "/fhir/r4/x", {"a": 1})

    received = sent(receiver)
    assert received.headers["authorization"] == "Bearer t-1"
    assert received.headers["content-type"] == "application/fhir+json"
    assert received.json == {"a": 1}


def test_headers_replace_the_usual_ones(caller: Integrator, receiver: Receiver) -> None:
    usual = {"Authorization": "Basic x", "Content-Type": "text/plain"}
    caller.request("POST", "/fhir/r4/x", b"a", usual)

    received = sent(receiver)
    assert received.headers["authorization"] == "Basic x"
    assert received.headers["content-type"] == "text/plain"


@pytest.mark.parametrize(("body", "raw"), [({}, b"{}"), ([], b"[]"), (b"", b""), (b"x", b"x")])
def test_an_empty_body_is_one(
    caller: Integrator, receiver: Receiver, body: object, raw: bytes
) -> None:
    caller.request("POST", "/fhir/r4/x", body)

    received = sent(receiver)
    assert (received.body, received.headers["content-type"]) == (raw, "application/fhir+json")


def test_a_request_without_a_body_has_no_type(caller: Integrator, receiver: Receiver) -> None:
    caller.get("/fhir/r4/x")

    assert "content-type" not in sent(receiver).headers


def test_a_url_of_the_service_is_a_path_of_it(caller: Integrator, receiver: Receiver) -> None:
    caller.get(f"{caller.service.base_url}/fhir/r4/Patient?a=1")

    assert sent(receiver).path == "/fhir/r4/Patient?a=1"


@pytest.mark.parametrize("method", ["get", "register", "patch"])
def test_each_underscore_in_the_name_of_a_header_is_a_hyphen(
    caller: Integrator, receiver: Receiver, method: str
) -> None:
    arguments: dict[str, tuple[Any, ...]] = {
        "get": ("/x",),
        "register": ({},),
        "patch": ("/x", {}),
    }

    getattr(caller, method)(*arguments[method], If_None_Match='W/"1"', Prefer="x")

    headers = sent(receiver).headers
    assert (headers["if-none-match"], headers["prefer"]) == ('W/"1"', "x")


def test_a_registration_is_one_of_its_type(caller: Integrator, receiver: Receiver) -> None:
    caller.register({}, type_name="Specimen")

    assert (sent(receiver).method, sent(receiver).path) == ("POST", "/fhir/r4/Specimen/$register")


def test_a_token_is_asked_for_with_the_audience_of_the_settings(
    caller: Integrator, receiver: Receiver
) -> None:
    caller.log_in()

    assert caller.token == "t-2"
    form = {name: values[0] for name, values in parse_qs(sent(receiver).body.decode()).items()}
    assert form == {
        "grant_type": "client_credentials",
        "client_id": "id",
        "client_secret": "secret",
        "audience": "urn:service",
    }


@pytest.mark.parametrize("status", [201, 400, 401, 503])
def test_a_service_that_gives_no_token_is_an_error_with_its_answer(
    caller: Integrator, receiver: Receiver, status: int
) -> None:
    receiver.answer(Reply(status=status, body=b"why not"))

    with pytest.raises(RuntimeError, match=f"no token: {status} why not"):
        caller.log_in()
    assert caller.token == "t-1"


def test_nothing_secret_is_printed(caller: Integrator) -> None:
    assert "secret'" not in repr(caller)
    assert "t-1" not in repr(caller)


# What it gets


def test_an_answer_has_headers_in_lower_case(caller: Integrator) -> None:
    answer = caller.get("/x")

    assert (answer.headers["x-one"], answer.json) == ("1", {"access_token": "t-2"})


def test_an_answer_names_the_problems_and_places_of_all_issues() -> None:
    issues = [
        {"details": {"coding": [{"code": "one"}]}, "expression": ["a", "b"]},
        {"details": {"coding": [{"code": "two"}]}},
        {"details": {"coding": [{"code": "three"}]}, "expression": ["c"]},
    ]
    answer = Answer(422, {}, json.dumps({"issue": issues}).encode())

    assert answer.issues == issues
    assert answer.problems == ["one", "two", "three"]
    assert answer.issue_expressions == {"a", "b", "c"}


# The service


def test_its_port_is_free_and_its_store_in_the_folder_whatever_the_settings(
    tmp_path: Path,
) -> None:
    server = replace(Config().server, host="0.0.0.0", port=80)
    storage = replace(Config().storage, url="sqlite:////other.db")

    made = RunningService(tmp_path, config=replace(CUSTOM, server=server, storage=storage))

    assert (made.config.server.host, made.config.server.port) == ("127.0.0.1", 0)
    assert made.config.storage.url == f"sqlite:///{tmp_path}/fhirpub.db"
    assert made.config.auth.audience == "urn:service"


def test_its_store_is_the_one_that_is_named(tmp_path: Path) -> None:
    made = RunningService(tmp_path, store_url=f"sqlite:///{tmp_path}/other.db")

    assert made.config.storage.url == f"sqlite:///{tmp_path}/other.db"


def test_it_has_the_clock_the_store_and_the_settings_that_it_is_given(tmp_path: Path) -> None:
    opened: list[str] = []

    @asynccontextmanager
    async def noting(config: Config, **options: Any) -> AsyncIterator[Store]:
        opened.append(config.storage.url)
        async with open_store(config, **options) as store:
            yield store

    clock = HandClock(NOW)
    running = RunningService(tmp_path, config=CUSTOM, clock=clock, open_store=noting)
    with running as service:
        lab = service.integrator(scopes=("system/DiagnosticReport.r",))
        other = service.another_client(lab.tenant, scopes=("system/Patient.r",))
        port = service.port

    assert opened == [f"sqlite:///{tmp_path}/fhirpub.db"]
    assert claims(lab)["iat"] == NOW // 1000
    assert claims(lab)["scope"] == "system/DiagnosticReport.r"
    assert claims(other)["scope"] == "system/Patient.r"
    assert (other.tenant, other.client_id != lab.client_id) == (lab.tenant, True)
    assert not service._thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_what_its_start_raises_is_raised_in_the_test_and_its_port_is_free(tmp_path: Path) -> None:
    def failing(_config: Config, **_options: Any) -> Any:
        raise LookupError("no store")

    running = RunningService(tmp_path, open_store=failing)

    with pytest.raises(LookupError, match="no store"), running:
        pass

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", running.port))


def test_what_a_coroutine_raises_is_raised_in_the_test(service: RunningService) -> None:
    async def failing() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        service.call(failing())


def test_integrators_of_two_names_are_of_two_tenants(service: RunningService) -> None:
    one, other = service.integrator("One"), service.integrator("Other")
    answer = one.register(register_body("A-1"))

    assert (one.tenant.name, other.tenant.name) == ("One", "Other")
    address = answer.headers["location"].partition("/_history")[0]
    assert [one.get(address).status, other.get(address).status] == [200, 404]
