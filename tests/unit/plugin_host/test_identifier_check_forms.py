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
