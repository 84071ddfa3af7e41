"""The digest of a registration: what counts as the same content."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.fhir.document import extract_attachments
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.repetition.digest import digest_of, is_same
from fhirpub.interactions.submission.contained import from_contained
from fhirpub.interactions.submission.held import Held, read_with
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.plugin_api import ResourceType, organization, patient
from fhirpub.testing.samples import new_id
from tests import bodies

REPORT = ResourceType(
    name="DiagnosticReport",
    create_statuses=frozenset(),
    update_statuses=frozenset(),
    parts=(patient(referred_by="subject"), organization(referred_by="performer")),
    attachments=("presentedForm",),
)
Change = Callable[[dict[str, Any]], object]


def digest(body: dict[str, Any]) -> bytes:
    sent = loads(dumps(body))
    is_create = body["resourceType"] == "DiagnosticReport"
    submission = (from_contained if is_create else from_parameters)(sent, REPORT)
    extract_attachments(submission.entry.resource, REPORT.attachments)
    return digest_of(submission)


def changed(change: Change) -> dict[str, Any]:
    body = copy.deepcopy(bodies.register_body("R-1"))
    change(body)
    return body


def report(body: dict[str, Any]) -> dict[str, Any]:
    resource: dict[str, Any] = body["parameter"][2]["resource"]
    return resource


def with_other_ids(body: dict[str, Any]) -> None:
    text = json.dumps(body).replace("p1", "patient-7").replace("o1", "9").replace('"r1"', '"r2"')
    body |= json.loads(text)


def as_siblings(body: dict[str, Any]) -> None:
    body["parameter"][2]["presentedForm"] = report(body).pop("presentedForm")


def with_wrapped_data(body: dict[str, Any]) -> None:
    data = report(body)["presentedForm"][0]["data"]
    report(body)["presentedForm"][0]["data"] = f"{data[:20]}\n{data[20:]}"


SAME: list[Change] = [
    lambda body: body["parameter"].reverse(),
    with_other_ids,
    as_siblings,
    with_wrapped_data,
    lambda body: report(body).pop("id"),
    lambda body: report(body).update(issued="2026-11-20T11:05:00+01:00"),
]


@pytest.mark.parametrize("change", SAME)
def test_the_form_of_a_request_does_not_count(change: Change) -> None:
    assert digest(changed(change)) == digest(bodies.register_body("R-1"))


DIFFERENT: list[Change] = [
    lambda body: report(body).update(conclusion="MALIGNANT"),
    lambda body: report(body).pop("conclusion"),
    lambda body: report(body).update(subject={"reference": "Patient/p2"}),
    lambda body: report(body).update(presentedForm=[bodies.document(b"%PDF-1.4 other")]),
    lambda body: body["parameter"][0]["resource"].update(birthDate="1980-03-01"),
    lambda body: body["parameter"].append({"name": "extra", "valueString": "x"}),
    lambda body: report(body).update(issued="2026-11-20T10:05:00"),
    lambda body: report(body)["presentedForm"].append(bodies.document()),
]


@pytest.mark.parametrize("change", DIFFERENT)
def test_other_content_has_another_digest(change: Change) -> None:
    assert digest(changed(change)) != digest(bodies.register_body("R-1"))


def test_an_exchange_of_the_parts_that_references_name_is_different() -> None:
    def exchanged(body: dict[str, Any]) -> None:
        report(body)["basedOn"] = [{"reference": "Organization/o1"}]

    def named(body: dict[str, Any]) -> None:
        report(body)["basedOn"] = [{"reference": "Patient/p1"}]

    assert digest(changed(exchanged)) != digest(changed(named))


def test_create_and_register_of_the_same_have_one_digest() -> None:
    assert digest(bodies.self_contained("R-1")) == digest(bodies.register_body("R-1"))


def test_what_a_part_of_create_contains_belongs_to_the_part() -> None:
    doctor = {"resourceType": "Practitioner", "id": "d1", "name": [{"family": "Paz"}]}
    person = bodies.patient(generalPractitioner=[{"reference": "#d1"}])
    created = bodies.self_contained("R-1", contained=[person, bodies.organization(), doctor])
    registered = bodies.register_body("R-1")
    registered["parameter"][0]["resource"] = {**person, "contained": [doctor]}

    assert digest(created) == digest(registered)


def test_another_value_in_what_create_contains_is_different() -> None:
    sent = [{"resourceType": "Observation", "id": "v1", "valueString": one} for one in "ab"]
    contained = [[bodies.patient(), bodies.organization(), one] for one in sent]
    first, second = (
        digest(bodies.self_contained("R-1", contained=one, result=[{"reference": "#v1"}]))
        for one in contained
    )

    assert first != second


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (b"\x01a", b"\x01a", True),
        (b"\x01a", b"\x01b", False),
        (b"", b"\x01a", None),
        (b"\x02a", b"\x01a", None),
    ],
)
def test_digests_of_one_form_are_compared(
    first: bytes, second: bytes, *, same: bool | None
) -> None:
    assert is_same(first, second) is same


def test_a_body_that_refers_to_a_held_patient_has_one_digest_before_and_after_it_is_known() -> (
    None
):
    kept = new_id()
    body = changed(lambda sent: sent["parameter"].pop(0))
    report_of = body["parameter"][1]["resource"]
    report_of["subject"] = {"reference": f"Patient/{kept}"}
    known = {"resourceType": "Patient", "id": kept, "meta": {"versionId": "1"}}
    held = Held("patient", f"Patient/{kept}", "subject.reference", dumps(known))

    before = from_parameters(loads(dumps(body)), REPORT)
    after = read_with(loads(dumps(body)), REPORT, read=from_parameters, held=held)

    assert digest_of(after) == digest_of(before)
