"""Declarations with several elements, parts or parameters, of which each counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.plugin_api import IdentifierRule, Part, SearchParameter
from fhirpub.plugin_host.declaration_check import _malformed_member, problems_of
from tests.unit.plugin_host.test_schemas import REPORT


def found(**changes: Any) -> list[str]:
    return problems_of(replace(REPORT, **changes))


def a_part(name: str, referred_by: str, **fields: Any) -> Part:
    usual: dict[str, Any] = {"type": "Specimen", "required": False}
    return Part(name=name, referred_by=referred_by, **usual | fields)


def test_each_name_that_cannot_be_one_is_reported() -> None:
    assert found(times=("a..b", "issued", "c d"), codings=("e f",)) == [
        "times holds 'a..b', which cannot be a name",
        "times holds 'c d', which cannot be a name",
        "codings holds 'e f', which cannot be a name",
    ]


@pytest.mark.parametrize(
    ("attachments", "summary", "problems"),
    [
        (("content", "contentList"), (), []),
        (("content.attachment",), ("contentList",), []),
        (
            ("content.attachment",),
            ("content",),
            ["content is an attachment and cannot be in the summary"],
        ),
        (
            ("content.attachment", "content"),
            (),
            ["attachments: content.attachment stands below content"],
        ),
    ],
)
def test_documents_stand_side_by_side_and_in_no_summary(
    attachments: tuple[str, ...], summary: tuple[str, ...], problems: list[str]
) -> None:
    assert found(attachments=attachments, summary=summary) == problems


def test_what_refers_to_an_optional_part_is_never_updatable_but_for_one_that_repeats() -> None:
    parts = (
        a_part("sample", "specimen.reference"),
        a_part("result", "result", repeats=True, type="Observation"),
    )

    problems = found(parts=parts, updatable=frozenset({"status", "specimen", "result"}), search=())

    assert problems == ["specimen can never be updatable"]


@pytest.mark.parametrize("name", ["masterIdentifier", "identifier", "use"])
def test_no_element_of_the_key_is_updatable(name: str) -> None:
    rule = IdentifierRule(elements=("masterIdentifier", "identifier", "use.identifier"))

    problems = found(identifier=rule, updatable=frozenset({"status", name}))

    assert problems == [f"{name} can never be updatable"]


def test_each_part_has_a_name_of_its_own() -> None:
    parts = (a_part("a", "a"), a_part("b", "b"), a_part("a", "c", type="Device"))

    assert found(parts=parts, search=()) == ["part a: the name is taken, choose another"]


def composed(first: SearchParameter, second: SearchParameter) -> list[str]:
    pair = SearchParameter(name="pair", type="composite", components=(first.name, second.name))
    return [
        line.removeprefix("search parameter pair: ")
        for line in found(search=(first, second, pair), parts=())
    ]


def token(*paths: str) -> SearchParameter:
    return SearchParameter(name="code", type="token", paths=paths)


def quantity(*paths: str) -> SearchParameter:
    return SearchParameter(name="value", type="quantity", paths=paths)


APART = ["its components have no elements in the same element"]


@pytest.mark.parametrize(
    ("codes", "values", "problems"),
    [
        (("code",), ("valueQuantity",), []),
        (("component.code",), ("component.valueQuantity",), []),
        (("code", "component.code"), ("component.valueQuantity",), []),
        (("a.b.code",), ("a.b.value",), []),
        (("a.b.code",), ("a.c.value",), APART),
        (("code",), ("component.valueQuantity",), APART),
    ],
)
def test_components_have_one_element_in_common(
    codes: tuple[str, ...], values: tuple[str, ...], problems: list[str]
) -> None:
    assert composed(token(*codes), quantity(*values)) == problems


def test_no_component_is_a_composite_itself() -> None:
    inner = SearchParameter(name="inner", type="composite", components=("code", "value"))
    outer = SearchParameter(name="outer", type="composite", components=("code", "inner"))

    problems = found(search=(token("code"), quantity("valueQuantity"), inner, outer), parts=())

    said = "its components must be a token, and one that is no reference and no composite"
    assert f"search parameter outer: {said}" in problems


@pytest.mark.parametrize("components", [("a",), ("a", "b", "c"), ["a", "b"]])
def test_a_composite_has_two_components(components: Any) -> None:
    pair = SearchParameter(name="pair", type="composite", components=components)

    assert found(search=(pair,)) == [
        (
            "search parameter 'pair': components must be a tuple of the names of two other "
            "parameters"
        )
    ]


def test_all_that_is_wrong_with_a_parameter_is_reported() -> None:
    wrong: Any = SearchParameter(name="Code", type="x", paths=("a b", "c"))  # type: ignore[arg-type]

    assert [line.partition(": ")[2][:14] for line in found(search=(wrong,))] == [
        *("the name must ", "the type must ", "'a b' cannot b")
    ]


def test_all_that_is_wrong_with_a_member_is_reported() -> None:
    wrong: Any = {"statuses": ("final",), "times": ["x"], "acyclic": ("a b", "c d")}
    part = a_part("result", "result", repeats=True, **wrong)

    assert [line.partition(" ")[0] for line in _malformed_member(part)] == [
        *("statuses", "times", "acyclic", "acyclic"),
    ]


def test_elements_of_two_parameters_have_one_type() -> None:
    first = SearchParameter(name="a", type="date", paths=("issued",))
    same = SearchParameter(name="b", type="date", paths=("issued",))
    other = SearchParameter(name="c", type="token", paths=("issued",))

    assert found(search=(first, same)) == []
    assert found(search=(first, same, other)) == [
        "search parameter c: the same elements have another type"
    ]
