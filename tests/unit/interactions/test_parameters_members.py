"""What resources that come with others are found by: the patient that they refer to."""

from __future__ import annotations

from fhirpub.storage.criteria import decode, encode
from tests.unit.interactions.test_parameters_parts import (
    ID,
    MEMBER,
    PERSON,
    SUBJECT,
    TENANT,
    person,
    resource,
    searched,
)


def test_a_member_is_found_by_the_identifiers_of_the_patient_that_it_refers_to() -> None:
    it = searched(member=MEMBER)
    parts = {"patient": person("1", "7"), "organization": {"resourceType": "Organization"}}

    of_patient = it.values_of_member(resource(subject={"reference": "Patient/p1"}), parts)
    of_other = it.values_of_member(resource(subject={"reference": "Patient/p2"}), parts)

    assert decode(of_patient) == [
        ("subject", "p1", "Patient"),
        ("subject:Patient.identifier", "7", "urn:p"),
    ]
    assert decode(of_other) == [("subject", "p2", "Patient")]


def test_a_member_is_found_by_the_person_that_its_patient_is() -> None:
    it = searched(member=MEMBER)

    values = it.values_of_member(
        resource(subject={"reference": "Patient/p1"}),
        {"patient": person("1")},
        persons={"patient": PERSON},
    )

    assert decode(values) == [("subject", "p1", "Patient"), ("subject", PERSON, "Patient")]


def test_a_later_version_keeps_the_person_that_its_patient_is() -> None:
    it, own = searched(SUBJECT), TENANT.part_id(ID, "patient")
    subject = {"reference": f"Patient/{own}"}
    before = encode(
        [("subject", "", "Patient"), ("subject", TENANT.person_id("s", "1"), "Patient")]
    )

    values = it.next_values(resource(2, subject=subject), before, TENANT)

    assert decode(values) == decode(before)
