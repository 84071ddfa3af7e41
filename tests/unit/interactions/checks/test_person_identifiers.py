"""Identifiers that stand for a person, and do not say for which."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.patients import PatientsConfig
from fhirpub.interactions.checks.person_identifiers import ambiguous_persons
from tests.unit.interactions.checks.submitted import Places, places, submitted
from tests.unit.interactions.updating import CONTEXT

FIRST, SECOND = "https://registry.example/persons", "https://hospital.example/mrn"


def found(*identifiers: dict[str, Any], systems: tuple[str, ...] = (FIRST, SECOND)) -> Places:
    config = replace(CONTEXT.config, patients=PatientsConfig(person_systems=[*systems]))
    submission = submitted(patient_changes={"identifier": [*identifiers]})
    return places(ambiguous_persons(submission, replace(CONTEXT, config=config)))


def number(value: str, system: str = FIRST, **more: str) -> dict[str, str]:
    return {"system": system, "value": value, **more}


def rule(count: int, system: str) -> tuple[str, str]:
    return (
        "Parameters.parameter[0].resource.identifier",
        f"has {count} identifiers in {system}: none of them stands for the person",
    )


def test_several_identifiers_of_one_system_are_a_warning() -> None:
    assert found(number("1"), number("2"), number("3")) == [rule(3, FIRST)]


def test_each_system_is_looked_at() -> None:
    several = [number(value, system) for system in (SECOND, FIRST) for value in "12"]

    assert found(*several) == [rule(2, FIRST), rule(2, SECOND)]


@pytest.mark.parametrize(
    "identifiers",
    [
        [],
        [number("1")],
        [number("1"), number("1")],
        [number("1"), number("2", SECOND)],
        [number("1"), number("2", use="old")],
        [number("1", "urn:other"), number("2", "urn:other")],
    ],
)
def test_what_leaves_no_doubt_is_no_warning(identifiers: list[dict[str, str]]) -> None:
    assert found(*identifiers) == []


def test_without_systems_no_identifier_stands_for_a_person() -> None:
    assert found(number("1"), number("2"), systems=()) == []


def test_it_is_a_warning() -> None:
    config = replace(CONTEXT.config, patients=PatientsConfig(person_systems=[FIRST]))
    submission = submitted(patient_changes={"identifier": [number("1"), number("2")]})

    (issue,) = ambiguous_persons(submission, replace(CONTEXT, config=config))

    assert (issue.severity, issue.details) == ("warning", "person-ambiguous")


def test_an_organization_is_no_person() -> None:
    config = replace(CONTEXT.config, patients=PatientsConfig(person_systems=[FIRST]))
    submission = submitted(organization_changes={"identifier": [number("1"), number("2")]})

    assert places(ambiguous_persons(submission, replace(CONTEXT, config=config))) == []


def test_patients_of_a_part_that_repeats_stand_for_no_persons() -> None:
    config = replace(CONTEXT.config, patients=PatientsConfig(person_systems=[FIRST]))
    submission = submitted(patient_changes={"identifier": [number("1"), number("2")]})
    declared = {name: replace(one, repeats=True) for name, one in submission.declared.items()}
    repeating = replace(submission, declared=declared)

    assert places(ambiguous_persons(repeating, replace(CONTEXT, config=config))) == []
