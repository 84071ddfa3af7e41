"""Which person a patient is, by the identifiers of declared systems."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.interactions.indexing.persons import (
    StatementNames,
    is_own,
    links_of,
    person_of,
    persons_of,
)
from fhirpub.storage.criteria import SearchValue
from fhirpub.tenant import Tenant

FIRST, SECOND = "https://registry.example/persons", "https://hospital.example/mrn"
SYSTEMS = (FIRST, SECOND)
TENANT = Tenant("t", "Lab", bytes(range(32)), 1)
PERSON = TENANT.person_id(FIRST, "1")
OWN = ("subject", "", "Patient")


def patient(*identifiers: dict[str, Any]) -> dict[str, Any]:
    return {"resourceType": "Patient", "identifier": [*identifiers]}


def number(value: str, system: str = FIRST, **more: Any) -> dict[str, Any]:
    return {"system": system, "value": value, **more}


@pytest.mark.parametrize(
    ("identifiers", "system", "value"),
    [
        ([number("1")], FIRST, "1"),
        ([number("x", SECOND), number("1")], FIRST, "1"),
        ([number("x", SECOND)], SECOND, "x"),
        ([number("1"), number("2"), number("x", SECOND)], SECOND, "x"),
        ([number("1"), number("1")], FIRST, "1"),
        ([number("1", use="old"), number("2")], FIRST, "2"),
        ([number("1"), {"system": FIRST}], FIRST, "1"),
    ],
    ids=[
        "one",
        "the preferred one",
        "one of another system",
        "two in the preferred system",
        "one twice",
        "one of former times",
        "one without a value",
    ],
)
def test_one_identifier_in_a_system_stands_for_the_person(
    identifiers: list[dict[str, Any]], system: str, value: str
) -> None:
    assert person_of(patient(*identifiers), SYSTEMS, TENANT) == TENANT.person_id(system, value)


@pytest.mark.parametrize(
    "one",
    [
        {"resourceType": "Patient"},
        patient(number("1", "https://other.example")),
        patient(number("1"), number("2")),
        patient({"value": "1"}),
        patient(number("1", use="old")),
    ],
)
def test_nothing_else_stands_for_a_person(one: dict[str, Any]) -> None:
    assert person_of(one, SYSTEMS, TENANT) == ""


def test_only_patients_are_persons() -> None:
    organization = {**patient(number("1")), "resourceType": "Organization"}
    parts = {"patient": patient(number("1")), "organization": organization}

    assert persons_of(parts, SYSTEMS, TENANT) == {"patient": PERSON}
    assert persons_of(parts, (), TENANT) == {}
    assert persons_of({"patient": patient()}, SYSTEMS, TENANT) == {}


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_two_identifiers_have_two_ids(first: str, one: str, second: str, other: str) -> None:
    same = (first, one) == (second, other)

    assert (TENANT.person_id(first, one) == TENANT.person_id(second, other)) is same


def test_a_part_with_a_version_of_its_own_belongs_to_its_resource() -> None:
    assert is_own({"meta": {"versionId": "1"}})
    assert not is_own({"meta": {"versionId": f"{PERSON}.1"}})


@pytest.mark.parametrize(
    ("values", "before", "linked"),
    [
        ([OWN], [OWN, ("subject", PERSON, "Patient")], [("subject", PERSON, "Patient")]),
        ([("subject", PERSON, "Patient")], [("subject", PERSON, "Patient")], []),
        ([OWN], [OWN, ("focus", PERSON, "Patient")], []),
        ([OWN], [OWN, ("subject", PERSON, "Group")], []),
        ([OWN], [OWN, ("subject", "34926f96-0f76-4bf8-8d32-a6b9ec2f8936", "Patient")], []),
    ],
    ids=["linked", "of the person itself", "another name", "another type", "no person"],
)
def test_what_links_a_patient_of_its_own_to_a_person_is_kept(
    values: list[SearchValue], before: list[SearchValue], linked: list[SearchValue]
) -> None:
    assert [*links_of(values, before)] == linked


def test_the_names_of_statements_are_those_that_stores_hold() -> None:
    assert StatementNames.of("subject") == StatementNames(
        identifier="subject:Patient.identifier",
        name="subject:Patient.name",
        birth_date="subject:Patient.birthDate",
        marker="subject:Patient",
        later="subject:Patient:later",
    )
