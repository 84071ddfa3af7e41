"""Forms of values that contradict the rule they are in, or themselves."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.plugin_api import IdentifierRule, ValueForm
from fhirpub.plugin_host.identifier_check import identifier_problems_of


def problems(*forms: ValueForm, **fields: Any) -> list[str]:
    return identifier_problems_of(IdentifierRule(forms=forms, **fields))


def test_a_form_of_a_system_that_is_refused_is_useless() -> None:
    form = ValueForm(system="urn:a", case="upper")

    (said,) = problems(form, refused_systems=frozenset({"urn:a"}))

    assert said.endswith("forms: urn:a is refused, so it needs no form")
    assert problems(form, refused_systems=frozenset({"urn:b"})) == []


def test_a_form_of_no_uri_is_refused() -> None:
    (said,) = problems(ValueForm(system="lab", case="upper"))

    assert said.endswith("forms: 'lab' is no absolute URI")
    assert problems(ValueForm(case="upper")) == []


def test_a_system_with_two_forms_is_named() -> None:
    forms = [ValueForm(system="urn:a", case=case) for case in ("upper", "lower")]

    (said,) = problems(*forms)

    assert said.endswith("forms: there are several of urn:a")


def test_a_form_that_changes_nothing_is_named() -> None:
    (said,) = problems(ValueForm(system="urn:a"))

    assert said.endswith("forms: the form of urn:a says nothing")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"prefix": "ab", "case": "upper"}, "prefix is changed by case or remove"),
        ({"prefix": "AB", "case": "lower"}, "prefix is changed by case or remove"),
        ({"prefix": "A-", "remove": "-"}, "prefix is changed by case or remove"),
        ({"prefix": " AB", "blanks": "trim"}, "prefix has white space at an end"),
        ({"prefix": "AB ", "blanks": "trim"}, "prefix has white space at an end"),
        ({"prefix": " AB", "blanks": "remove"}, "prefix has white space at an end"),
        ({"prefix": "AB ", "blanks": "remove"}, "prefix has white space at an end"),
        ({"prefix": "AB ", "blanks": "keep"}, ""),
        ({"prefix": "AB", "blanks": "trim"}, ""),
        ({"prefix": "AB", "case": "upper"}, ""),
        ({"prefix": "ab", "case": "lower"}, ""),
        ({"prefix": "aB", "case": "keep"}, ""),
        ({"prefix": "A", "remove": "-"}, ""),
    ],
)
def test_a_value_can_begin_with_the_prefix_of_its_form(fields: dict[str, Any], said: str) -> None:
    found = problems(ValueForm(system="urn:a", **fields))

    assert len(found) == bool(said)
    assert all(said in one for one in found)


def test_words_of_a_form_are_not_blank() -> None:
    (said,) = problems(ValueForm(system="urn:a", pattern="[0-9]", words=" "))

    assert "words must say what a value must be" in said


@pytest.mark.parametrize("field", ["system", "prefix", "remove", "pattern", "words"])
def test_a_text_of_a_form_is_a_string(field: str) -> None:
    wrong: Any = {field: 7}

    found = problems(ValueForm(**wrong))

    assert any(f"{field} must be a string" in one for one in found)


def test_forms_are_a_tuple_of_forms() -> None:
    for wrong in ([ValueForm(case="upper")], ("urn:a",), None):
        rule: Any = {"forms": wrong}
        (said,) = identifier_problems_of(IdentifierRule(**rule))
        assert "forms must be a tuple of ValueForm" in said


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.0])
def test_the_version_of_a_key_is_a_number_from_1(version: Any) -> None:
    found = identifier_problems_of(
        IdentifierRule(elements=(), key=lambda _resource: None, key_version=version)
    )

    assert len(found) == 1
    assert "key_version must be a number from 1" in found[0]


@pytest.mark.parametrize(("system", "name"), [("urn:a", "urn:a"), ("", "other systems")])
def test_a_problem_of_a_form_names_its_system(system: str, name: str) -> None:
    (said,) = problems(ValueForm(system=system, pattern="("))

    assert said.startswith(f"identifier: form of {name}: pattern is no regular expression")


FUNCTION: dict[str, Any] = {"elements": (), "key": lambda _resource: None}


@pytest.mark.parametrize(
    "fields",
    [
        {"uses": ("official",)},
        {"types": ("MR",)},
        {"systems": ("urn:a",)},
        {"refused_systems": frozenset({"urn:a"})},
        {"forms": (ValueForm(case="upper"),)},
        {"most": 2},
    ],
)
def test_beside_a_function_a_rule_says_nothing_else(fields: dict[str, Any]) -> None:
    rule = IdentifierRule(**FUNCTION, **fields)

    assert identifier_problems_of(rule) == [
        f"identifier: {field} has no meaning beside a function key" for field in fields
    ]
    assert identifier_problems_of(IdentifierRule(**FUNCTION, key_version=2)) == []


def test_every_use_of_an_identifier_may_be_named() -> None:
    uses = ("", "usual", "official", "temp", "secondary", "old")

    assert problems(uses=uses) == []
    assert problems(uses=(*uses, "Old", "nickname")) == [
        "identifier: uses: there is no use Old",
        "identifier: uses: there is no use nickname",
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"systems": ["urn:a"]}, "systems must be a tuple of strings"),
        ({"systems": ("urn:a", 7)}, "systems must be a tuple of strings"),
        ({"systems": ("urn:a", "urn:b", "urn:a")}, "systems names something twice"),
        ({"uses": {"old"}}, "uses must be a tuple of strings"),
        ({"types": ("MR", "SS", "MR")}, "types names something twice"),
        ({"refused_systems": ("urn:a",)}, "refused_systems must be a frozenset of strings"),
        ({"most": 101}, "most must be a number from 1 to 100"),
        ({"most": 1.0}, "most must be a number from 1 to 100"),
    ],
)
def test_each_field_of_a_rule_has_its_kind(fields: dict[str, Any], said: str) -> None:
    assert identifier_problems_of(IdentifierRule(**fields)) == [f"identifier: {said}"]


def test_each_system_that_is_no_uri_is_named() -> None:
    found = problems(systems=("urn:a", "b", "c"), refused_systems=frozenset({"d"}))

    assert found == [
        "identifier: systems holds 'b', which is no absolute URI",
        "identifier: systems holds 'c', which is no absolute URI",
        "identifier: refused_systems holds 'd', which is no absolute URI",
    ]


def test_each_system_that_is_refused_and_used_is_named() -> None:
    systems = ("urn:c", "urn:a", "urn:b")

    assert problems(systems=systems, refused_systems=frozenset({"urn:c", "urn:a"})) == [
        f"identifier: {one} is refused, and it is a system of keys" for one in ("urn:a", "urn:c")
    ]


def test_the_second_form_is_checked_as_well() -> None:
    good = ValueForm(system="urn:a", case="upper")

    (bad,) = problems(good, ValueForm(system="urn:b", pattern="("))
    (idle,) = problems(good, ValueForm(system="urn:b"))

    assert bad.startswith("identifier: form of urn:b: pattern is no regular expression")
    assert idle == "identifier: forms: the form of urn:b says nothing"
