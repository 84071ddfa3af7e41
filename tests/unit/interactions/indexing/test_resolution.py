"""Where the values of texts are stored, and which parameters share them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.interactions.indexing.resolution import resolve_parameters
from fhirpub.plugin_api import ResourceType, SearchParameter, patient, practitioner
from tests.unit.interactions.indexing.practitioners import (
    MEMBER,
    coded,
    searched,
    text,
    values_of,
)


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


FLAG = ResourceType(
    name="Flag", parts=(), create_statuses=frozenset(), update_statuses=frozenset()
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
