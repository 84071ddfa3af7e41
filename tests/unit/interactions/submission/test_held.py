"""A part that was not sent, because the tenant holds what the resource refers to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.submission.held import Held, held_part_of, read_with
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import Part, ResourceType
from fhirpub.testing.samples import new_id, new_member_id

BASE = "https://fhir.example/fhir/r4"
ID = new_id()
PERSON = new_member_id()
VISIT = ResourceType(
    name="Basic",
    schemas={},
    create_statuses=frozenset(),
    update_statuses=frozenset(),
    parts=(
        Part(name="author", type="Practitioner", referred_by="author"),
        Part(name="patient", type="Patient", referred_by="subject"),
        Part(name="guest", type="Patient", referred_by="guest", required=False),
    ),
)


def body(**changes: Any) -> dict[str, Any]:
    resource = {"resourceType": "Basic", "subject": {"reference": f"Patient/{ID}"}, **changes}
    author = {"resourceType": "Practitioner", "id": "a"}
    entries = {"author": author, "basic": resource}
    return {
        "resourceType": "Parameters",
        "parameter": [{"name": name, "resource": one} for name, one in entries.items()],
    }


def held(**changes: Any) -> Held | None:
    return held_part_of(from_parameters(body(**changes), VISIT), "Patient", BASE)


@pytest.mark.parametrize(
    "literal",
    [f"Patient/{ID}", f"{BASE}/Patient/{ID}", f"Patient/{PERSON}"],
    ids=["own", "absolute", "person"],
)
def test_a_reference_by_an_id_of_ours_leads_to_what_is_held(literal: str) -> None:
    found = held(subject={"reference": literal})

    assert found == Held("patient", literal, "Parameters.parameter[1].resource.subject.reference")
    assert found is not None
    assert found.id == literal.rpartition("/")[2]


@pytest.mark.parametrize(
    "subject",
    [
        None,
        "x",
        {},
        {"reference": 7},
        {"reference": "Patient/p1"},
        {"reference": f"Group/{ID}"},
        {"reference": ID},
        {"reference": f"Patient/{ID.upper()}"},
        {"reference": f"Patient/{ID}/_history/1"},
        {"reference": f"https://other.example/Patient/{ID}"},
        {"reference": f"{BASE}Patient/{ID}"},
    ],
)
def test_any_other_reference_leads_to_nothing_that_is_held(subject: Any) -> None:
    assert held(subject=subject) is None


def test_the_first_reference_of_ours_counts() -> None:
    subjects = [{"reference": "Patient/p1"}, {"reference": f"Patient/{ID}"}]

    found = held(subject=subjects)

    assert found is not None
    assert found.at == "Parameters.parameter[1].resource.subject[1].reference"


def test_a_part_that_was_sent_is_not_held() -> None:
    sent = body()
    patient = {"resourceType": "Patient", "id": "p1"}
    sent["parameter"].append({"name": "patient", "resource": patient})

    assert held_part_of(from_parameters(sent, VISIT), "Patient", BASE) is None


def test_a_part_that_is_not_required_is_not_held() -> None:
    reference = {"reference": f"Patient/{ID}"}

    assert held(subject=None, guest=reference) is None


def test_only_a_part_of_the_type_is_held() -> None:
    submission = from_parameters(body(), VISIT)

    assert held_part_of(submission, "Practitioner", BASE) is None
    assert held_part_of(submission, "Organization", BASE) is None


def test_a_reference_to_a_patient_in_place_of_another_part_is_not_that_part() -> None:
    sent = body(author={"reference": f"Patient/{PERSON}"})
    del sent["parameter"][0]

    found = held_part_of(from_parameters(sent, VISIT), "Patient", BASE)

    assert found is not None
    assert (found.part, found.id) == ("patient", ID)


# Read with what is held


def read(version_id: str = "1", id_: str = ID) -> Submission:
    stored = {"resourceType": "Patient", "id": id_, "meta": {"versionId": version_id, "tag": []}}
    part = Held("patient", f"Patient/{id_}", "at", dumps(stored))
    return read_with(body(), VISIT, read=from_parameters, held=part)


def test_what_is_held_stands_among_the_parts() -> None:
    submission = read()

    assert [*submission.wrong] == []
    assert submission.type is VISIT
    assert submission.held == {"patient"}
    assert {*submission.parts} == {"author", "patient"}
    assert submission.local == {"Practitioner/a": "author", f"Patient/{ID}": "patient"}
    assert submission.parts["patient"].at == "Patient"


def test_what_belongs_to_another_resource_shows_that() -> None:
    assert read().parts["patient"].resource["meta"] == {"versionId": f"{ID}.1", "tag": []}


def test_what_is_held_has_all_that_is_stored_of_it() -> None:
    patient = read().parts["patient"].resource

    assert {name: item for name, item in patient.items() if name != "meta"} == {
        "resourceType": "Patient",
        "id": ID,
    }


def test_a_statement_about_a_person_stays_what_it_was() -> None:
    version_id = f"{new_id()}.3"

    patient = read(version_id, PERSON).parts["patient"].resource

    assert patient["meta"]["versionId"] == version_id


def test_other_parts_stay_required() -> None:
    sent = body()
    del sent["parameter"][0]
    stored = dumps({"resourceType": "Patient", "id": ID, "meta": {"versionId": "1"}})
    part = Held("patient", f"Patient/{ID}", "at", stored)

    submission = read_with(sent, VISIT, read=from_parameters, held=part)

    assert [issue.diagnostics for issue in submission.wrong] == [
        "an entry named author is required"
    ]
    (required,) = from_parameters(body(), VISIT).wrong
    assert required.diagnostics == "an entry named patient is required"


def test_two_types_with_a_part_of_one_name_are_each_read_by_its_own_declaration() -> None:
    optional = tuple(replace(part, required=False) for part in VISIT.parts)
    sent = body()
    del sent["parameter"][0]
    stored = dumps({"resourceType": "Patient", "id": ID, "meta": {"versionId": "1"}})
    part = Held("patient", f"Patient/{ID}", "at", stored)

    strict, lenient = (
        read_with(sent, declared, read=from_parameters, held=part)
        for declared in (VISIT, replace(VISIT, parts=optional))
    )

    assert len(strict.wrong) == 1
    assert [*lenient.wrong] == []
