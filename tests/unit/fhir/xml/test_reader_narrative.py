"""Narratives of XML, and values that stand beside each other in lists."""

from __future__ import annotations

import pytest

from fhirpub.fhir.xml.reader import read_xml
from tests.unit.fhir.xml.reading import words, xml

XHTML = "http://www.w3.org/1999/xhtml"


def div_of(narrative: str, more: str = "") -> str:
    raw = xml(f'<text><status value="generated"/>{narrative}</text>', more=more)
    div: str = read_xml(raw)["text"]["div"]
    return div


@pytest.mark.parametrize(
    ("narrative", "more"),
    [
        (f'<div xmlns="{XHTML}">a<b title="c">b</b> d</div>', ""),
        (f'<h:div xmlns:h="{XHTML}">a<h:b title="c">b</h:b> d</h:div>', ""),
        ('<h:div>a<h:b title="c">b</h:b> d</h:div>', f' xmlns:h="{XHTML}"'),
        (f'<h:div>a<b xmlns="{XHTML}" title="c">b</b> d</h:div>', f' xmlns:h="{XHTML}"'),
        (f'<div xmlns="{XHTML}" xmlns:x="urn:x">a<b title="c">b</b> d</div>', ' xmlns:y="urn:y"'),
    ],
)
def test_a_narrative_is_read_without_prefixes_and_what_is_declared_around_it(
    narrative: str, more: str
) -> None:
    assert div_of(narrative, more) == f'<div xmlns="{XHTML}">a<b title="c">b</b> d</div>'


def test_what_follows_a_narrative_is_no_part_of_it() -> None:
    assert div_of(f'<div xmlns="{XHTML}">a</div>\n  ') == f'<div xmlns="{XHTML}">a</div>'


@pytest.mark.parametrize(("levels", "fits"), [(255, True), (256, False)])
def test_a_narrative_is_nested_at_most_256_levels_deep(levels: int, *, fits: bool) -> None:
    div = f'<div xmlns="{XHTML}">{"<b>" * levels}a{"</b>" * levels}</div>'

    if fits:
        assert div_of(div).count("<b>") == levels
    else:
        assert words(xml(f'<text><status value="generated"/>{div}</text>')) == [
            ("Patient.text.div", "must not be nested deeper than 256 levels")
        ]


def test_a_narrative_may_have_more_elements_than_levels() -> None:
    div = f'<div xmlns="{XHTML}">{"<b>a</b>" * 300}</div>'

    assert div_of(div).count("<b>") == 300


def test_values_and_what_stands_beside_them_keep_their_positions() -> None:
    beside = '<extension url="u:a"/>'
    raw = xml(f'<name><given value="A"/><given>{beside}</given><given id="c" value="C"/></name>')

    assert read_xml(raw)["name"] == [
        {
            "given": ["A", None, "C"],
            "_given": [None, {"extension": [{"url": "u:a"}]}, {"id": "c"}],
        }
    ]


def test_what_may_repeat_is_a_list_also_of_one() -> None:
    raw = xml('<name><given value="A"/></name><maritalStatus><text value="b"/></maritalStatus>')

    assert read_xml(raw) == {
        "resourceType": "Patient",
        "name": [{"given": ["A"]}],
        "maritalStatus": {"text": "b"},
    }
