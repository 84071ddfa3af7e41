"""What an operator may let pass: empty values and other forms of times (D-305, D-306)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.settings import Config, FhirConfig
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import (
    PDF,
    SYSTEM,
    document,
    organization,
    parameters,
    patient,
    register_body,
    report,
)

BASE = "/fhir/r4/DiagnosticReport"
AT = "Parameters.parameter"
LENIENT = FhirConfig(empty_values="drop", time_forms="lenient")


@pytest.fixture(scope="module")
def lenient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Integrator]:
    config = replace(Config(), fhir=LENIENT)
    with RunningService(tmp_path_factory.mktemp("lenient"), config=config) as running:
        yield running.integrator()


def warnings(answer: Answer) -> dict[str, list[str]]:
    """Return the places of the warnings of a registration by the beginning of their text."""
    issues = answer.json["parameter"][1]["resource"]["issue"]
    return {
        issue["diagnostics"].partition(":")[0]: issue["expression"]
        for issue in issues
        if issue["severity"] == "warning"
    }


@pytest.mark.parametrize("empty", [None, "", [], {}], ids=repr)
def test_an_empty_value_is_refused_unless_the_operator_lets_it_pass(
    lab: Integrator, lenient: Integrator, empty: Any
) -> None:
    body = register_body(f"empty {empty!r}")
    body["parameter"][2]["resource"]["conclusion"] = empty

    refused, registered = lab.register(body), lenient.register(body)

    assert (refused.status, registered.status) == (400, 201)
    assert warnings(registered) == {"is empty": [f"{AT}[2].resource.conclusion"]}
    assert "conclusion" not in lenient.get(registered.headers["location"]).json


def test_every_place_of_a_body_is_named_in_one_warning(lenient: Integrator) -> None:
    name = {"family": "López", "given": ["Ana", ""], "prefix": []}
    forms = [None, document(title="")]
    body = parameters(
        patient=patient(name=[name]),
        organization=organization(),
        diagnosticReport=report("many", code={"text": "B", "coding": []}, presentedForm=forms),
    )

    answer = lenient.register(body)

    assert answer.status == 201
    assert warnings(answer)["is empty"] == [
        f"{AT}[0].resource.name[0].given[1]",
        f"{AT}[0].resource.name[0].prefix",
        f"{AT}[2].resource.code.coding",
        f"{AT}[2].resource.presentedForm[0]",
        f"{AT}[2].resource.presentedForm[1].title",
    ]


def test_a_document_behind_an_empty_item_is_stored(lenient: Integrator) -> None:
    form = document(PDF + b"behind")

    answer = lenient.register(register_body("behind", presentedForm=[{}, form]))

    read = lenient.get(answer.headers["location"]).json
    assert [item["data"] for item in read["presentedForm"]] == [form["data"]]


def test_what_is_wrong_beside_empty_values_is_refused_with_both(lenient: Integrator) -> None:
    answer = lenient.register(register_body("wrong", conclusion="", issued="yesterday"))

    assert answer.status == 400
    assert [(issue["severity"], issue["expression"]) for issue in answer.issues] == [
        ("error", [f"{AT}[2].resource.issued"]),
        ("warning", [f"{AT}[2].resource.conclusion"]),
    ]


def test_what_is_required_is_not_made_up_by_leaving_it_out(lenient: Integrator) -> None:
    answer = lenient.register(register_body("required", status=""))

    assert answer.status == 400
    assert f"{AT}[2].resource.status" in answer.issue_expressions


def test_a_create_is_read_in_the_same_way(lenient: Integrator) -> None:
    resource = report(
        "created",
        contained=[patient(), organization()],
        subject={"reference": "#p1", "display": ""},
        performer=[{"reference": "#o1"}],
        issued="2026-11-20T10:05-0300",
    )

    answer = lenient.request("POST", BASE, resource, {"Prefer": "return=OperationOutcome"})

    assert answer.status == 201
    places = {issue["expression"][0] for issue in answer.issues if "expression" in issue}
    assert places >= {"DiagnosticReport.subject.display", "DiagnosticReport.issued"}


def test_empty_values_in_xml_are_left_out_as_well(lenient: Integrator) -> None:
    body = write_xml(register_body("xml", conclusion="nothing", code={"text": "Blood"}))
    body = body.replace(b'<conclusion value="nothing"', b'<conclusion value=""')
    body = body.replace(b'<text value="Blood"/>', b'<coding/><text value="Blood"/>')
    sent = {"Content-Type": "application/fhir+xml"}

    answer = lenient.request("POST", f"{BASE}/$register", body, sent)

    assert answer.status == 201
    at = f"{AT}[2].resource"
    assert warnings(answer) == {"is empty": [f"{at}.code.coding", f"{at}.conclusion"]}


def test_an_update_is_never_read_leniently(lenient: Integrator) -> None:
    location = lenient.register(register_body("patched")).headers["location"]
    path = location.partition("/_history")[0]
    patch = {"resourceType": "DiagnosticReport", "status": "amended", "conclusion": None}

    answer = lenient.patch(path, patch)

    assert answer.status in (400, 422)
    assert lenient.get(path).json["status"] == "final"


@pytest.mark.parametrize(
    ("sent", "stored", "text"),
    [
        ("2026-11-20T10:05-03:00", "2026-11-20T13:05:00Z", "has no seconds"),
        (
            "2026-11-20T10:05:30-0300",
            "2026-11-20T13:05:30Z",
            "has an offset in another form than -03",
        ),
        (
            "2026-11-20T10:05:30-03",
            "2026-11-20T13:05:30Z",
            "has an offset in another form than -03",
        ),
    ],
)
def test_other_forms_of_a_time_are_refused_unless_the_operator_lets_them_pass(
    lab: Integrator, lenient: Integrator, sent: str, stored: str, text: str
) -> None:
    body = register_body(f"time {sent}", issued=sent)

    refused, registered = lab.register(body), lenient.register(body)

    assert (refused.status, registered.status) == (400, 201)
    assert warnings(registered) == {text: [f"{AT}[2].resource.issued"]}
    assert lenient.get(registered.headers["location"]).json["issued"] == stored


def test_a_time_of_a_part_is_stored_in_the_form_of_fhir(lenient: Integrator) -> None:
    name = {"family": "López", "period": {"start": "2020-01-01T00:00-0300"}}

    answer = lenient.register(
        parameters(
            patient=patient(name=[name]),
            organization=organization(),
            diagnosticReport=report("part"),
        )
    )

    subject = lenient.get(answer.headers["location"]).json["subject"]["reference"]
    person = lenient.get(f"/fhir/r4/{subject}").json
    assert person["name"][0]["period"]["start"] == "2020-01-01T00:00:00-03:00"


def test_validate_returns_the_same_warnings(lenient: Integrator) -> None:
    body = register_body("tried", conclusion="", issued="2026-11-20T10:05Z")

    answer = lenient.request("POST", f"{BASE}/$validate", body)

    assert answer.status == 200
    assert answer.issue_expressions == {f"{AT}[2].resource.{e}" for e in ("conclusion", "issued")}


def test_a_repetition_gets_the_first_answer(lenient: Integrator) -> None:
    body = register_body("again", conclusion="")

    first, second = lenient.register(body), lenient.register(body)

    assert (first.status, first.body) == (second.status, second.body)
    assert lenient.get(f"{BASE}?identifier={SYSTEM}|again").json["total"] == 1
