"""What an include names is all that is followed, and nothing beside it."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.interactions.search.includes import Include, Included, parse_include
from fhirpub.interactions.versions import Shown
from tests.unit.interactions.search.test_includes import TYPES

REPORT, OBSERVATION = "DiagnosticReport", "Observation"


def followed(type_name: str = REPORT, **fields: Any) -> set[tuple[str, str]]:
    return {*Include(**fields).references_of(TYPES[type_name])}


def test_a_parameter_leads_to_its_own_references_only() -> None:
    assert followed(parameter="result") == {("result", "")}
    assert followed(source=REPORT, parameter="result") == {("result", "")}


def test_a_parameter_of_one_type_leads_to_that() -> None:
    assert followed(parameter="patient") == {("subject", "Patient")}
    assert followed(parameter="patient", target="Patient") == {("subject", "Patient")}


def test_a_target_is_that_of_a_parameter_of_any_type() -> None:
    assert followed(parameter="subject", target="Group") == {("subject", "Group")}


def test_a_target_leaves_out_parameters_of_another_type() -> None:
    names = followed(target="Group")

    assert ("subject", "Patient") not in names
    assert {target for _name, target in names} == {"Group"}


def test_what_is_no_reference_is_never_followed() -> None:
    assert "code" not in {name for name, _target in followed()}
    assert followed(parameter="code") == set()


def test_another_type_refers_to_nothing_that_was_asked_for() -> None:
    assert followed(OBSERVATION, source=REPORT) == set()
    assert followed(OBSERVATION, source=OBSERVATION, parameter="specimen") == {("specimen", "")}


@pytest.mark.parametrize(
    ("value", "options", "include"),
    [
        ("*", {"iterate": True}, Include(iterate=True)),
        ("*:*", {}, None),
        (f"{REPORT}:*", {"iterate": True}, Include(source=REPORT, iterate=True)),
        (f"{OBSERVATION}:*", {"iterate": True}, Include(source=OBSERVATION, iterate=True)),
        (f"{OBSERVATION}:*", {}, None),
        (f"{REPORT}:*:Patient", {}, None),
        ("Flag:subject", {"iterate": True}, None),
        ("Flag:subject", {"reverse": True}, None),
        (
            f"{REPORT}:result:Observation",
            {"reverse": True},
            Include(source=REPORT, parameter="result", target=OBSERVATION, reverse=True),
        ),
        (
            f"{OBSERVATION}:specimen",
            {"reverse": True, "iterate": True},
            Include(source=OBSERVATION, parameter="specimen", reverse=True, iterate=True),
        ),
        (f"{REPORT}:", {}, None),
        (":result", {}, None),
    ],
)
def test_an_include_is_read_whole(
    value: str, options: dict[str, bool], include: Include | None
) -> None:
    assert parse_include(value, REPORT, TYPES, **options) == include


def test_what_is_included_is_resources_and_parts() -> None:
    version = Shown(OBSERVATION, "1", 1, b"a")
    included = Included(versions=[version], parts=[(b"b", frozenset({"patient"}))])

    assert included.bodies == [b"a", b"b"]
    assert Included().bodies == []
