"""A repetition of a registration, with the same content and with other content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.config.settings import Config, FhirConfig
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.interactions.context import Context
from fhirpub.interactions.register import Prepared, Received, validate_registration
from fhirpub.runtime.stages import Stages
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.handlers.registrations import register as handler
from tests.bodies import (
    SYSTEM,
    document,
    organization,
    patient,
    register_body,
    self_contained,
)

BASE = "/fhir/r4/DiagnosticReport"
REGISTER = f"{BASE}/$register"
XML = {"Content-Type": "application/fhir+xml"}
WRONG_HASH = {"presentedForm": [document(hash="0" * 64)]}

Serve = Callable[..., Integrator]


@pytest.fixture
def serve(tmp_path: Path, store_url: Callable[[str], str]) -> Iterator[Serve]:
    """Return a function that serves one store with settings of ``[fhir]`` or of all."""
    url = store_url("repetition")
    tenants: list[Tenant] = []
    with ExitStack() as running:

        def start(config: Config | None = None, **fhir: Any) -> Integrator:
            running.close()
            config = config or replace(Config(), fhir=FhirConfig(**fhir))
            service = running.enter_context(RunningService(tmp_path, config=config, store_url=url))
            if tenants:
                return service.another_client(tenants[0])
            lab = service.integrator()
            tenants.append(lab.tenant)
            return lab

        yield start


def test_the_same_content_gets_the_first_answer_when_a_setting_refuses_it(serve: Serve) -> None:
    first = serve().register(register_body("R-1", **WRONG_HASH))
    strict = serve(hash_check="strict")

    again = strict.register(register_body("R-1", **WRONG_HASH))

    assert (again.status, again.body) == (201, first.body)
    assert strict.register(register_body("R-2", **WRONG_HASH)).status == 422


def test_the_same_content_gets_the_first_answer_when_a_limit_refuses_it(serve: Serve) -> None:
    first = serve().register(register_body("R-1"))
    small = replace(Config(), limits=replace(Config().limits, attachment_bytes=10))

    again = serve(small).register(register_body("R-1"))

    assert (again.status, again.body) == (201, first.body)


def test_the_same_large_content_gets_the_first_answer_when_a_setting_refuses_it(
    serve: Serve,
) -> None:
    notes = [{"url": "urn:x:note", "valueString": f"{number}" * 50} for number in range(3_000)]
    first = serve().register(register_body("R-1", extension=notes, **WRONG_HASH))
    strict = serve(hash_check="strict")

    again = strict.register(register_body("R-1", extension=notes, **WRONG_HASH))

    assert (again.status, again.body) == (201, first.body)


def test_other_content_is_validated_first(serve: Serve) -> None:
    serve().register(register_body("R-1", **WRONG_HASH))
    strict = serve(hash_check="strict")

    answer = strict.register(register_body("R-1", **WRONG_HASH, conclusion="MALIGNANT"))

    assert answer.status == 422


@pytest.fixture
def lab(serve: Serve) -> Integrator:
    return serve()


def marks(answer: Answer) -> list[str | None]:
    """Return what an answer says about a repetition."""
    return [answer.headers.get(f"idempotent-{name}") for name in ("replayed", "content")]


def test_a_first_registration_is_no_replay(lab: Integrator) -> None:
    assert marks(lab.register(register_body("R-1"))) == [None, None]


@pytest.mark.parametrize("preference", ["return=minimal", "return=OperationOutcome", ""])
def test_a_repetition_is_a_replay(lab: Integrator, preference: str) -> None:
    first = lab.register(register_body("R-1"), Prefer=preference)

    again = lab.register(register_body("R-1"), Prefer=preference)

    assert marks(again) == ["true", None]
    assert (again.status, again.body) == (201, first.body)


def register_xml(lab: Integrator, body: Any) -> Answer:
    return lab.request("POST", REGISTER, write_xml(body), XML)


@pytest.mark.parametrize("form", ["JSON", "XML"])
def test_a_small_repetition_is_not_validated_again(
    lab: Integrator, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    validated: list[str] = []

    def count(context: Context, received: Received, *, tenant: Tenant) -> Stages[Prepared]:
        validated.append(received.submission.type.name)
        return validate_registration(context, received, tenant=tenant)

    monkeypatch.setattr(handler, "validate_registration", count)
    body = register_body("R-1")
    first = lab.register(body)

    again = lab.register(body) if form == "JSON" else register_xml(lab, body)

    assert marks(again) == ["true", None]
    assert first.status == 201
    assert validated == ["DiagnosticReport"]


def other_patient(value: str) -> dict[str, Any]:
    body = register_body(value)
    body["parameter"][0]["resource"] = patient(birthDate="1951-01-01")
    return body


def other_entry(value: str) -> dict[str, Any]:
    body = register_body(value)
    resource = {"resourceType": "Basic", "code": {"text": "x"}}
    return {**body, "parameter": [*body["parameter"], {"name": "extra", "resource": resource}]}


@pytest.mark.parametrize(
    "other",
    [
        lambda value: register_body(value, conclusion="MALIGNANT"),
        lambda value: register_body(value, presentedForm=[document(b"%PDF-1.4 other")]),
        other_patient,
        other_entry,
    ],
)
def test_a_repetition_of_other_content_says_so(
    lab: Integrator, other: Callable[[str], dict[str, Any]]
) -> None:
    first = lab.register(register_body("R-1"))

    again = lab.register(other("R-1"))

    assert marks(again) == ["true", "different"]
    assert (again.status, again.body) == (201, first.body)


def test_the_first_content_is_the_same_after_an_update(lab: Integrator) -> None:
    location = lab.register(register_body("R-1")).headers["location"].partition("/_history")[0]
    lab.patch(location, {"resourceType": "DiagnosticReport", "conclusion": "MALIGNANT"})

    assert marks(lab.register(register_body("R-1"))) == ["true", None]
    assert marks(lab.register(register_body("R-1", conclusion="MALIGNANT"))) == [
        "true",
        "different",
    ]


def test_xml_and_json_are_the_same_content(lab: Integrator) -> None:
    div = '<div xmlns="http://www.w3.org/1999/xhtml">a<br />b&nbsp;</div>'
    text = {"status": "generated", "div": div}
    extension = [{"url": "urn:x:dose", "valueDecimal": 1.0}]
    body = register_body("R-1", text=text, extension=extension, issued="2026-11-20T11:05:00+01:00")
    lab.register(body)
    in_xml = loads(dumps(body).replace(b"&nbsp;", b"&#160;"))

    assert marks(register_xml(lab, in_xml)) == ["true", None]


def test_a_create_of_what_was_registered_is_the_same_content(lab: Integrator) -> None:
    lab.register(register_body("R-1"))

    same = lab.request("POST", BASE, self_contained("R-1"))
    other = lab.request("POST", BASE, self_contained("R-1", conclusion="MALIGNANT"))

    assert marks(same) == ["true", None]
    assert marks(other) == ["true", "different"]


def test_a_large_repetition_is_compared(lab: Integrator) -> None:
    notes = [{"url": "urn:x:note", "valueString": f"{number}" * 50} for number in range(3_000)]
    lab.register(register_body("R-1", extension=notes))

    assert marks(lab.register(register_body("R-1", extension=notes))) == ["true", None]
    assert marks(lab.register(register_body("R-1", extension=notes[1:]))) == ["true", "different"]


def test_of_racing_registrations_all_but_one_are_replays(lab: Integrator) -> None:
    def register(number: int) -> list[str | None]:
        return marks(lab.register(register_body("R-1", conclusion=f"{number % 2}")))

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(register, range(16)))

    (first,) = (number for number, mark in enumerate(found) if mark == [None, None])
    same = [mark for number, mark in enumerate(found) if number % 2 == first % 2]
    other = [mark for number, mark in enumerate(found) if number % 2 != first % 2]
    assert same.count(["true", None]) == 7
    assert other == [["true", "different"]] * 8


@pytest.mark.parametrize("content", ["same", "other"])
def test_what_was_registered_without_a_digest_claims_nothing(serve: Serve, content: str) -> None:
    lab = serve()
    service = lab.service
    assert isinstance(service, RunningService)
    resource_id = lab.tenant.resource_id("DiagnosticReport", SYSTEM, "R-1")
    old = Version(
        id=resource_id,
        version=1,
        type="DiagnosticReport",
        system=SYSTEM,
        value="R-1",
        status="final",
        created=1,
        updated=1,
        body=b'{"resourceType":"DiagnosticReport"}',
        response=b'{"resourceType":"Parameters"}',
    )
    service.call(service.services.store.add(lab.tenant.id, old))

    answer = lab.register(register_body("R-1", conclusion=content))

    assert marks(answer) == ["true", None]
    assert answer.json == {"resourceType": "Parameters"}


@pytest.mark.parametrize("form", ["register", "create"])
def test_other_content_is_a_conflict_if_the_operator_wants_it(serve: Serve, form: str) -> None:
    lab = serve(other_content="conflict")
    first = lab.register(register_body("R-1"))

    if form == "register":
        answer = lab.register(other_patient("R-1"))
    else:
        person = patient(birthDate="1951-01-01")
        sent = self_contained("R-1", contained=[person, organization()])
        answer = lab.request("POST", BASE, sent)

    address = "/".join(first.headers["location"].split("/")[-4:-2])
    rule = f"{address} has this identifier with other content; what differs: patient.birthDate"
    assert answer.status == 409
    assert [(issue["code"], issue["diagnostics"]) for issue in answer.issues] == [
        ("duplicate", rule)
    ]
    again = lab.register(register_body("R-1"))
    assert (again.status, again.body) == (201, first.body)


def counted(lab: Integrator) -> bytes:
    service = lab.service
    assert isinstance(service, RunningService)
    exposition, _type = service.services.metrics.text("")
    (line,) = (
        line for line in exposition.splitlines() if line.startswith(b"fhirpub_other_content_total")
    )
    return line.partition(b" ")[2]


def test_other_content_is_logged_without_values_and_counted(lab: Integrator) -> None:
    lab.register(register_body("R-1"))
    body = register_body("R-1", conclusion="MALIGNANT", _status={"id": "s"})
    body["parameter"][0]["resource"] = patient(birthDate="1951-01-01")

    with capture_logs() as logged:
        answer = lab.register(body, X_Request_Id="the-request")

    address = answer.headers["location"].split("/")
    assert [line for line in logged if line["log_level"] == "warning"] == [
        {
            "log_level": "warning",
            "event": "other content under a registered identifier",
            "type": "DiagnosticReport",
            "id": address[-3],
            "elements": "conclusion patient.birthDate status",
            "request_id": "the-request",
            "client": lab.client_id,
        }
    ]
    assert counted(lab) == b"1.0"


def test_nothing_is_logged_or_counted_for_the_same_content(lab: Integrator) -> None:
    lab.register(register_body("R-1"))

    with capture_logs() as logged:
        lab.register(register_body("R-1"))

    assert not [line for line in logged if line["log_level"] == "warning"]
    assert counted(lab) == b"0.0"


VALIDATE = f"{BASE}/$validate"


def tried(lab: Integrator, body: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the issues of a trial, each text behind the address that it begins with."""
    answer = lab.request("POST", VALIDATE, body)
    assert answer.status == 200
    return [
        (issue["severity"], issue["code"], issue["diagnostics"].partition(" has ")[2])
        for issue in answer.issues
    ]


def wrapped(resource: dict[str, Any]) -> dict[str, Any]:
    return {
        "resourceType": "Parameters",
        "parameter": [{"name": "resource", "resource": resource}],
    }


@pytest.mark.parametrize(
    "body", [register_body("R-1"), self_contained("R-1"), wrapped(self_contained("R-1"))]
)
def test_a_trial_of_the_same_content_says_so(lab: Integrator, body: dict[str, Any]) -> None:
    lab.register(register_body("R-1"))

    verdict = "this identifier with the same content: its first answer would be returned"
    assert tried(lab, body) == [("information", "informational", verdict)]


def test_a_trial_of_the_same_content_lists_no_error_of_today(serve: Serve) -> None:
    serve().register(register_body("R-1", **WRONG_HASH))

    issues = tried(serve(hash_check="strict"), register_body("R-1", **WRONG_HASH))

    assert [severity for severity, _code, _text in issues] == ["information"]


@pytest.mark.parametrize(
    ("setting", "severity", "then"),
    [
        ("replay", "warning", ". Its first answer would be returned"),
        ("conflict", "error", ""),
    ],
)
def test_a_trial_of_other_content_names_what_differs(
    serve: Serve, setting: str, severity: str, then: str
) -> None:
    lab = serve(other_content=setting)
    lab.register(register_body("R-1"))

    issues = tried(lab, register_body("R-1", conclusion="MALIGNANT"))

    verdict = f"this identifier with other content; what differs: conclusion{then}"
    assert issues == [(severity, "duplicate", verdict)]
    assert counted(lab) == b"0.0"


def test_a_trial_of_other_content_lists_its_errors(lab: Integrator) -> None:
    lab.register(register_body("R-1"))

    issues = tried(lab, register_body("R-1", status="nonsense"))

    assert [severity for severity, _code, _text in issues] == ["error"]
