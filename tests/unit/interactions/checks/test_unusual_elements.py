"""Elements that can change or cover what the others mean."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.interactions.checks.unusual_elements import (
    about_unusual_elements,
    refuse_modifiers,
    warn_of_narratives,
)
from fhirpub.plugin_api import Entry
from tests.unit.interactions.checks.submitted import places

RULE = "is not supported, because it changes meanings: leave it out"
XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'


def entry(**elements: Any) -> Entry:
    return Entry({"resourceType": "Patient", **elements}, "at")


@pytest.mark.parametrize(
    ("elements", "place"),
    [
        ({"modifierExtension": [{"url": "urn:x"}]}, "at.modifierExtension"),
        ({"implicitRules": "urn:x"}, "at.implicitRules"),
        ({"_implicitRules": {"id": "x"}}, "at.implicitRules"),
        (
            {"contact": [{}, {"modifierExtension": [{"url": "urn:x"}]}]},
            "at.contact[1].modifierExtension",
        ),
    ],
)
def test_what_must_be_understood_is_refused(elements: dict[str, Any], place: str) -> None:
    (issue,) = refuse_modifiers(entry(**elements))

    assert (issue.severity, issue.expression, issue.diagnostics) == ("error", place, RULE)
    assert issue.details == "modifier-unsupported"


def test_what_must_be_understood_of_one_element_is_named_in_order() -> None:
    issues = refuse_modifiers(
        entry(modifierExtension=[{}], implicitRules="urn:x", _implicitRules={"id": "x"})
    )

    assert [place for place, _rule in places(issues)] == [
        "at.implicitRules",
        "at.implicitRules",
        "at.modifierExtension",
    ]


def test_all_that_must_be_understood_is_named() -> None:
    issues = refuse_modifiers(entry(modifierExtension=[{}], contact=[{"modifierExtension": []}]))

    assert {place for place, _rule in places(issues)} == {
        "at.modifierExtension",
        "at.contact[0].modifierExtension",
    }


def test_an_ordinary_extension_is_accepted() -> None:
    assert places(refuse_modifiers(entry(extension=[{"url": "urn:x"}]))) == []


def test_a_narrative_that_loads_images_is_a_warning() -> None:
    div = f'<div {XHTML}><img src="https://other.example/a.png"/></div>'

    issues = [*warn_of_narratives(entry(text={"status": "generated", "div": div}))]

    assert issues
    assert {(one.severity, one.expression) for one in issues} == {("warning", "at.text.div")}
    assert {one.details for one in issues} == {"narrative-questionable"}


def test_a_plain_narrative_is_none() -> None:
    div = f"<div {XHTML}>Ana</div>"

    assert places(warn_of_narratives(entry(text={"status": "generated", "div": div}))) == []


def test_modifiers_are_named_before_narratives() -> None:
    div = f'<div {XHTML}><img src="https://other.example/a.png"/></div>'
    unusual = entry(text={"status": "generated", "div": div}, implicitRules="urn:x")

    modifiers, narratives = about_unusual_elements(unusual)

    assert [place for place, _rule in places(modifiers)] == ["at.implicitRules"]
    assert {place for place, _rule in places(narratives)} == {"at.text.div"}
