"""What a narrative may hold, and the words with which all else is refused."""

from __future__ import annotations

import pytest

from fhirpub.fhir.narrative import in_characters, narrative_problem, parse

ELEMENT = "holds an element other than basic formatting, tables, lists, links and images"
ATTRIBUTE = "holds an attribute that a narrative may not have"
LINK = "holds a link that is neither http, https, mailto, tel, urn nor local"
STYLE = "holds a style that loads or runs something"
DECLARED = "must not hold a document type, a CDATA section or a processing instruction"
MALFORMED = "must be well-formed XHTML, with <br/> instead of <br>"


def div(content: str) -> str:
    return f'<div xmlns="http://www.w3.org/1999/xhtml">{content}</div>'


@pytest.mark.parametrize(
    "content",
    [
        "a<br/>",
        '<table summary="a"><tr><td colspan="2" style="color:red">a</td></tr></table>',
        '<img src="#a" alt="b"/>',
        '<a href="https://x.example/" title="a">a</a>',
        '<a href="mailto:a@x.example">a</a>',
        '<a href="tel:+1">a</a>',
        '<a href="urn:oid:1.2">a</a>',
        '<a href="Patient/1">a</a>',
        '<img src="DATA:image/png;base64,AA==" alt="a"/>',
        '<p xml:lang="es" lang="es">a</p>',
        "<!-- b -->a",
        "a &lt;script&gt; b",
    ],
)
def test_basic_formatting_is_allowed(content: str) -> None:
    assert narrative_problem(div(content)) == ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<script>a</script>", ELEMENT),
        ("<iframe/>", ELEMENT),
        ('<b xmlns="">a</b>', ELEMENT),
        ("<p><form>a</form></p>", ELEMENT),
        ('<p onclick="a">a</p>', ATTRIBUTE),
        ('<a target="_blank">a</a>', ATTRIBUTE),
        ('<a href="javascript:a()">a</a>', LINK),
        ('<a href=" java&#10;script:a()">a</a>', LINK),
        ('<img src="data:text/html;base64,AA==" alt="a"/>', LINK),
        ('<img src="data:image/svg+xml;base64,AA==" alt="a"/>', LINK),
        ('<q cite="ftp://x.example/">a</q>', LINK),
        ('<img longdesc="file:///a" alt="a"/>', LINK),
        ('<p style="background:url(a)">a</p>', STYLE),
        ('<p style="width: EXPRESSION (a)">a</p>', STYLE),
        ('<p style="@import a">a</p>', STYLE),
        ('<p style="a:\\75rl(a)">a</p>', STYLE),
        ("<![CDATA[a]]>", DECLARED),
        ("<?a b?>", DECLARED),
        ("<p>a", MALFORMED),
        ("a &nosuch; b", MALFORMED),
        ("", "must not be blank"),
        (" &nbsp;\n<p><b/></p>", "must not be blank"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_reason(content: str, problem: str) -> None:
    assert narrative_problem(div(content)) == problem


@pytest.mark.parametrize(
    "whole",
    [
        "<div>a</div>",
        '<p xmlns="http://www.w3.org/1999/xhtml">a</p>',
        '<x:span xmlns:x="http://www.w3.org/1999/xhtml">a</x:span>',
    ],
)
def test_a_narrative_is_a_div_of_xhtml(whole: str) -> None:
    said = "must be a div in the namespace http://www.w3.org/1999/xhtml"

    assert narrative_problem(whole) == said


def test_an_image_alone_is_not_blank() -> None:
    assert narrative_problem(div('<p><img src="#a" alt=""/></p>')) == ""


def test_the_attributes_of_the_div_itself_are_checked() -> None:
    whole = '<div xmlns="http://www.w3.org/1999/xhtml" onload="a">a</div>'

    assert narrative_problem(whole) == ATTRIBUTE


@pytest.mark.parametrize(("many", "refused"), [(64, False), (65, True)])
def test_an_element_has_at_most_64_attributes(many: int, refused: bool) -> None:  # noqa: FBT001
    attributes = " ".join(f'a{number}="b"' for number in range(many))

    said = narrative_problem(div(f"<p {attributes}>a</p>"))

    assert (said == "holds an element with more than 64 attributes") is refused


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("&eacute;&ntilde;", "éñ"),
        ("&LT;script&GT;", "&lt;script&gt;"),
        ("&AMP;lt;", "&amp;lt;"),
        ("&QUOT;", "&quot;"),
        ("&amp;&lt;&gt;&quot;&apos;", "&amp;&lt;&gt;&quot;&apos;"),
        ("&amp;eacute;", "&amp;eacute;"),
        ("&nosuch; &eacute &#233;", "&nosuch; &eacute &#233;"),
    ],
)
def test_entities_become_characters_that_are_no_markup(text: str, expected: str) -> None:
    assert in_characters(text) == expected


def test_an_entity_cannot_open_an_element() -> None:
    root = parse(div("&LT;script&GT;a&LT;/script&GT;"))

    assert len(root) == 0
    assert root.text == "<script>a</script>"


@pytest.mark.parametrize(
    ("levels", "said"), [(250, ""), (300, "must be well-formed XHTML, with <br/> instead of <br>")]
)
def test_a_narrative_may_not_be_nested_as_deep_as_a_parser_bears(levels: int, said: str) -> None:
    assert narrative_problem(div("<b>" * levels + "a" + "</b>" * levels)) == said
