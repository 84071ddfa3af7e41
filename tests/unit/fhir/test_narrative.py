"""What a narrative may hold, but should not, such as images from elsewhere, and its entities."""

from __future__ import annotations

import time

import pytest

from fhirpub.fhir.narrative import (
    canonical_narrative,
    in_characters,
    narrative_problem,
    narrative_warnings,
)

COVERS = "has a style with position fixed, sticky or absolute, which can cover other content"
LOADS = "loads an image from another server, which learns who reads the resource and when"


def div(content: str) -> str:
    return f'<div xmlns="http://www.w3.org/1999/xhtml">{content}</div>'


@pytest.mark.parametrize(
    "style",
    [
        "position:fixed",
        "POSITION : Fixed",
        "color:red; position: sticky; top:0",
        "position:absolute!important",
        "position:\n\tabsolute",
        "position:-webkit-sticky",
        "position/**/:/* a */fixed",
        "--p:fixed;position:var(--p)",
        "p&#111;sition:fixed",
        "position&colon;fixed",
        "/* ; */position:fixed/*",
    ],
)
def test_a_style_that_can_cover_other_content_is_a_warning(style: str) -> None:
    narrative = div(f'<p style="{style}">a</p>')

    assert narrative_problem(narrative) == ""
    assert list(narrative_warnings(narrative)) == [COVERS]


def test_the_style_of_the_div_itself_counts() -> None:
    narrative = div("a").replace("<div ", '<div style="position:fixed" ')

    assert list(narrative_warnings(narrative)) == [COVERS]


@pytest.mark.parametrize(
    "style",
    [
        "position:static",
        "position:relative",
        "position:inherit",
        "background-position:fixed",
        "position-anchor:absolute",
        "position:fixedly",
        "color:red/* position:fixed */",
        "position:fix/**/ed",
        "posi/**/tion:fixed",
    ],
)
def test_a_style_that_covers_nothing_is_no_warning(style: str) -> None:
    assert list(narrative_warnings(div(f'<p style="{style}">a</p>'))) == []


@pytest.mark.parametrize(
    "address",
    [
        "http://x.example/a.png",
        "https://x.example/a.png",
        "HTTPS://x.example/a.png",
        "//x.example/a.png",
        " //x.example/a.png",
        "/&#9;/x.example/a.png",
        r"\\x.example/a.png",
        r"/\x.example/a.png",
        "ht&#10;tps://x.example/a.png",
        "&#104;ttps://x.example/a.png",
    ],
)
def test_an_image_from_another_server_is_a_warning(address: str) -> None:
    narrative = div(f'<p>a <img src="{address}" alt="x"/></p>')

    assert narrative_problem(narrative) == ""
    assert list(narrative_warnings(narrative)) == [LOADS]


@pytest.mark.parametrize(
    "content",
    [
        '<img src="data:image/png;base64,iVBORw0KGgo=" alt="x"/>',
        '<img src="#image" alt="x"/>',
        '<img src="Binary/1" alt="x"/>',
        '<img src="/Binary/1" alt="x"/>',
        '<a href="https://x.example/">a</a>',
        "src https://x.example/ position:fixed",
        "<!-- <img src='https://x.example/'/> -->a",
    ],
)
def test_what_loads_nothing_from_elsewhere_is_no_warning(content: str) -> None:
    assert list(narrative_warnings(div(content))) == []


def test_each_warning_is_given_once() -> None:
    both = '<img src="//x.example/a" style="position:fixed" alt="x"/>'

    assert list(narrative_warnings(div(both * 3))) == [COVERS, LOADS]


def test_what_is_not_well_formed_is_left_to_the_refusal() -> None:
    assert list(narrative_warnings(div("<p style='position:fixed'>"))) == []


def test_a_style_of_a_megabyte_is_read_quickly() -> None:
    started = time.process_time()

    for unit in ("position", "position:", "position :\t", "/*", "position:a-", "-"):
        style = unit * (1_000_000 // len(unit))
        list(narrative_warnings(div(f"<p style='{style}'>a</p>")))

    assert time.process_time() - started < 2


def test_a_narrative_with_a_relative_namespace_is_its_own_canonical_form() -> None:
    narrative = div("a").replace("<div ", '<div xmlns:a="b" ')

    assert canonical_narrative(narrative) == narrative


def test_a_namespace_without_use_does_not_count() -> None:
    narrative = div("a").replace("<div ", '<div xmlns:a="urn:b" ')

    assert canonical_narrative(narrative) == canonical_narrative(div("a"))


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        ("&LT;b&GT;", "&lt;b&gt;"),
        ("&AMP;lt;", "&amp;lt;"),
        ('<p title="&QUOT; class=&QUOT;">', '<p title="&quot; class=&quot;">'),
        ("&micro;&nosuch;", "\u00b5&nosuch;"),
    ],
)
def test_no_entity_becomes_markup(sent: str, written: str) -> None:
    assert in_characters(sent) == written
