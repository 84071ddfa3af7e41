"""The values by which a statement about a patient is found."""

from __future__ import annotations

from datetime import UTC
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.fhir.date_value import parse_range
from fhirpub.interactions.indexing.persons import (
    StatementNames,
    current_values,
    is_current,
    marked,
    names_of_own_patients,
    statement_id,
    take_statement,
)
from fhirpub.interactions.indexing.values import Searched
from fhirpub.storage.criteria import SearchValue
from fhirpub.testing.samples import new_id, new_member_id

NAMES = StatementNames.of("subject")
PERSON, OWN = new_member_id(), new_id()
SEARCHED = cast("Searched", SimpleNamespace(systems={}, zone=UTC, relative_to=""))


def values_of(patient: dict[str, Any], id_: str, *, is_later: bool = False) -> list[SearchValue]:
    values: list[SearchValue] = []
    take_statement(values, patient, NAMES, SEARCHED, patient_id=id_, is_later=is_later)
    return values


def test_each_name_begins_with_the_element() -> None:
    assert (
        StatementNames(
            identifier="subject:Patient.identifier",
            name="subject:Patient.name",
            birth_date="subject:Patient.birthDate",
            marker="subject:Patient",
            later="subject:Patient:later",
        )
        == NAMES
    )


def test_a_person_is_marked_by_a_token_that_is_indexed() -> None:
    assert marked(PERSON) == (PERSON, "")
    assert values_of({}, PERSON) == [("subject:Patient", PERSON, "")]


def test_a_patient_of_one_resource_is_marked_by_one_that_is_not() -> None:
    assert marked(OWN) == ("", OWN)
    assert values_of({}, OWN) == [("subject:Patient", "", OWN)]


def test_a_later_statement_is_marked_as_such() -> None:
    assert values_of({}, PERSON, is_later=True) == [
        ("subject:Patient", PERSON, ""),
        ("subject:Patient:later", "", ""),
    ]


def test_names_and_the_day_of_birth_are_taken_and_no_identifiers() -> None:
    day = parse_range("1980-02-29", default_zone=UTC)
    assert day is not None
    patient = {
        "name": [{"family": "Ash"}, {"given": ["Ana"]}],
        "birthDate": "1980-02-29",
        "identifier": [{"system": "s", "value": "1"}],
    }

    assert values_of(patient, PERSON) == [
        ("subject:Patient.name", "ash", "family"),
        ("subject:Patient.name:exact", "", "family|Ash"),
        ("subject:Patient.name", "ana", "given"),
        ("subject:Patient.name:exact", "", "given|Ana"),
        ("subject:Patient.birthDate", *day),
        ("subject:Patient", PERSON, ""),
    ]


def test_a_statement_is_named_by_its_version() -> None:
    assert statement_id("a", 2) == "a.2"


@pytest.mark.parametrize(
    ("use", "current"), [("old", False), ("official", True), ("temp", True), (None, True)]
)
def test_only_an_identifier_of_former_times_is_not_current(
    use: str | None, *, current: bool
) -> None:
    one = {"system": "s", "value": "1"} | ({"use": use} if use else {})

    assert is_current(one) is current
    assert current_values({"identifier": [one]}, "s") == ({"1"} if current else set())


def test_current_values_are_those_of_the_system() -> None:
    identifiers = [
        {"system": "s", "value": "1"},
        {"system": "s", "value": "2"},
        {"system": "s", "value": ""},
        {"system": "s"},
        {"system": "t", "value": "3"},
        {"value": "4"},
    ]

    assert current_values({"identifier": identifiers}, "s") == {"1", "2"}
    assert current_values({}, "s") == set()


def test_a_resource_refers_to_its_own_patient_by_an_empty_code() -> None:
    values: list[SearchValue] = [
        ("subject", "", "Patient"),
        ("patient", PERSON, "Patient"),
        ("performer", "", "Organization"),
        ("focus", None, None),
    ]

    assert names_of_own_patients(values) == {"subject"}
