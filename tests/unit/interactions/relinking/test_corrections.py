"""What a resource and its patient become when the resource is moved to another Patient."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.interactions.relinking.corrections import Target, corrected_patient, moved

BASE = "https://fhir.example/fhir/r4"
NEW: dict[str, Any] = {
    "resourceType": "Patient",
    "id": "new",
    "identifier": [{"system": "s", "value": "2"}],
    "name": [{"family": "Birch"}],
}


@pytest.mark.parametrize("literal", ["Patient/old", f"{BASE}/Patient/old"])
def test_references_follow_wherever_they_stand(literal: str) -> None:
    resource: dict[str, Any] = {
        "resourceType": "DiagnosticReport",
        "subject": {"reference": literal, "type": "Patient", "display": "Ada"},
        "contained": [{"resourceType": "Basic", "subject": {"reference": literal}}],
    }
    after = moved(resource, ("old", NEW), element="subject", base=BASE)

    assert after["subject"] == {
        "reference": "Patient/new",
        "type": "Patient",
        "identifier": {"system": "s", "value": "2"},
        "display": "Birch",
    }
    assert after["contained"][0]["subject"] == {"reference": "Patient/new"}
    assert resource["subject"]["reference"] == literal


@pytest.mark.parametrize(
    "literal", ["Patient/older", "Patient/old/_history/1", "https://other.example/Patient/old"]
)
def test_other_references_stay(literal: str) -> None:
    resource = {"resourceType": "Observation", "subject": {"reference": literal}}

    assert moved(resource, ("old", NEW), base=BASE) == resource


def test_the_reference_of_the_element_shows_the_other_patient() -> None:
    resource: dict[str, Any] = {
        "subject": {"reference": "Patient/old"},
        "focus": [{"reference": "Patient/old"}],
    }

    after = moved(resource, ("old", NEW), element="subject", base=BASE)

    assert after["subject"] == {
        "reference": "Patient/new",
        "identifier": {"system": "s", "value": "2"},
        "display": "Birch",
    }
    assert after["focus"] == [{"reference": "Patient/new"}]


def test_identifiers_of_former_times_and_of_other_systems_stay() -> None:
    former = {"use": "old", "system": "s", "value": "0"}
    other = {"system": "o", "value": "x"}
    sent = [former, {"system": "s", "value": "1", "use": "official"}, other]
    target = Target("new", {"s"}, ({"system": "s", "value": "2"},))
    after = corrected_patient({"resourceType": "Patient", "identifier": sent}, target)

    replaced = {"use": "official", "system": "s", "value": "2"}
    assert after["identifier"] == [replaced, former, other]


@pytest.mark.parametrize(("status", "is_kept"), [("generated", False), ("additional", True)])
def test_only_a_narrative_made_from_the_data_is_left_out(status: str, *, is_kept: bool) -> None:
    patient = {
        "resourceType": "Patient",
        "identifier": [{"system": "s", "value": "1"}],
        "text": {"status": status, "div": "<div>1</div>"},
    }
    after = corrected_patient(patient, Target("new", {"s"}))

    assert ("text" in after) is is_kept
    assert "identifier" not in after


@pytest.mark.parametrize("value", [{"reference": "Patient/old"}, ["Patient/old"], 5, None])
def test_an_element_of_the_name_that_is_no_reference_stays(value: Any) -> None:
    resource = {"resourceType": "Basic", "resource": [{"reference": value}]}

    after = moved(resource, ("older", NEW), base=BASE)

    assert after == resource


@pytest.mark.parametrize(("status", "is_kept"), [("generated", False), ("additional", True)])
def test_a_narrative_of_a_resource_that_moves_is_left_out_if_made_from_the_data(
    status: str, *, is_kept: bool
) -> None:
    resource = {
        "resourceType": "DiagnosticReport",
        "subject": {"reference": "Patient/old", "display": "Ada"},
        "text": {"status": status, "div": "<div>Ada</div>"},
    }

    after = moved(resource, ("old", NEW), element="subject", base=BASE)

    assert ("text" in after) is is_kept


def test_a_resource_that_does_not_refer_to_the_patient_keeps_its_narrative() -> None:
    resource = {
        "resourceType": "DiagnosticReport",
        "subject": {"reference": "Patient/third"},
        "text": {"status": "generated", "div": "<div>Ada</div>"},
    }

    assert moved(resource, ("old", NEW), element="subject", base=BASE) == resource


def test_without_identifiers_to_take_their_place_the_replaced_ones_are_gone() -> None:
    sent = [{"system": "s", "value": "1"}, {"system": "o", "value": "x"}]

    after = corrected_patient({"identifier": sent, "gender": "other"}, Target("new", {"s"}))

    assert after == {"identifier": [{"system": "o", "value": "x"}], "gender": "other"}


def test_an_identifier_is_described_as_the_one_of_its_system_was() -> None:
    sent = [
        {"system": "o", "value": "x", "use": "secondary"},
        {"system": "s", "value": "1", "use": "official", "type": {"text": "National"}},
    ]
    target = Target("new", {"s"}, ({"system": "s", "value": "2"},))

    after = corrected_patient({"identifier": sent}, target)

    described = {"use": "official", "type": {"text": "National"}, "system": "s", "value": "2"}
    assert after["identifier"] == [described, sent[0]]


def test_an_identifier_of_a_system_without_one_is_described_by_none() -> None:
    sent = [
        {"system": "o", "value": "x", "use": "secondary"},
        {"system": "s", "value": "0", "use": "old"},
    ]
    target = Target("new", {"s"}, ({"system": "s", "value": "2"},))

    after = corrected_patient({"identifier": sent}, target)

    assert after["identifier"] == [{"system": "s", "value": "2"}, *sent]


def test_a_reference_that_showed_the_one_patient_shows_the_other() -> None:
    shown = {"reference": "Patient/old", "display": "Ada", "identifier": {"value": "1"}}
    resource: dict[str, Any] = {"focus": [shown, {"reference": "Patient/old"}]}

    after = moved(resource, ("old", NEW), element="subject", base=BASE)

    assert after["focus"] == [
        {
            "reference": "Patient/new",
            "identifier": {"system": "s", "value": "2"},
            "display": "Birch",
        },
        {"reference": "Patient/new"},
    ]
