"""Whether a narrative is the harmless XHTML that FHIR allows (txt-1, txt-2; D-68)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.entities import html5

from lxml import etree

_XHTML = "{http://www.w3.org/1999/xhtml}"
_ELEMENTS = frozenset(
    "a abbr acronym b big blockquote br caption cite code col colgroup dd dfn div dl dt em h1 h2"
    " h3 h4 h5 h6 hr i img li ol p pre q samp small span strong sub sup table tbody td tfoot th"
    " thead tr tt ul var kbd address bdo".split()
)
_ATTRIBUTES = frozenset(
    "abbr accesskey align alt axis bgcolor border cellhalign cellpadding cellspacing cellvalign"
    " char charoff charset cite class colspan compact coords dir frame headers height href"
    " hreflang hspace id lang longdesc name nowrap rel rev rowspan rules scope shape span src"
    " start style summary tabindex title type valign value vspace width".split()
) | {"{http://www.w3.org/XML/1998/namespace}lang", "{http://www.w3.org/XML/1998/namespace}space"}
_LINKS = frozenset({"href", "src", "cite", "longdesc"})
_SAFE_LINK = re.compile(
    r"(?:https?://|mailto:|tel:|urn:|#|data:image/(?:png|jpeg|gif|bmp);|(?![a-zA-Z0-9+.-]*:))",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[\x00-\x20]+")
_UNSAFE_STYLE = re.compile(r"(?:url|expression)\s*\(|@import|javascript:|\\", re.IGNORECASE)
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_COVERING_STYLE = re.compile(
    r"(?<![\w-])position\s*:\s*(?:(?:fixed|absolute|(?:-webkit-)?sticky)(?![\w-])|[\w-]+\()",
    re.IGNORECASE,
)
"""Also a position that a function returns: ``var(--p)`` may be any of them."""
_REMOTE_IMAGE = re.compile(r"https?:|[/\\]{2}", re.IGNORECASE)  # browsers read \ as /
_NAMED_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z][A-Za-z0-9]{1,31};)")


# The parser compares every attribute of an element with every other.
_MANY_ATTRIBUTES = re.compile(r"""<[^\s<>/]+(?:\s+[^\s=<>"']+\s*=\s*(?:"[^"<]*"|'[^'<]*')){65}""")


def narrative_problem(div: str) -> str:
    """Return what is wrong with a narrative's ``div``, or nothing."""
    try:
        root = parse(div)
    except ValueError as malformed:
        return str(malformed)
    if root.tag != f"{_XHTML}div":
        return "must be a div in the namespace http://www.w3.org/1999/xhtml"
    for element in root.iter(etree.Element):
        problem = _element_problem(element)
        if problem:
            return problem
    blank = not "".join(map(str, root.itertext())).strip() and root.find(f".//{_XHTML}img") is None
    return "must not be blank" if blank else ""


def narrative_warnings(div: str) -> Iterator[str]:
    """Yield what a narrative may hold, but should not: each once (D-299)."""
    text = div.lower()
    if not any(word in text for word in ("position", "src", "&#")):
        return  # spares most narratives a second reading
    try:
        elements = list(parse(div).iter(etree.Element))
    except ValueError:  # it is refused, with the reason
        return
    if any(_covers(str(element.get("style", ""))) for element in elements):
        yield "has a style with position fixed, sticky or absolute, which can cover other content"
    if any(_is_remote(str(element.get("src", ""))) for element in elements):
        yield "loads an image from another server, which learns who reads the resource and when"


def in_characters(div: str) -> str:
    """Return a narrative's ``div`` without entities of HTML, which XML does not know."""
    return _NAMED_ENTITY.sub(_character, div)


def canonical_narrative(div: str) -> str:
    """Return a narrative's ``div`` in Exclusive Canonical XML, or as it is if it has none.

    The inclusive form takes a time that grows with the elements times the square of the
    namespaces: twelve seconds for 38 KB.
    """
    try:
        return etree.tostring(parse(div), method="c14n", exclusive=True).decode()
    except (ValueError, etree.C14NError):  # not well-formed, or a namespace is a relative URI
        return div


def parse(div: str) -> etree._Element:
    """Return a narrative's ``div`` as XML, entities of HTML replaced; raises ValueError."""
    if _MANY_ATTRIBUTES.search(div):
        raise ValueError("holds an element with more than 64 attributes")
    if "<!" in div.replace("<!--", "") or "<?" in div:
        raise ValueError(
            "must not hold a document type, a CDATA section or a processing instruction"
        )
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False
    )
    try:
        return etree.fromstring(in_characters(div), parser)
    except (etree.XMLSyntaxError, ValueError):
        raise ValueError("must be well-formed XHTML, with <br/> instead of <br>") from None


def _element_problem(element: etree._Element) -> str:
    tag = str(element.tag)
    if not tag.startswith(_XHTML) or tag.removeprefix(_XHTML) not in _ELEMENTS:
        return "holds an element other than basic formatting, tables, lists, links and images"
    for name, value in element.attrib.items():
        if name not in _ATTRIBUTES:
            return "holds an attribute that a narrative may not have"
        if name in _LINKS and not _SAFE_LINK.match(_BLANKS.sub("", str(value))):
            return "holds a link that is neither http, https, mailto, tel, urn nor local"
        if name == "style" and _UNSAFE_STYLE.search(str(value)):
            return "holds a style that loads or runs something"
    return ""


def _covers(style: str) -> bool:
    return _COVERING_STYLE.search(_CSS_COMMENT.sub(" ", style)) is not None


def _is_remote(link: str) -> bool:
    return _REMOTE_IMAGE.match(_BLANKS.sub("", link)) is not None


def _character(match: re.Match[str]) -> str:
    # One that there is not stays, and is refused by the parser.
    return html.escape(html5.get(match[1], "")) or match[0]
