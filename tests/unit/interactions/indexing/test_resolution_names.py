"""Under which names values are stored, and which parameters a type may have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import ConfigurationError
from fhirpub.interactions.indexing.resolution import check_element, resolve_parameters
from fhirpub.plugin_api import Part, ResourceType, SearchParameter
from tests.indexers import SCHEMAS
from tests.unit.interactions.indexing.practitioners import coded, searched


def test_times_are_stored_under_one_name_whatever_others_store() -> None:
    one, other = (
        SearchParameter(name=name, type="date", paths=(path,))
        for name, path in (("a", "birthDate"), ("b", "qualification.period"))
    )
    both = SearchParameter(name="both", type="date", paths=("birthDate", "qualification.period"))
    it = searched(one, other, both)

    assert it.parameters["both"].stores
    assert it.parameters["both"].is_sortable
    assert it.parameters["both"].names == ("birthDate|qualification.period",)


def test_a_composite_stores_no_values_under_a_name_of_its_own() -> None:
    it = searched(
        coded("a", "gender"),
        coded("b", "language"),
        SearchParameter(name="pair", type="composite", components=("a", "b")),
    )

    assert it.parameters["pair"].stores is False


def test_a_composite_leads_to_where_its_components_are_stored() -> None:
    it = searched(
        coded("a", "gender"),
        coded("b", "language"),
        coded("both", "gender", "language"),
        coded("each", "language", "active"),
        SearchParameter(name="single", type="composite", components=("both", "a")),
        SearchParameter(name="shared", type="composite", components=("a", "each")),
    )

    def stored(name: str) -> list[tuple[str, str]]:
        return [(one.first, one.second) for one in it.parameters[name].pairings]

    assert stored("single") == [("gender", "gender")]
    assert stored("shared") == [("gender", "language|active")]


def test_every_type_is_searched_by_its_status_and_its_identifiers() -> None:
    declared = replace(PARAMETERS, name="Observation")
    found = {
        one.parameter.name: (one.parameter.type, one.parameter.paths, one.stored)
        for one in resolve_parameters(declared, None, ("identifier", "focus.identifier"))
    }

    assert found == {
        "status": ("token", ("status",), "status"),
        "identifier": ("token", ("identifier", "focus.identifier"), "identifiers"),
    }
    assert [one.parameter.name for one in resolve_parameters(declared, None, ())] == ["status"]


# Elements


VALUES = frozenset(
    "Address Age Annotation Attachment CodeableConcept Coding ContactPoint Count Distance "
    "Duration HumanName Identifier Money Period Quantity Range Ratio Reference Timing "
    "boolean canonical code date dateTime decimal id instant integer markdown oid positiveInt "
    "string time unsignedInt uri url uuid".split()
)
"""Types of the values that an entry of Parameters can have."""
PARAMETERS = ResourceType(
    name="Parameters",
    parts=(),
    create_statuses=frozenset(),
    update_statuses=frozenset(),
)


def refusal(kind: Any, path: str) -> str:
    """Return why a parameter cannot be over an element; empty if it can."""
    parameter = SearchParameter(name="x", type=kind, paths=(path,))
    try:
        check_element(parameter, path, PARAMETERS, SCHEMAS)
    except ConfigurationError as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        ("token", "CodeableConcept Coding Identifier boolean code"),
        ("date", "Period Timing date dateTime instant"),
        ("reference", "Reference"),
        ("quantity", "Age Count Distance Duration Quantity"),
        ("number", "decimal integer positiveInt unsignedInt"),
        ("string", "HumanName markdown string"),
        ("uri", "canonical oid uri url uuid"),
    ],
)
def test_each_kind_of_parameter_takes_elements_of_certain_types(kind: str, taken: str) -> None:
    found = [
        one
        for one in sorted(VALUES)
        if not refusal(kind, f"parameter.value{one[0].upper()}{one[1:]}")
    ]

    assert found == taken.split()


def test_an_element_of_another_type_is_refused_with_those_that_can_be() -> None:
    assert refusal("date", "parameter.valueAge") == (
        "Parameters: search parameter x: parameter.valueAge is an element of type Age; "
        "a date is one of type Period, Timing, date, dateTime, instant"
    )


def test_what_is_no_element_of_the_type_is_named_so() -> None:
    assert "search parameter x: parameter.born is no element of it; a date is" in refusal(
        "date", "parameter.born"
    )


def test_an_element_has_the_name_of_its_values() -> None:
    patient = replace(PARAMETERS, name="Patient")
    gender, active = coded("x", "gender"), coded("y", "active")

    assert check_element(gender, "gender", patient, SCHEMAS) == "administrative-gender"
    assert check_element(active, "active", patient, SCHEMAS) == "boolean"


# The patient


def patients(declared: ResourceType, member: Part | None = None) -> list[tuple[str, str]]:
    """Return the elements by which a type is searched for a patient, each with its target."""
    return [
        (one.stored, one.target)
        for one in resolve_parameters(declared, member, ())
        if one.parameter.name == "patient"
    ]


def test_a_type_is_searched_by_the_patient_that_comes_with_it() -> None:
    parts = (
        Part(name="author", type="Practitioner", referred_by="performer"),
        Part(name="patient", type="Patient", referred_by="subject"),
    )

    assert patients(replace(PARAMETERS, name="Observation", parts=parts)) == [
        ("subject", "Patient")
    ]


def test_what_comes_with_others_is_searched_by_the_patient_that_it_is_about() -> None:
    declared = replace(PARAMETERS, name="Observation")
    member = Part(
        name="result", type="Observation", referred_by="result", repeats=True, patient="subject"
    )

    assert patients(declared, member) == [("subject", "Patient")]
    assert patients(declared, replace(member, patient="")) == []
    assert patients(declared) == []
