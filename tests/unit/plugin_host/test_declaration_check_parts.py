"""Attributes of parts that are malformed, or that belong to other parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.plugin_api import Part, SearchParameter
from fhirpub.plugin_host.declaration_check import _malformed_member, _part_problems
from tests.unit.plugin_host.test_schemas import REPORT


def a_part(**fields: Any) -> Part:
    usual: dict[str, Any] = {
        "name": "result",
        "type": "Observation",
        "referred_by": "result",
        "required": False,
        "repeats": True,
    }
    return Part(**usual | fields)


def problems(**fields: Any) -> list[str]:
    return [*_malformed_member(a_part(**fields))]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"statuses": frozenset({"final", "entered-in-error"})},
        {"times": ("effectiveDateTime", "value.start")},
        {"codings": ("code",), "acyclic": ("hasMember",), "patient": "subject"},
        {"repeats": False, "required": True},
        {"repeats": False, "include_in_events": True},
    ],
)
def test_attributes_that_are_well_formed_have_no_problem(fields: dict[str, Any]) -> None:
    assert problems(**fields) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"statuses": ("final",)}, "statuses must be a frozenset, not tuple"),
        ({"times": ["issued"]}, "times must be a tuple, not list"),
        ({"codings": "code"}, "codings must be a tuple, not str"),
        ({"statuses": frozenset({" one"})}, "statuses holds ' one', which cannot be a name"),
        ({"times": ("issued", "a..b")}, "times holds 'a..b', which cannot be a name"),
        ({"acyclic": (7,)}, "acyclic holds 7, which cannot be a name"),
        ({"patient": "a..b"}, "patient: 'a..b' is not the name of an element"),
        ({"required": True}, "a part that repeats cannot be required: set required=False"),
        ({"include_in_events": True}, "a part that repeats cannot be included in events"),
        (
            {"repeats": False, "statuses": frozenset({"final"}), "patient": "subject"},
            "statuses, patient: only a part with repeats=True has this",
        ),
    ],
)
def test_what_is_wrong_is_reported_in_a_sentence(fields: dict[str, Any], said: str) -> None:
    assert problems(**fields) == [said]


def part_problems(*parts: Part) -> list[str]:
    return _part_problems(replace(REPORT, parts=parts))


def test_a_name_of_a_part_is_given_once() -> None:
    assert part_problems(a_part(), a_part(name="other")) == []
    assert part_problems(a_part(), a_part()) == ["part result: the name is taken, choose another"]
    assert len(part_problems(a_part(name="diagnosticReport"))) == 1


def test_a_part_is_of_a_type() -> None:
    assert part_problems(a_part(type="not one")) == [
        "part result: 'not one' is not the name of a FHIR type"
    ]


@pytest.mark.parametrize(("repeats", "count"), [(True, 1), (False, 0)])
def test_searches_of_a_part_that_repeats_are_checked(*, repeats: bool, count: int) -> None:
    twice = SearchParameter(name="code", type="token", paths=("code",))

    found = part_problems(a_part(repeats=repeats, search=(twice, twice)))

    assert len([one for one in found if one.startswith("part result: search")]) == count


@pytest.mark.parametrize(
    ("referred_by", "required", "is_wrong"),
    [("", False, False), ("", True, True), ("a..b", False, True), ("result", True, False)],
)
def test_a_part_that_is_required_names_the_element_that_refers_to_it(
    referred_by: str, *, required: bool, is_wrong: bool
) -> None:
    found = part_problems(a_part(repeats=False, referred_by=referred_by, required=required))

    said = f"part result: {referred_by!r} is not the name of an element"
    assert found == [said] * is_wrong


@pytest.mark.parametrize("name", ["identifier", "status", "patient"])
def test_what_every_type_is_searched_by_is_not_declared(name: str) -> None:
    parameter = SearchParameter(name=name, type="token", paths=("code",))

    assert part_problems(a_part(search=(parameter,))) == [
        f"part result: search parameter {name}: every type has it, do not declare it"
    ]
