"""Where the values of texts are stored, and which parameters share them."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.errors import ConfigurationError
from fhirpub.fhir.schema import Schemas
from fhirpub.interactions.indexing.resolution import check_element, resolve_parameters
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.plugin_api import ResourceType, SearchParameter, patient, practitioner
from fhirpub.storage.criteria import SearchValue, decode
from tests.indexers import indexer

MEMBER = replace(practitioner(referred_by="performer"), repeats=True)


def text(name: str, *paths: str) -> SearchParameter:
    return SearchParameter(name=name, type="string", paths=paths)


def searched(*search: SearchParameter) -> SearchIndexer:
    """Return practitioners that come with other resources, found by these parameters."""
    declared = ResourceType(
        name="Practitioner",
        parts=(),
        create_statuses=frozenset(),
        update_statuses=frozenset(),
        search=search,
    )
    return indexer(declared, member=MEMBER)


def values_of(it: SearchIndexer, **elements: Any) -> set[SearchValue]:
    return set(decode(it.values_of_member({"resourceType": "Practitioner", **elements}, {})))


def test_texts_are_taken_of_strings_and_of_names() -> None:
    it = searched(
        text("name", "name"),
        text("address-city", "address.city"),
        text("prefix", "name.prefix"),
        text("qualification", "qualification.identifier.value"),
    )
    name: dict[str, Any] = {
        "family": "Ashdown",
        "given": ["Juniper", None],
        "text": "Juniper Ashdown",
    }
    name["prefix"] = ["Dr.", None]

    values = values_of(
        it,
        name=[name, {"family": "ASHDOWN", "use": "old"}],
        address=[{"city": "Nürnberg"}, {"line": ["1 Elm Row"]}],
        qualification=[{"identifier": [{"value": "\u200b"}]}],
    )

    assert values == {
        ("name", "ashdown", "family"),
        ("name", "juniper", "given"),
        ("name", "juniper ashdown", "text"),
        ("name", "ashdown", "text"),
        ("name:exact", "", "family|Ashdown"),
        ("name:exact", "", "family|ASHDOWN"),
        ("name:exact", "", "given|Juniper"),
        ("name:exact", "", "text|Juniper Ashdown"),
        ("name.prefix", "dr.", ""),
        ("name.prefix:exact", "", "|Dr."),
        ("address.city", "nurnberg", ""),
        ("address.city:exact", "", "|Nürnberg"),
        ("qualification.identifier.value", None, None),
    }


NAME, FAMILY = text("name", "name"), text("family", "name.family")


@pytest.mark.parametrize("declared", [(NAME, FAMILY), (FAMILY, NAME)])
def test_a_part_of_a_name_is_found_among_the_texts_of_the_name(
    declared: tuple[SearchParameter, ...],
) -> None:
    it, alone, without = searched(*declared), searched(FAMILY), searched(NAME)

    assert (it.parameters["family"].stored, it.parameters["family"].kind) == ("name", "family")
    assert values_of(it, name=[{"family": "Ashdown"}]) == {
        ("name", "ashdown", "family"),
        ("name:exact", "", "family|Ashdown"),
    }
    assert it.rules == without.rules
    assert (alone.parameters["family"].stored, alone.parameters["family"].kind) == (
        "name.family",
        None,
    )
    assert ("name.family", "ashdown", "") in values_of(alone, name=[{"family": "Ashdown"}])


@pytest.mark.parametrize(
    "declared",
    [
        text("family", "name.family", "name.given"),
        text("suffix", "name.suffix"),
        text("city", "address.city"),
    ],
)
def test_other_texts_are_stored_apart(declared: SearchParameter) -> None:
    it = searched(NAME, declared)

    found = it.parameters[declared.name]

    assert (found.stored, found.kind) == ("|".join(declared.paths), None)


@pytest.mark.parametrize(
    ("of_type", "of_member", "has_status"),
    [((), (), False), (("final",), (), True), ((), ("final",), True)],
)
def test_members_are_searched_by_a_status_where_one_may_have_it(
    of_type: tuple[str, ...], of_member: tuple[str, ...], *, has_status: bool
) -> None:
    declared = ResourceType(
        name="Observation",
        parts=(),
        create_statuses=frozenset(of_type),
        update_statuses=frozenset(),
    )
    member = replace(MEMBER, type="Observation", statuses=frozenset(of_member))

    names = [one.parameter.name for one in resolve_parameters(declared, member, ())]

    assert ("status" in names) is has_status
    assert [one.parameter.name for one in resolve_parameters(declared, None, ())] == ["status"]


def coded(name: str, *paths: str) -> SearchParameter:
    return SearchParameter(name=name, type="token", paths=paths)


def test_what_others_store_one_by_one_is_found_there() -> None:
    it = searched(
        coded("a", "gender"), coded("b", "language"), coded("both", "gender", "language")
    )

    assert it.parameters["both"].names == ("gender", "language")
    assert [it.parameters[name].stores for name in ("a", "b", "both")] == [True, True, False]
    assert {name for name, _system, _code in values_of(it, gender="other")} == {"gender"}


def test_of_what_others_store_only_in_part_the_values_are_stored() -> None:
    it = searched(coded("a", "gender"), coded("both", "gender", "language"))

    assert it.parameters["both"].stores
    assert it.parameters["both"].names == (it.parameters["both"].stored,)


def test_resources_are_sorted_by_what_is_stored_under_one_name() -> None:
    it = searched(
        coded("a", "gender"),
        coded("b", "language"),
        coded("both", "gender", "language"),
        SearchParameter(name="date", type="date", paths=("birthDate",)),
        SearchParameter(name="refers", type="reference", paths=("qualification.issuer",)),
        SearchParameter(name="pair", type="composite", components=("a", "b")),
    )

    assert [
        one for one in ("a", "date", "both", "refers", "pair") if it.parameters[one].is_sortable
    ] == [
        "a",
        "date",
    ]


ELEMENTS = {
    "token": ("CodeableConcept", "Coding", "Identifier", "boolean", "code"),
    "date": ("Period", "Timing", "date", "dateTime", "instant"),
    "reference": ("Reference",),
    "quantity": ("Age", "Count", "Distance", "Duration", "Quantity"),
    "number": ("decimal", "integer", "positiveInt", "unsignedInt"),
    "string": ("HumanName", "markdown", "string"),
    "uri": ("canonical", "oid", "uri", "url", "uuid"),
}
TYPES = sorted({one for names in ELEMENTS.values() for one in names})
FLAG = ResourceType(
    name="Flag", parts=(), create_statuses=frozenset(), update_statuses=frozenset()
)


def checked(kind: Any, found: str) -> str:
    """Check a parameter over an element of a type."""
    schemas = SimpleNamespace(type_at=lambda *_place: (found, f"values of {found}"))
    parameter = SearchParameter(name="sought", type=kind, paths=("at.place",))
    return check_element(parameter, "at.place", FLAG, cast("Schemas", schemas))


@pytest.mark.parametrize("kind", ELEMENTS)
def test_a_parameter_takes_elements_of_the_types_that_it_can_compare(kind: str) -> None:
    taken = []
    for found in TYPES:
        with contextlib.suppress(ConfigurationError):
            assert checked(kind, found) == f"values of {found}"
            taken.append(found)

    assert taken == sorted(ELEMENTS[kind])


@pytest.mark.parametrize(
    ("found", "words"), [("Period", "an element of type Period"), ("", "no element of it")]
)
def test_an_element_that_cannot_be_compared_is_named_with_those_that_can(
    found: str, words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        checked("string", found)

    assert str(refused.value) == (
        f"Flag: search parameter sought: at.place is {words}; a string is one of type HumanName, "
        "markdown, string"
    )


def test_references_to_patients_are_found_by_patient_wherever_they_stand() -> None:
    parts = (patient(referred_by="subject"), practitioner(referred_by="author"))
    declared = replace(FLAG, parts=parts)
    member = replace(MEMBER, type="Flag", patient="focus")

    found = [
        (one.parameter.paths, one.target)
        for one in resolve_parameters(declared, member, ())
        if one.parameter.name == "patient"
    ]

    assert found == [(("subject",), "Patient"), (("focus",), "Patient")]
