"""Which values are removed because they are empty, and which places are reported."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fhirpub.fhir.lenient.empty_values import remove_empty_values

EMPTY: list[Any] = [None, "", [], {}]


def removed(**elements: Any) -> tuple[dict[str, Any], list[str]]:
    """Return what is left of a Patient, and the places of what was removed."""
    resource = {"resourceType": "Patient", **elements}
    places = [
        place
        for issue in remove_empty_values(resource)
        for place in (issue.expression, *issue.also_at)
    ]
    del resource["resourceType"]
    return resource, places


@pytest.mark.parametrize("empty", EMPTY, ids=repr)
def test_each_empty_value_is_removed_from_an_object(empty: Any) -> None:
    left, places = removed(gender=empty, active=False)

    assert (left, places) == ({"active": False}, ["Patient.gender"])


@pytest.mark.parametrize("empty", [None, "", {}], ids=repr)
def test_each_empty_value_is_removed_from_a_list(empty: Any) -> None:
    left, places = removed(name=[{"given": ["Ana", empty, "Inés"]}])

    assert left == {"name": [{"given": ["Ana", "Inés"]}]}
    assert places == ["Patient.name[0].given[1]"]


def test_places_in_a_list_are_those_of_the_body_as_it_was_sent() -> None:
    left, places = removed(name=[{"given": ["", "Ana", None, "Inés", ""]}])

    assert left == {"name": [{"given": ["Ana", "Inés"]}]}
    assert places == [f"Patient.name[0].given[{number}]" for number in (0, 2, 4)]


def test_the_place_of_what_is_nested_is_its_whole_path() -> None:
    left, places = removed(
        maritalStatus={"text": "x", "coding": [{"code": "", "system": "urn:x"}]},
        managingOrganization={"display": "x", "identifier": {"value": None, "system": "urn:x"}},
    )

    assert places == [
        "Patient.maritalStatus.coding[0].code",
        "Patient.managingOrganization.identifier.value",
    ]
    assert left["managingOrganization"]["identifier"] == {"system": "urn:x"}


@pytest.mark.parametrize("beside", [[], {}, "x", None], ids=repr)
def test_a_list_without_a_list_beside_it_has_no_positions(beside: Any) -> None:
    left, _places = removed(name=[{"given": ["Ana", None], "_given": beside}])

    assert left["name"][0]["given"] == ["Ana"]


def test_what_becomes_empty_is_removed_as_one() -> None:
    left, places = removed(name=[{"given": [""], "period": {"start": None}}], gender="female")

    assert left == {"gender": "female"}
    assert places == ["Patient.name"]


def test_zero_false_and_blanks_are_not_empty() -> None:
    sent = {"active": False, "multipleBirthInteger": 0, "language": " "}

    assert removed(**sent) == (sent, [])


@pytest.mark.parametrize(
    ("given", "beside"),
    [
        (["Ana", None], [None, {"id": "a"}]),
        ([None], [{"extension": [{"url": "urn:x", "valueCode": "y"}]}]),
        (["", "Ana"], [None, None]),
    ],
)
def test_positions_that_mean_something_stay(given: list[Any], beside: list[Any]) -> None:
    sent = {"name": [{"given": given, "_given": beside}]}

    assert removed(**copy.deepcopy(sent)) == (sent, [])


def test_what_is_beside_a_primitive_is_reported_at_its_element() -> None:
    assert removed(_birthDate={}, birthDate="1980-01-01")[1] == ["Patient.birthDate"]


def test_names_that_fhir_could_not_have_are_not_repeated() -> None:
    left, places = removed(contact=[{"Ana Example": None, "gender": "female"}])

    assert left == {"contact": [{"gender": "female"}]}
    assert places == ["Patient.contact[0]"]


def test_a_hundred_places_are_listed_and_the_others_counted() -> None:
    names = [{"text": "a", "family": ""} for _ in range(130)]
    resource = {"resourceType": "Patient", "name": names}

    [issue] = remove_empty_values(resource)

    assert (issue.severity, len(issue.also_at)) == ("warning", 99)
    assert issue.diagnostics.endswith("(and in 30 more places)")


VALUES = st.recursive(
    st.sampled_from([None, "", "text", 0, False]),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(["name", "given", "_given", "x y"]), inner, max_size=4),
        st.lists(inner.filter(lambda item: not isinstance(item, list)), max_size=4),
    ),
    max_leaves=30,
)


def empties(value: Any, holder: Any = None, name: str = "") -> int:
    """Count empty values, but for the items of lists whose positions mean something."""
    if value is None or value == "" or value in ([], {}):
        return 1
    if isinstance(value, dict):
        return sum(empties(member, value, key) for key, member in value.items())
    if isinstance(value, list):
        partner = name[1:] if name.startswith("_") else f"_{name}"
        if isinstance(holder, dict) and isinstance(holder.get(partner), list):  # never empty
            return 0
        return sum(empties(item) for item in value)
    return 0


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["name", "given", "_given"]), VALUES, max_size=4))
def test_nothing_empty_is_left_and_nothing_is_removed_without_a_place(
    elements: dict[str, Any],
) -> None:
    before = {"resourceType": "Patient", **copy.deepcopy(elements)}
    left, places = removed(**elements)

    assert empties(left) == 0 or not left
    assert bool(places) == ({"resourceType": "Patient", **left} != before)
    assert removed(**copy.deepcopy(left)) == (left, [])


@pytest.mark.parametrize("content", [None, [], "", 1, [None]])
def test_what_is_no_object_is_left_alone(content: Any) -> None:
    assert list(remove_empty_values(content)) == []


@pytest.mark.parametrize("kind", [{}, {"resourceType": 5}, {"resourceType": "Ana Example"}])
def test_without_the_name_of_a_type_a_place_begins_with_the_element(kind: dict[str, Any]) -> None:
    [issue] = remove_empty_values({**kind, "gender": None})

    assert issue.expression == "gender"
