"""What is wrong with identifiers, in words, and at the limits of their length and number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import Issue
from fhirpub.fhir.schema import Schemas, own_schemas
from fhirpub.interactions.identity.problems import (
    has_usual_identifier,
    identifier_problems,
    refuse_other_key,
)
from fhirpub.plugin_api import IdentifierRule, ResourceType, ValueForm
from fhirpub.problems import ContentProblem, OperationProblem

REPORT = ResourceType(
    name="DiagnosticReport",
    parts=(),
    create_statuses=frozenset({"final"}),
    update_statuses=frozenset({"amended"}),
)
ONE = {"system": "urn:s:1", "value": "1"}
PLAIN = IdentifierRule()
SEVERAL = IdentifierRule(most=3)
DIGITS = ValueForm(system="urn:s:1", remove="-", pattern="[0-9]+", words="must be digits")
BLANK = "is required and must not be blank"
NO_TEXT = "must be a string, in quotation marks"
TOO_LONG = "system and value must not have more than 2048 characters"
NOT_ABSOLUTE = "must be an absolute URI, such as https://lab.example/reports"
NO_KEY = "has no proper key: its system must be an absolute URI, its value a text"


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return own_schemas()


def issues(schemas: Schemas, rule: IdentifierRule, *sent: Any) -> list[Issue]:
    declared, resource = replace(REPORT, identifier=rule), {"identifier": [*sent]}
    found = identifier_problems(resource, declared, schemas)
    assert has_usual_identifier(resource, declared) is not bool(found)
    return found


def problems(schemas: Schemas, rule: IdentifierRule, *sent: Any) -> list[tuple[str, str]]:
    return [(one.expression, one.diagnostics) for one in issues(schemas, rule, *sent)]


def coded(number: int) -> dict[str, Any]:
    return {**ONE, "type": {"coding": [{"code": str(one)} for one in range(number)]}}


def sized(length: int) -> dict[str, str]:
    return {"system": "urn:s:1", "value": "1" * (length - len("urn:s:1"))}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([], "must be a list of exactly one identifier, with system and value"),
        (
            [ONE, ONE],
            "must be a list of exactly one identifier, with system and value; there are 2",
        ),
    ],
)
def test_how_many_there_are_is_said(schemas: Schemas, sent: list[Any], said: str) -> None:
    assert problems(schemas, PLAIN, *sent) == [("identifier", said)]


@pytest.mark.parametrize(
    ("changes", "place", "said"),
    [
        ({"system": ""}, "system", BLANK),
        ({"value": " \t"}, "value", BLANK),
        ({"system": "relative"}, "system", NOT_ABSOLUTE),
    ],
)
def test_a_member_that_is_wrong_is_named(
    schemas: Schemas, changes: dict[str, Any], place: str, said: str
) -> None:
    found = problems(schemas, PLAIN, {**ONE, **changes})

    assert found == [(f"identifier[0].{place}", said)]


@pytest.mark.parametrize(("name", "value"), [("value", 7), ("system", ["urn:s"])])
def test_a_member_of_another_type_is_named(schemas: Schemas, name: str, value: Any) -> None:
    resource = {"identifier": [{**ONE, name: value}]}

    (found,) = identifier_problems(resource, REPORT, schemas)

    assert (found.expression, found.diagnostics) == (f"identifier[0].{name}", NO_TEXT)


def test_all_members_that_are_missing_are_named(schemas: Schemas) -> None:
    assert problems(schemas, PLAIN, {}) == [
        ("identifier[0].system", BLANK),
        ("identifier[0].value", BLANK),
    ]


def test_what_is_no_object_lacks_all_members(schemas: Schemas) -> None:
    declared = replace(REPORT, identifier=PLAIN)

    found = identifier_problems({"identifier": ["x"]}, declared, schemas)

    assert [one.expression for one in found] == ["identifier[0].system", "identifier[0].value"]


def test_each_problem_is_one_of_identifiers(schemas: Schemas) -> None:
    (found,) = issues(schemas, PLAIN)

    assert (found.severity, found.details) == ("error", ContentProblem.IDENTIFIER_INVALID)


@pytest.mark.parametrize("rule", [PLAIN, SEVERAL])
def test_system_and_value_have_2048_characters_together(
    schemas: Schemas, rule: IdentifierRule
) -> None:
    assert problems(schemas, rule, sized(2_048)) == []
    assert problems(schemas, SEVERAL, sized(2_049)) == [("identifier[0]", TOO_LONG)]


def test_the_only_identifier_that_is_too_long_is_refused(schemas: Schemas) -> None:
    declared = replace(REPORT, identifier=PLAIN)

    (found,) = identifier_problems({"identifier": [sized(2_049)]}, declared, schemas)

    assert (found.expression, found.diagnostics) == ("identifier[0]", TOO_LONG)
    assert not has_usual_identifier({"identifier": [sized(2_049)]}, declared)


@pytest.mark.parametrize("rule", [PLAIN, SEVERAL])
def test_a_type_has_twenty_codings_at_most(schemas: Schemas, rule: IdentifierRule) -> None:
    assert issues(schemas, rule, coded(20)) == []
    (found,) = issues(schemas, rule, coded(21))
    assert (found.code, found.expression) == ("too-costly", "identifier[0].type")
    assert found.diagnostics == "must not have more than 20 codings"
    assert found.details is ContentProblem.IDENTIFIER_INVALID


def test_as_many_as_there_may_be_are_right(schemas: Schemas) -> None:
    others = [{**ONE, "value": str(number), "use": "old"} for number in range(3)]
    rule = IdentifierRule(most=3, uses=("", "old"))

    assert problems(schemas, rule, ONE, *others[:2]) == []
    assert problems(schemas, rule, ONE, *others) == [
        ("identifier", "must not have more than 3 identifiers in identifier")
    ]


def test_a_system_that_must_not_stand_here_is_refused(schemas: Schemas) -> None:
    rule = IdentifierRule(most=3, refused_systems=frozenset({"urn:person"}))

    found = problems(schemas, rule, ONE, {"system": "urn:person", "value": "7"})

    said = "is a system whose identifiers must not stand here"
    assert found == [("identifier[1].system", said)]


def test_a_blank_value_of_several_is_refused(schemas: Schemas) -> None:
    found = problems(schemas, SEVERAL, ONE, {"system": "urn:s:2", "value": " "})

    assert found == [("identifier[1].value", "must not be blank")]


def test_all_that_is_wrong_with_an_identifier_of_several_is_named(schemas: Schemas) -> None:
    refused = IdentifierRule(most=3, refused_systems=frozenset({"persons"}))
    wrong = {**coded(21), "system": "persons", "value": " "}

    assert problems(schemas, refused, wrong) == [
        ("identifier[0].value", "must not be blank"),
        ("identifier[0].type", "must not have more than 20 codings"),
        ("identifier[0].system", NOT_ABSOLUTE),
        ("identifier[0].system", "is a system whose identifiers must not stand here"),
    ]


def test_a_further_identifier_may_lack_system_or_value(schemas: Schemas) -> None:
    assert problems(schemas, SEVERAL, ONE, {"value": "x"}, {"system": "urn:s:1"}) == []


def test_a_value_of_another_form_is_refused_in_the_words_of_the_plugin(schemas: Schemas) -> None:
    rule = IdentifierRule(most=3, forms=(DIGITS,))

    assert problems(schemas, rule, {**ONE, "value": "1-2"}) == []
    assert problems(schemas, rule, {**ONE, "value": "1-x"}) == [
        ("identifier[0].value", "must be digits")
    ]


def test_a_form_is_that_of_its_system_only(schemas: Schemas) -> None:
    rule = IdentifierRule(most=3, forms=(DIGITS,))

    assert problems(schemas, rule, {"system": "urn:s:2", "value": "x"}) == []


def test_a_value_too_long_is_not_compared_with_its_form(schemas: Schemas) -> None:
    rule = IdentifierRule(most=3, forms=(DIGITS,))

    assert problems(schemas, rule, {**ONE, "value": "x" * 2_049}) == [("identifier[0]", TOO_LONG)]


def test_the_form_of_the_only_identifier_counts_too(schemas: Schemas) -> None:
    rule = IdentifierRule(forms=(DIGITS,))

    assert problems(schemas, rule, {**ONE, "value": "7"}) == []
    assert problems(schemas, rule, {**ONE, "value": "x"})[0] == (
        "identifier[0].value",
        "must be digits",
    )


def test_the_only_identifier_needs_what_the_rule_demands_of_it(schemas: Schemas) -> None:
    rule = IdentifierRule(systems=("urn:x",))

    assert problems(schemas, rule, ONE) == [
        ("identifier[0]", "needs an identifier with system and value, the system urn:x")
    ]


def test_two_that_could_be_the_key_are_named(schemas: Schemas) -> None:
    others = [{**ONE, "value": str(number)} for number in (1, 2, 3)]

    assert problems(schemas, SEVERAL, *others) == [
        (
            "identifier[0]",
            (
                "could be the key of the resource, and so could identifier[1] and identifier[2]: "
                "send one of them, or tell them apart by use, type or system"
            ),
        )
    ]


def test_no_more_than_three_that_could_be_the_key_are_named(schemas: Schemas) -> None:
    others = [{**ONE, "value": str(number)} for number in range(4)]

    ((_place, said),) = problems(schemas, IdentifierRule(most=4), *others)

    assert "identifier[2]" in said
    assert "identifier[3]" not in said


def made(key: Any) -> IdentifierRule:
    return IdentifierRule(elements=(), key=lambda _resource: key)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (None, "has nothing from which its key could follow"),
        (("relative", "1"), NO_KEY),
        (("", "1"), NO_KEY),
        (("urn:s", ""), NO_KEY),
        (("urn:s", "x" * 2_044), f"has a key that is too long: {TOO_LONG}"),
    ],
)
def test_a_key_that_a_function_must_not_make_is_refused(
    schemas: Schemas, key: Any, said: str
) -> None:
    assert problems(schemas, made(key), ONE) == [("", said)]


def test_a_key_that_a_function_makes_has_2048_characters_at_most(schemas: Schemas) -> None:
    assert problems(schemas, made(("urn:s", "x" * 2_043))) == []


def test_a_key_that_is_another_one_is_refused_in_words() -> None:
    rule = IdentifierRule(elements=(), key=lambda resource: ("urn:s", resource["url"]))

    (found,) = refuse_other_key({"url": "a"}, {"url": "b"}, replace(REPORT, identifier=rule))

    assert found.details is OperationProblem.ELEMENT_NOT_UPDATABLE
    assert found.diagnostics == (
        "the key of the resource follows from what is updated, and must stay as it is"
    )


@pytest.mark.parametrize(
    ("sent", "is_usual"),
    [
        ([ONE], True),
        (ONE, True),
        ([{**ONE, "use": "official"}], True),
        ([], False),
        (None, False),
        ([ONE, ONE], False),
        ([{"system": "urn:s:1"}], False),
        ([{"value": "1"}], False),
        ([{**ONE, "system": "relative"}], False),
        ([{**ONE, "value": " "}], False),
    ],
)
def test_what_is_usual_is_known_at_a_look(sent: Any, *, is_usual: bool) -> None:
    assert has_usual_identifier({"identifier": sent}, REPORT) is is_usual


def test_what_is_missing_is_reported_before_what_the_rule_demands(schemas: Schemas) -> None:
    rule = IdentifierRule(systems=("urn:x",))

    assert problems(schemas, rule, {"system": "urn:s:1"}) == [("identifier[0].value", BLANK)]


def test_what_is_no_object_among_several_can_be_no_key(schemas: Schemas) -> None:
    declared = replace(REPORT, identifier=SEVERAL)

    (found,) = identifier_problems({"identifier": ["x"]}, declared, schemas)

    assert (found.expression, found.diagnostics) == (
        "identifier",
        "needs an identifier with system and value",
    )


def test_a_function_makes_the_key_of_the_resource_itself(schemas: Schemas) -> None:
    rule = IdentifierRule(elements=(), key=lambda resource: ("urn:s", resource["url"]))
    declared = replace(REPORT, identifier=rule)

    assert identifier_problems({"url": "1"}, declared, schemas) == []
