"""Every problem of the identifiers of a resource is reported at its place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.schema import Schemas, own_schemas
from fhirpub.interactions.identity.identification import MAX_IDENTIFIER_LENGTH
from fhirpub.interactions.identity.problems import (
    has_usual_identifier,
    identifier_problems,
    refuse_other_key,
)
from fhirpub.plugin_api import IdentifierRule, ResourceType, ValueForm

REPORT = ResourceType(
    name="DiagnosticReport",
    parts=(),
    create_statuses=frozenset({"final"}),
    update_statuses=frozenset({"amended"}),
)
ONE = {"system": "urn:s:1", "value": "1"}
DIGITS = ValueForm(
    remove="-", pattern="[0-9]+", check=lambda value: value[-1] == "7", words="must end with 7"
)


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return own_schemas()


def problems(schemas: Schemas, rule: IdentifierRule, resource: Any) -> list[tuple[str, str]]:
    declared = replace(REPORT, identifier=rule)
    found = identifier_problems(resource, declared, schemas)
    if not found:
        assert has_usual_identifier(resource, declared)
    return [(issue.expression, issue.diagnostics) for issue in found]


@pytest.mark.parametrize("sent", [None, [], {}, ONE, [ONE, ONE], "x"])
def test_an_element_that_is_a_list_has_exactly_one(schemas: Schemas, sent: Any) -> None:
    ((place, said),) = problems(schemas, IdentifierRule(), {"identifier": sent})

    assert place == "identifier"
    assert said.startswith("must be a list of exactly one identifier, with system and value")


def test_an_element_that_is_none_has_one(schemas: Schemas) -> None:
    declared = replace(REPORT, name="Composition")
    element = schemas.element("DiagnosticReport", "identifier")
    assert element is not None
    single = _Single()

    assert not identifier_problems({"identifier": ONE}, declared, single)  # type: ignore[arg-type]
    (absent,) = identifier_problems({}, declared, single)  # type: ignore[arg-type]
    assert absent.diagnostics == "must be an identifier, with system and value"
    (wrong,) = identifier_problems(
        {"identifier": {"system": "urn:s:1"}},
        declared,
        single,  # type: ignore[arg-type]
    )
    assert wrong.expression == "identifier.value"


class _Single:
    """A schema by which no element repeats."""

    @staticmethod
    def element(_type_name: str, _path: str) -> Any:
        return type("Element", (), {"repeats": False})


def test_all_problems_of_several_are_reported_at_once(schemas: Schemas) -> None:
    rule = IdentifierRule(most=4, refused_systems=frozenset({"urn:bad"}), forms=(DIGITS,))
    resource = {
        "identifier": [
            {"system": "relative", "value": "17"},
            {"system": "urn:bad", "value": "17"},
            {"system": "urn:s", "value": " "},
            {"system": "urn:s", "value": "1-8"},
        ]
    }

    assert [place for place, _said in problems(schemas, rule, resource)] == [
        "identifier[0].system",
        "identifier[1].system",
        "identifier[2].value",
        "identifier[3].value",
    ]


def test_what_could_be_the_key_twice_is_named_with_both_places(schemas: Schemas) -> None:
    resource = {"identifier": [ONE, {**ONE, "value": "2"}]}

    ((place, said),) = problems(schemas, IdentifierRule(most=2), resource)

    assert place == "identifier[0]"
    assert "identifier[1]" in said


def test_what_the_key_needs_is_said(schemas: Schemas) -> None:
    rule = IdentifierRule(most=2, uses=("official", ""), types=("ACSN",), systems=("urn:x",))

    ((place, said),) = problems(schemas, rule, {"identifier": [ONE]})

    assert place == "identifier"
    assert said == (
        "needs an identifier with system and value, the use official or none, the type ACSN, "
        "the system urn:x"
    )


def test_too_many_are_counted_over_all_elements(schemas: Schemas) -> None:
    rule = IdentifierRule(elements=("identifier", "x.identifier"), most=2)
    resource = {"identifier": [ONE], "x": [{"identifier": ONE}, {"identifier": ONE}]}

    ((place, said),) = problems(schemas, rule, resource)

    assert (place, said) == (
        "identifier",
        "must not have more than 2 identifiers in identifier and x.identifier",
    )


@pytest.mark.parametrize(
    "key", [None, ("relative", "1"), ("urn:s", " "), ("urn:s", "x" * 2_048), ("urn:s", 1)]
)
def test_a_function_that_makes_no_proper_key_is_a_problem(schemas: Schemas, key: Any) -> None:
    rule = IdentifierRule(elements=(), key=lambda _resource: key)

    ((place, _said),) = problems(schemas, rule, {})

    assert place == ""


def test_a_function_that_fails_on_what_is_valid_is_not_taken_for_a_refusal() -> None:
    rule = IdentifierRule(elements=(), key=lambda resource: resource["absent"])

    with pytest.raises(KeyError):
        has_usual_identifier({}, replace(REPORT, identifier=rule))


def test_an_update_from_which_another_key_would_follow_is_refused() -> None:
    rule = IdentifierRule(elements=(), key=lambda resource: ("urn:s", resource["url"].lower()))
    declared = replace(REPORT, identifier=rule)

    assert not [*refuse_other_key({"url": "A"}, {"url": "a"}, declared)]
    (issue,) = refuse_other_key({"url": "A"}, {"url": "b"}, declared)
    assert (issue.code, issue.expression) == ("business-rule", "DiagnosticReport")
    assert not [*refuse_other_key({"url": "A"}, {"url": "b"}, REPORT)]


def test_a_value_as_long_as_may_be_is_compared_with_its_form(schemas: Schemas) -> None:
    rule = IdentifierRule(forms=(DIGITS,))
    longest = MAX_IDENTIFIER_LENGTH

    for length, said in ((longest, [DIGITS.words]), (longest + 1, [])):
        one = {"system": "urn:s:1", "value": "1" * length}
        found = [words for _at, words in problems(schemas, rule, {"identifier": [one]})]
        assert [words for words in found if words == DIGITS.words] == said


def test_several_identifiers_that_are_right_need_no_closer_look() -> None:
    declared = replace(REPORT, identifier=IdentifierRule(most=3))

    assert has_usual_identifier({"identifier": [ONE]}, declared)
    assert not has_usual_identifier({"identifier": [ONE, {"system": "x", "value": "1"}]}, declared)
