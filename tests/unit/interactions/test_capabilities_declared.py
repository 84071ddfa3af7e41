"""Each type and each way to include is declared once, where it belongs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from fhirpub.fhir.strict_json import loads_stored
from fhirpub.interactions.capabilities import (
    own_resources,
    reverse_includes,
    search_parameters_of,
    statement,
)
from fhirpub.interactions.context import Context
from fhirpub.problems import ALL
from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.patients.people import context_of


@pytest.fixture
def context(store: SqliteStore) -> Context:
    return context_of(store)


def test_a_type_that_is_a_part_of_one_and_comes_with_another_is_declared_once(
    context: Context,
) -> None:
    _tag, body = statement(context)
    (rest,) = loads_stored(body)["rest"]

    counts = Counter(one["type"] for one in rest["resource"])
    assert [name for name, number in counts.items() if number > 1] == []
    (practitioner,) = [one for one in rest["resource"] if one["type"] == "Practitioner"]
    assert practitioner["searchParam"]


@pytest.mark.parametrize(
    ("type_name", "own"),
    [
        ("Observation", {"Observation:derived-from", "Observation:has-member"}),
        ("Specimen", {"Specimen:parent"}),
        ("ServiceRequest", set[str]()),
        ("Organization", set[str]()),
    ],
)
def test_what_leads_from_a_type_to_itself_leads_to_no_other(
    context: Context, type_name: str, own: set[str]
) -> None:
    among = {"Observation:derived-from", "Observation:has-member", "Specimen:parent"}

    assert among.intersection(reverse_includes(type_name, context)) == own


def test_a_parameter_of_types_with_several_identifiers_is_declared_once(
    context: Context,
) -> None:
    for type_name in context.searched:
        names = [one["name"] for one in search_parameters_of(type_name, context)]
        assert len(names) == len({*names}), type_name


def test_problems_that_a_type_declares_are_codes_beside_those_of_the_service(
    context: Context,
) -> None:
    declared = replace(context.types["Immunization"], problems={"no-lot": "It has no lot."})
    changed = replace(context, types={**context.types, "Immunization": declared})

    (system,) = [
        loads_stored(body)
        for (kind, _name), body in own_resources(changed, b"").items()
        if kind == "CodeSystem"
    ]

    assert system["concept"][-1] == {"code": "no-lot", "definition": "It has no lot."}
    assert system["count"] == len(system["concept"]) == len(ALL) + 1


def test_what_a_type_has_nothing_of_is_not_stated(context: Context) -> None:
    _tag, body = statement(context)
    (rest,) = loads_stored(body)["rest"]
    found = {one["type"]: one for one in rest["resource"]}

    assert "searchRevInclude" not in found["Immunization"]
    for one in found.values():
        assert [name for name, value in one.items() if value == []] == []
