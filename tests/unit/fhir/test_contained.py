"""Only the contained resources that a part leads to go with it."""

from __future__ import annotations

from typing import Any

from fhirpub.fhir.contained import reachable, with_contained

ONE = {"resourceType": "Patient", "id": "1", "managingOrganization": {"reference": "#2"}}
TWO = {"resourceType": "Organization", "id": "2", "partOf": {"reference": "#1"}}
THREE = {"resourceType": "Device", "id": "3"}
WHOLE: dict[str, Any] = {"contained": [ONE, TWO, THREE], "subject": {"reference": "#1"}}


def test_what_is_led_to_by_what_is_led_to_is_reachable() -> None:
    among: dict[str, dict[str, Any]] = {"#1": ONE, "#2": TWO, "#3": THREE}

    assert reachable({"subject": {"reference": "#1"}}, among) == {"#1": ONE, "#2": TWO}


def test_a_part_has_what_it_leads_to_of_the_whole() -> None:
    part = {"subject": {"reference": "#2"}}

    assert with_contained(part, WHOLE) == {**part, "contained": [TWO, ONE]}
    assert "contained" not in part


def test_a_part_that_leads_to_nothing_contains_nothing() -> None:
    for literal in ("#4", "Patient/1", "#"):
        part = {"subject": {"reference": literal}}
        assert with_contained(part, WHOLE) == part


def test_a_part_keeps_what_it_contains() -> None:
    part = {"contained": [THREE], "subject": {"reference": "#1"}}

    assert with_contained(part, WHOLE) == part


def test_a_whole_without_contained_resources_adds_none() -> None:
    part = {"subject": {"reference": "#1"}}

    assert with_contained(part, {"subject": {"reference": "#1"}}) == part
