"""The OpenAPI document describes the interface correctly and completely.

With ``HYPOTHESIS=long`` in the environment schemathesis tries far more, with every resource type.
With ``scripts/test --full`` it also tries each boundary of each operation.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator, ValidationError
from openapi_spec_validator import OpenAPIV31SpecValidator

from fhirpub.app.context import create_context
from fhirpub.config.loader import variable
from fhirpub.config.settings import Config, FhirConfig, PluginsConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.interactions.cursors import CURSOR
from fhirpub.interactions.match import ABOUT_THE_ANSWER
from fhirpub.interactions.validate import TRIED
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.openapi.document import TABLE
from fhirpub.web.routes import Route, routes
from fhirpub.webhooks.transport.envelope import events_of
from tests.audit_trail import a_record, fill
from tests.bodies import PDF, register_body
from tests.openapi_references import followed
from tests.rounds import ONLY_FULL
from tests.shelf import SHELF
from tests.waiting import wait_until

_HERE = Path(__file__).parent
_LONG = variable("HYPOTHESIS") == "long"
_EXAMPLES = {"stateful": 10}
_BOUNDARIES = pytest.param("coverage", marks=ONLY_FULL)
_WORKFLOWS = pytest.param("stateful", marks=ONLY_FULL)
_UNREACHABLE = "http://127.0.0.1:1/"


@pytest.fixture
def document(service: RunningService) -> Any:
    return service.request("GET", "/openapi.json").json


@pytest.fixture
def table(service: RunningService) -> list[Route]:
    return routes(service.services)


def documented(document: Any) -> set[tuple[str, str]]:
    return {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
    }


def test_the_document_is_valid_openapi_and_needs_no_token(service: RunningService) -> None:
    answer = service.request("GET", "/openapi.json")

    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json["openapi"].startswith("3.1.")
    assert not [*OpenAPIV31SpecValidator(answer.json).iter_errors()]


def test_every_reference_leads_to_a_place_in_the_document(document: Any) -> None:
    assert followed(document)


def test_what_a_receiver_gets_is_described(
    service: RunningService, lab: Integrator, document: Any
) -> None:
    lab.register(register_body("event"))
    (_tenant, entry), *_ = service.call(service.services.store.pending_outbox(limit=1))
    (event,) = events_of(entry, fhir_url="https://fhir.example")
    about = document["webhooks"][event.type]["post"]["requestBody"]["content"]
    schema = {**document, **about["application/json"]["schema"]}

    Draft202012Validator(schema).validate(orjson.loads(event.body(sequence=1)))
    with pytest.raises(ValidationError):
        Draft202012Validator(schema).validate({"event_type": event.type})


def test_every_event_that_is_sent_is_described(document: Any, lab: Integrator) -> None:
    event_types = lab.get("/webhooks/v1/event-types").json["event_types"]

    assert {*document["webhooks"]} == {item["name"] for item in event_types}


def test_a_client_that_has_the_document_gets_304(service: RunningService) -> None:
    tag = service.request("GET", "/openapi.json").headers["etag"]

    answer = service.request("GET", "/openapi.json", headers={"If-None-Match": tag})

    assert (answer.status, answer.body) == (304, b"")


def test_what_any_path_may_answer_is_said_once(service: RunningService, document: Any) -> None:
    answers = [
        service.request("PUT", "/metadata"),
        service.request("GET", f"/metadata?{'a' * 20_000}"),
        service.request("GET", "/metadata", headers={"X-Long": "a" * 20_000}),
    ]

    assert [answer.status for answer in answers] == [405, 414, 431]
    assert all(str(answer.status) in document["info"]["description"] for answer in answers)


def test_a_304_is_described_with_the_tag_that_it_has(document: Any) -> None:
    described = [
        {*operation["responses"]["304"]["headers"]} - {"RateLimit", "RateLimit-Policy"}
        for operations in document["paths"].values()
        for operation in operations.values()
        if "304" in operation["responses"]
    ]

    assert described == [{"X-Request-Id", "ETag"}] * len(described) != []


def test_the_fields_of_quotas_are_described_wherever_requests_are_counted(document: Any) -> None:
    described = {
        operation["operationId"]
        for operations in document["paths"].values()
        for operation in operations.values()
        for status, response in operation["responses"].items()
        if status < "300" and {"RateLimit", "RateLimit-Policy"} <= {*response["headers"]}
    }
    refused = document["components"]["responses"]["TooManyRequests"]["headers"]

    assert {"registerDiagnosticReport", "readBinary", "addEndpoint"} <= described
    assert not {"token", "keys", "live", "openapi", "capabilities"} & described
    assert {"RateLimit", "RateLimit-Policy", "Retry-After"} <= {*refused}


def test_of_webhooks_these_alone_have_a_rule_that_can_be_broken(document: Any) -> None:
    named = {
        operation["operationId"]
        for path, operations in document["paths"].items()
        for operation in operations.values()
        if path.startswith("/webhooks/") and "422" in operation["responses"]
    }

    assert named == {
        *("addEndpoint", "enableEndpoint", "pauseEndpoint", "rotateSecret"),
        *("replay", "testEndpoint", "verifyEndpoint"),
    }


def test_every_documented_path_is_a_route_and_every_route_documented(
    document: Any, table: list[Route]
) -> None:
    def plain(path: str) -> str:
        return "/".join("{}" if "{" in part else part for part in path.split("/"))

    found = {(method, plain(path)) for method, path in documented(document)}

    assert found == {(route.method, route.path) for route in table}


def test_the_table_has_an_entry_for_every_handler_and_no_other(service: RunningService) -> None:
    public = replace(Config(), fhir=FhirConfig(metadata_public=True))
    several = replace(Config(), plugins=PluginsConfig(enabled=["diagnosticreport", "encounter"]))
    context = create_context(several, clock=service.services.clock)
    tables = [
        routes(services)
        for services in (
            service.services,
            replace(service.services, config=public),
            replace(service.services, context=context),
        )
    ]

    assert {(route.handler, route.method) for table in tables for route in table} == set(TABLE)


def test_operations_without_a_token_are_marked_as_such(document: Any, table: list[Route]) -> None:
    without = {
        path.split("{")[0]
        for path, operations in document["paths"].items()
        for operation in operations.values()
        if not operation["security"]
    }

    assert without == {
        route.path.split("{")[0] for route in table if not route.handler.requires_token
    }


def test_a_search_has_the_parameters_that_are_read_and_no_other(
    lab: Integrator, document: Any
) -> None:
    declared = {
        parameter["name"]
        for resource in lab.get("/metadata").json["rest"][0]["resource"]
        if resource["type"] == "DiagnosticReport"
        for parameter in resource["searchParam"]
    }

    search = document["paths"]["/fhir/r4/DiagnosticReport"]["get"]
    named = {
        parameter["name"] if "name" in parameter else parameter["$ref"].rpartition("/")[2]
        for parameter in search["parameters"]
    }

    assert declared
    assert named == declared | ABOUT_THE_ANSWER | {CURSOR, "Prefer"}


@pytest.fixture(scope="module")
def of_every_type(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with every resource type of the included plugins."""
    config = Config(plugins=PluginsConfig(enabled=SHELF))
    with RunningService(tmp_path_factory.mktemp("shelf"), config=config) as running:
        yield running


@pytest.mark.parametrize("form", ["application/fhir+json", "application/fhir+xml"])
@pytest.mark.parametrize("operation", ["/$register", "", "/$validate"])
def test_the_examples_of_every_type_work_in_both_forms(
    of_every_type: RunningService, operation: str, form: str
) -> None:
    lab = of_every_type.integrator()
    paths = lab.get("/openapi.json").json["paths"]

    for type_name in of_every_type.services.types:
        path = f"/fhir/r4/{type_name}{operation}"
        example = paths[path]["post"]["requestBody"]["content"]["application/fhir+json"]["example"]
        body = write_xml(example) if form.endswith("xml") else example

        answer = lab.request("POST", path, body, {"Content-Type": form})

        assert answer.status < 300, (type_name, answer.body)
        assert b'"error"' not in answer.body


def test_validate_takes_what_is_said_of_its_parameters_and_nothing_else(
    lab: Integrator, document: Any
) -> None:
    path = "/fhir/r4/DiagnosticReport/$validate"
    described = {
        parameter["name"]: parameter["schema"]["enum"]
        for parameter in document["paths"][path]["post"]["parameters"]
        if "name" in parameter
    }

    def status(name: str, value: str) -> int:
        return lab.request("POST", f"{path}?{name}={value}", register_body("tries")).status

    assert described.keys() == {*TRIED}
    for name, values in described.items():
        assert [status(name, item) for item in values] == [200] * len(values)
        assert status(name, "another") == 400


# The description compared with the service.


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that may send to a port without a listener."""
    config = Config(
        plugins=PluginsConfig(enabled=SHELF if _LONG else ["diagnosticreport"]),
        webhooks=WebhooksConfig(allow_networks=["127.0.0.1/32"], timeout_seconds=1.0),
    )
    with RunningService(tmp_path_factory.mktemp("tried"), config=config) as running:
        yield running


def test_a_replay_takes_the_sequences_that_are_described_and_no_others(
    tried: RunningService,
) -> None:
    lab, document = tried.integrator(), tried.request("GET", "/openapi.json").json
    operation = document["paths"]["/webhooks/v1/endpoints/{id}/replay"]["post"]
    fields = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]
    least, most = fields["from_seq"]["minimum"], fields["from_seq"]["maximum"]
    added = tried.services.endpoints.add(lab.tenant.id, {"url": _UNREACHABLE}, trusted=True)
    place = f"/webhooks/v1/endpoints/{tried.call(added).endpoint.id}/replay"

    statuses = [
        lab.request("POST", place, {"from_seq": item}).status
        for item in (least - 1, least, most, most + 1)
    ]

    assert statuses == [400, 200, 200, 400]


@pytest.fixture(scope="module")
def given(tried: RunningService, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The input of schemathesis: two tenants, and the ids of one of them."""
    auditor = ("system/AuditEvent.rs",)
    people = {name: tried.integrator(name, scopes=auditor) for name in ("lab", "other")}
    users = [
        {
            "name": name,
            "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {person.token}"}],
        }
        for name, person in people.items()
    ]
    file = tmp_path_factory.mktemp("users") / "users.json"
    file.write_text(json.dumps({"auth": users}))
    return {
        "HOOKS": str(_HERE / "schemathesis_hooks.py"),
        "HYPOTHESIS": variable("HYPOTHESIS"),
        # One for all runs: each would make the same tables of characters.
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path_factory.mktemp("hypothesis")),
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "USERS": str(file),
        **known_to(people["lab"], tried),
    }


def known_to(lab: Integrator, service: RunningService) -> dict[str, str]:
    """Return the ids of a tenant's report, its parts, webhooks and a delivery."""
    endpoint, doomed = (
        service.call(
            service.services.endpoints.add(lab.tenant.id, {"url": _UNREACHABLE}, trusted=True)
        ).endpoint.id
        for _ in range(2)
    )
    registered = lab.register(register_body("tried")).json["parameter"][0]["resource"]
    report = lab.get(f"/fhir/r4/DiagnosticReport/{registered['id']}").json
    read = a_record(what=(f"DiagnosticReport/{report['id']}",))
    fill(service, lab.tenant.id, [read])
    log = f"/webhooks/v1/endpoints/{endpoint}/deliveries"
    assert wait_until(lambda: bool(lab.get(log).json["deliveries"]))
    return {
        "AUDIT_EVENT": f"{lab.tenant.audit_prefix}-1-0",
        "BINARY": hashlib.sha256(PDF).hexdigest(),
        "DOOMED": doomed,
        "ENDPOINT": endpoint,
        "EVENT": lab.get(log).json["deliveries"][0]["event_id"],
        "ORGANIZATION": report["performer"][0]["reference"].rpartition("/")[2],
        "PATIENT": report["subject"]["reference"].rpartition("/")[2],
        "REPORT": report["id"],
    }


# One run for all operations takes three times as long: it builds bodies from earlier responses.
@pytest.mark.parametrize("phase", ["examples", _BOUNDARIES, "fuzzing", _WORKFLOWS])
def test_what_it_says_holds_whatever_is_sent(
    tried: RunningService, given: dict[str, str], tmp_path: Path, phase: str
) -> None:
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli"),
            *("--config-file", str(_HERE / "schemathesis.toml")),
            *("run", f"{tried.base_url}/openapi.json", "--no-color", "--phases", phase),
            *("--max-examples", "200" if _LONG else str(_EXAMPLES.get(phase, 2))),
        ],
        cwd=tmp_path,
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
