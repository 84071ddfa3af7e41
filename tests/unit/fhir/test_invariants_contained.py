"""FHIR's rules about contained resources, their ids, and the types of references."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import Issue
from fhirpub.fhir.invariants import (
    broken_invariants,
    local_in,
    mistyped_references,
    repeated_ids,
    types_of_contained,
)
from fhirpub.plugin_api import Entry
from fhirpub.problems import ContentProblem

PATIENT = {"resourceType": "Patient", "id": "p1"}
REFERRED = "must be referred to from its container, by # and its id (dom-3)"


def issues_of(**elements: Any) -> list[Issue]:
    entry = Entry({"resourceType": "Observation", **elements}, "Observation")
    leading = types_of_contained(entry.resource)
    return [*broken_invariants(entry.resource, entry.rule_targets, entry.place_of, leading)]


def issue_of(**elements: Any) -> Issue:
    (issue,) = issues_of(**elements)
    return issue


def mistyped(types: dict[str, str] | None = None, **elements: Any) -> list[Issue]:
    entry = Entry({"resourceType": "Observation", **elements}, "Observation")
    return [*mistyped_references(entry.rule_targets, entry.place_of, types or {})]


# What is contained


@pytest.mark.parametrize(
    "elements",
    [
        {"subject": {"reference": "#p1"}},
        {"extension": [{"url": "https://x.example", "valueUri": "#p1"}]},
        {"instantiatesCanonical": ["https://x.example", "#p1"]},
    ],
)
def test_what_is_contained_is_referred_to_in_any_way(elements: dict[str, Any]) -> None:
    assert issues_of(contained=[PATIENT], **elements) == []


def test_what_is_contained_may_refer_to_its_container() -> None:
    provenance = {"resourceType": "Provenance", "id": "v", "target": [{"reference": "#"}]}

    assert issues_of(contained=[provenance]) == []


def test_what_is_contained_may_be_referred_to_by_another_contained_resource() -> None:
    role = {"resourceType": "PractitionerRole", "id": "r", "practitioner": {"reference": "#p1"}}

    assert issues_of(contained=[role, PATIENT], performer=[{"reference": "#r"}]) == []


@pytest.mark.parametrize("reference", ["#p2", "p1", "Patient/p1"])
def test_what_is_contained_and_not_referred_to_is_refused(reference: str) -> None:
    other = {"resourceType": "Patient", "id": "p2"}

    issues = issues_of(contained=[other, PATIENT], subject={"reference": reference})

    assert [issue.diagnostics for issue in issues if issue.expression == "contained[1]"] == [
        REFERRED
    ]
    assert {issue.details for issue in issues} == {ContentProblem.INVARIANT_BROKEN}


@pytest.mark.parametrize("name", ["versionId", "lastUpdated", "security"])
def test_what_is_contained_has_no_version_and_no_security(name: str) -> None:
    patient = {**PATIENT, "meta": {name: "1", "profile": []}}

    issue = issue_of(contained=["x", patient], subject={"reference": "#p1"})

    assert (issue.diagnostics, issue.expression) == (
        "must not have version or security (dom-4, dom-5)",
        "contained[1].meta",
    )


@pytest.mark.parametrize("meta", [{}, {"profile": ["https://x.example"]}, None, ["versionId"]])
def test_what_is_contained_may_have_a_profile(meta: Any) -> None:
    assert issues_of(contained=[{**PATIENT, "meta": meta}], subject={"reference": "#p1"}) == []


def test_what_is_contained_contains_nothing_itself() -> None:
    outer = {**PATIENT, "contained": [{"resourceType": "Organization", "id": "o"}]}

    issue = issue_of(contained=[outer], subject={"reference": "#p1"})

    assert (issue.diagnostics, issue.expression) == (
        "a contained resource must not contain others (dom-2)",
        "contained[0].contained",
    )


def test_what_follows_a_contained_resource_that_is_wrong_is_looked_at() -> None:
    contained = [
        {"resourceType": "Patient", "id": "a", "meta": {"versionId": "1"}},
        {"resourceType": "Patient", "id": "b"},
    ]

    assert [issue.expression for issue in issues_of(contained=contained)] == [
        *("contained[0].meta", "contained[0]", "contained[1]")
    ]


# Ids and types of what is contained


def test_each_id_of_a_contained_resource_is_used_once() -> None:
    patients = [{"id": "a"}, {"id": "b"}, "x", {"id": "a"}, {"id": "a"}]

    issues = [*repeated_ids({"contained": patients})]

    assert [issue.expression for issue in issues] == ["contained[3].id", "contained[4].id"]
    assert {(issue.diagnostics, issue.details, issue.severity) for issue in issues} == {
        (
            "must not be the id of another contained resource",
            ContentProblem.ID_REPEATED,
            "error",
        )
    }


@pytest.mark.parametrize("contained", [None, {}, "x", [], [{"id": "a"}, {"id": "b"}], [{}, {}]])
def test_other_contents_repeat_no_id(contained: Any) -> None:
    assert [*repeated_ids({"contained": contained})] == []


def test_a_resource_that_contains_nothing_repeats_no_id() -> None:
    assert [*repeated_ids({"id": "a"})] == []
    assert types_of_contained({"id": "a"}) == {}


def test_what_is_contained_has_its_type_by_the_literal_that_leads_there() -> None:
    organization = {"resourceType": "Organization", "id": "o"}

    assert types_of_contained({"contained": [PATIENT, "x", organization]}) == {
        "#p1": "Patient",
        "#o": "Organization",
    }


def test_what_leads_into_a_resource_is_found_at_any_depth() -> None:
    resource = {
        "a": "#1",
        "b": ["#2", "x", 7, None],
        "c": [{"d": {"e": "#3"}}],
        "f": "x#4",
        "g": "",
    }

    assert sorted(local_in(resource)) == ["#1", "#2", "#3"]


# Types of references


@pytest.mark.parametrize(
    ("literal", "said"),
    [
        ("Patient/1", "Patient"),
        ("Patient/1", "http://hl7.org/fhir/StructureDefinition/Patient"),
        ("Patient/1/_history/2", "Patient"),
        ("https://x.example/Patient/1", "Group"),
        ("#p1", "Patient"),
        ("#p2", "Group"),
        ("urn:uuid:1", "Patient"),
        ("urn:uuid:2", "Group"),
    ],
)
def test_a_reference_of_its_type_or_of_one_that_is_not_known_is_good(
    literal: str, said: str
) -> None:
    types = {"#p1": "Patient", "urn:uuid:1": "Patient"}

    assert mistyped(types, subject={"reference": literal, "type": said}) == []


@pytest.mark.parametrize(
    ("literal", "said"),
    [
        ("Patient/1", "Group"),
        ("Patient/1", "https://x.example/Patient"),
        ("Patient/1/_history/2", "Group"),
        ("#p1", "Group"),
        ("Patient/1", ""),
    ],
)
def test_a_reference_of_another_type_than_it_leads_to_is_refused(literal: str, said: str) -> None:
    (issue,) = mistyped({"#p1": "Patient"}, subject={"reference": literal, "type": said})

    assert (issue.diagnostics, issue.details, issue.code) == (
        "must be Patient, which the reference leads to, or be left out",
        ContentProblem.REFERENCE_WRONG,
        "exception",
    )
    assert (issue.expression, issue.severity) == ("subject.type", "error")


def test_a_relative_reference_names_its_type_itself() -> None:
    reference = {"reference": "Patient/1", "type": "Patient"}

    assert mistyped({"Patient/1": "Group"}, subject=reference) == []


@pytest.mark.parametrize(
    "reference",
    [
        {"reference": "Patient/1"},
        {"type": "Group"},
        {"reference": 7, "type": "Group"},
        {"reference": "Patient/1", "type": None},
        {"reference": "Patient/1", "type": ["Group"]},
    ],
)
def test_a_reference_without_a_type_or_a_literal_is_good(reference: dict[str, Any]) -> None:
    assert mistyped(subject=reference) == []


def test_what_follows_a_reference_without_a_type_is_looked_at() -> None:
    found = mistyped(
        subject={"reference": "Patient/1"},
        performer=[{"reference": "Patient/1", "type": "Group"}],
    )

    assert [issue.expression for issue in found] == ["performer[0].type"]
