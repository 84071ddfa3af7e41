"""Rules for identifiers that are wrong are refused at the start, with every problem at once."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.plugin_api import IdentifierRule, ValueForm
from fhirpub.plugin_host.identifier_check import identifier_problems_of


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
        ({"elements": ()}, "elements is empty"),
        ({"elements": ("a..b",)}, "elements holds 'a..b'"),
        ({"most": 0}, "most must be a number from 1 to 100"),
        ({"most": True}, "most must be a number from 1 to 100"),
        ({"uses": ("offical",)}, "uses: there is no use offical"),
        ({"systems": ("lab",)}, "systems holds 'lab', which is no absolute URI"),
        ({"refused_systems": ("urn:a",)}, "refused_systems must be a frozenset of strings"),
        (
            {"systems": ("urn:a",), "refused_systems": frozenset({"urn:a"})},
            "urn:a is refused, and it is a system of keys",
        ),
        ({"forms": (ValueForm(),)}, "the form of other systems says nothing"),
        (
            {"forms": (ValueForm(case="upper"), ValueForm(case="lower"))},
            "there are several of other systems",
        ),
        ({"forms": (ValueForm(pattern="("),)}, "pattern is no regular expression"),
        ({"forms": (ValueForm(case="title"),)}, "case must be one of keep, upper, lower"),  # type: ignore[arg-type]
        ({"forms": (ValueForm(check=lambda: True),)}, "check must be a function of value"),  # type: ignore[misc, arg-type]
        ({"forms": (ValueForm(prefix="-x", remove="-"),)}, "prefix is changed by case or remove"),
        ({"forms": (ValueForm(prefix="urn:", case="upper"),)}, "prefix is changed by case"),
        ({"forms": (ValueForm(case="upper", words=" "),)}, "words must say"),
        ({"key": "url", "elements": ()}, "key must be a function"),
        ({"key": lambda: None, "elements": ()}, "key must be a function of resource"),
        ({"key": lambda _resource: None}, "elements must be empty beside a function key"),
        ({"key": lambda _resource: None, "elements": (), "most": 2}, "most has no meaning"),
        ({"key_version": 2}, "key_version is set, but there is no function key"),
    ],
)
def test_a_wrong_rule_is_refused_in_a_sentence(fields: dict[str, Any], words: str) -> None:
    found = identifier_problems_of(IdentifierRule(**fields))

    assert any(words in one for one in found), found
    assert all(one.startswith("identifier: ") for one in found)


def test_what_is_no_rule_is_refused() -> None:
    assert identifier_problems_of({"most": 1}) == [
        "identifier must be an IdentifierRule, not dict"
    ]


def test_every_problem_is_reported_at_once() -> None:
    uses: Any = ["x"]
    rule = IdentifierRule(most=0, uses=uses, forms=(ValueForm(pattern="("),))

    assert len(identifier_problems_of(rule)) == 3
