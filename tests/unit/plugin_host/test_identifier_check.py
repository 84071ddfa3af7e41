"""Rules for identifiers that are wrong are refused at the start, with every problem at once."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.plugin_api import IdentifierRule, ValueForm
from fhirpub.plugin_host.identifier_check import identifier_problems_of

FORM = "form of other systems: "
PREFIX = f"{FORM}prefix is changed by case or remove, so that no value begins with it"


def test_the_rules_that_need_no_word_are_accepted() -> None:
    check = ValueForm(system="urn:s", pattern="[0-9]+", check=str.isdigit)

    assert identifier_problems_of(IdentifierRule()) == []
    assert identifier_problems_of(IdentifierRule(forms=(check,), most=100)) == []
    assert identifier_problems_of(IdentifierRule(elements=(), key=lambda _resource: None)) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"elements": "identifier"}, "elements must be a tuple of strings"),
        ({"elements": ("identifier", "identifier")}, "elements names something twice"),
        (
            {"elements": ()},
            "elements is empty: name the elements of identifiers, or a function as key",
        ),
        ({"elements": ("a..b",)}, "elements holds 'a..b', which cannot be the path of an element"),
        ({"most": 0}, "most must be a number from 1 to 100"),
        ({"most": True}, "most must be a number from 1 to 100"),
        ({"uses": ("offical",)}, "uses: there is no use offical"),
        ({"systems": ("lab",)}, "systems holds 'lab', which is no absolute URI"),
        ({"refused_systems": ("urn:a",)}, "refused_systems must be a frozenset of strings"),
        (
            {"systems": ("urn:a",), "refused_systems": frozenset({"urn:a"})},
            "urn:a is refused, and it is a system of keys",
        ),
        ({"forms": (ValueForm(),)}, "forms: the form of other systems says nothing"),
        (
            {"forms": (ValueForm(case="upper"), ValueForm(case="lower"))},
            "forms: there are several of other systems",
        ),
        ({"forms": (ValueForm(case="title"),)}, f"{FORM}case must be one of keep, upper, lower"),  # type: ignore[arg-type]
        ({"forms": (ValueForm(check=lambda: True),)}, f"{FORM}check must be a function of value"),  # type: ignore[misc, arg-type]
        ({"forms": (ValueForm(prefix="-x", remove="-"),)}, PREFIX),
        ({"forms": (ValueForm(prefix="urn:", case="upper"),)}, PREFIX),
        (
            {"forms": (ValueForm(case="upper", words=" "),)},
            f"{FORM}words must say what a value must be",
        ),
        ({"key": "url", "elements": ()}, "key must be a function"),
        ({"key": lambda: None, "elements": ()}, "key must be a function of resource"),
        (
            {"key": lambda _resource: None},
            "elements must be empty beside a function key: elements=()",
        ),
        (
            {"key": lambda _resource: None, "elements": (), "most": 2},
            "most has no meaning beside a function key",
        ),
        ({"key_version": 2}, "key_version is set, but there is no function key"),
    ],
)
def test_a_wrong_rule_is_refused_in_a_sentence(fields: dict[str, Any], words: str) -> None:
    assert identifier_problems_of(IdentifierRule(**fields)) == [f"identifier: {words}"]


def test_what_is_no_rule_is_refused() -> None:
    assert identifier_problems_of({"most": 1}) == [
        "identifier must be an IdentifierRule, not dict"
    ]


def test_every_problem_is_reported_at_once() -> None:
    uses: Any = ["x"]
    rule = IdentifierRule(most=0, uses=uses, forms=(ValueForm(pattern="("),))

    assert len(identifier_problems_of(rule)) == 3
