"""Resources as XML (R4, 2.6.1; ADR 16): written from their JSON form, along the element tables."""

from __future__ import annotations

from decimal import Decimal
from itertools import zip_longest
from typing import Any

from lxml import etree

from fhirpub.errors import NotExpressible
from fhirpub.fhir.narrative import parse
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.fhir.xml.tables import (
    BOOLEAN,
    DECIMAL,
    INTEGERS,
    OF_PRIMITIVE,
    RESOURCE,
    XHTML,
    Element,
    tables,
)

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
_NAMESPACE = ' xmlns="http://hl7.org/fhir"'
# White space in an attribute would come back as blanks if it were not written by number.
_ESCAPES = (
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ('"', "&quot;"),
    ("\t", "&#9;"),
    ("\n", "&#10;"),
    ("\r", "&#13;"),
)
_NO_CHARACTERS = (
    b"\xef\xbf\xbe",
    b"\xef\xbf\xbf",
)  # U+FFFE and U+FFFF: XML has no way to say them


def write_xml(resource: JsonObject, *, pretty: bool = False) -> bytes:
    """Return a resource as XML in UTF-8; ``pretty``: for people, two blanks an indent.

    The marker of a document comes out as it is, for the document to be put in its place.
    Raises NotExpressible for what is not R4: a contained resource, stored by an earlier release,
    may hold it.
    """
    writing = _Writing(pretty=pretty)
    writing.resource(resource, "", 0, _NAMESPACE)
    body = "".join((_DECLARATION, *writing.parts, "\n" if pretty else "")).encode()
    if any(character in body for character in _NO_CHARACTERS):
        raise NotExpressible("")
    return body


class _Writing:
    """One resource on its way out: the pieces of its text, in their order."""

    def __init__(self, *, pretty: bool) -> None:
        self.parts: list[str] = []
        self._pretty = pretty
        self._objects = tables().objects

    def resource(self, value: Any, at: str, depth: int, namespace: str = "") -> None:
        name = value.get("resourceType") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in tables().resources:
            raise NotExpressible(at)
        rest = {key: item for key, item in value.items() if key != "resourceType"}
        self._open(f"{name}{namespace}", depth)
        self._members(rest, name, at, depth + 1)
        self._close(name, depth)

    def _members(self, value: JsonObject, path: str, at: str, depth: int) -> None:
        known = self._objects[path]
        names = dict.fromkeys(name.removeprefix("_") for name in value)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise NotExpressible(at)
        elements = sorted(map(known.__getitem__, names), key=_order)
        for element in elements:
            here = f"{at}.{element.place}" if at else element.place
            one, beside = value.get(element.name), value.get(f"_{element.name}")
            if not element.many:
                self._element(element, one, beside, here, depth)
                continue
            if not all(item is None or isinstance(item, list) for item in (one, beside)):
                raise NotExpressible(here)
            for index, (item, sibling) in enumerate(zip_longest(one or (), beside or ())):
                self._element(element, item, sibling, f"{here}[{index}]", depth)

    def _element(self, element: Element, value: Any, beside: Any, at: str, depth: int) -> None:
        if beside is not None and element.type in (*self._objects, RESOURCE, XHTML):
            raise NotExpressible(at)
        if element.type == RESOURCE:
            self._open(element.name, depth)
            self.resource(value, at, depth + 1)
            self._close(element.name, depth)
        elif element.type == XHTML:
            self._pad(depth)
            self.parts.append(_narrative(value, at))
        elif element.type in self._objects:
            self._object(element.name, value, element.type, at, depth)
        else:
            text = None if value is None else _text(value, element.type, at)
            beside = {} if beside is None else beside
            self._object(element.name, beside, OF_PRIMITIVE, at, depth, text)

    def _object(
        self, name: str, value: Any, path: str, at: str, depth: int, text: str | None = None
    ) -> None:
        """Write an object, or a primitive with what it carries beside its ``text``."""
        if not isinstance(value, dict) or (not value and text is None):
            raise NotExpressible(at)
        attributes = [name]
        rest = value
        for key in ("id", "url") if path == "Extension" else ("id",):
            if key in value:
                attributes += (" ", key, '="', _text(value[key], "string", at), '"')
                rest = {other: item for other, item in rest.items() if other != key}
        if text is not None:
            attributes += (' value="', text, '"')
        if not rest:
            self._pad(depth)
            self.parts += ("<", *attributes, "/>")
            return
        self._open("".join(attributes), depth)
        self._members(rest, path, at, depth + 1)
        self._close(name, depth)

    def _pad(self, depth: int) -> None:
        if self._pretty:
            self.parts.append("\n" + "  " * depth)

    def _open(self, tag: str, depth: int) -> None:
        self._pad(depth)
        self.parts += ("<", tag, ">")

    def _close(self, name: str, depth: int) -> None:
        self._pad(depth)
        self.parts += ("</", name, ">")


def _order(element: Element) -> int:
    return element.order


def _text(value: Any, type_name: str, at: str) -> str:
    """Return a primitive as the value of an attribute."""
    if type_name == BOOLEAN:
        if isinstance(value, bool):
            return "true" if value else "false"
    elif type_name == DECIMAL or type_name in INTEGERS:
        if type(value) is int or (type_name == DECIMAL and isinstance(value, (float, Decimal))):
            return dumps(value).decode()
    elif isinstance(value, str):
        return _escape(value)
    raise NotExpressible(at)


def _escape(text: str) -> str:
    for character, escape in _ESCAPES:
        text = text.replace(character, escape)
    return text


def _narrative(div: Any, at: str) -> str:
    """Return a narrative, read and written again: what is not well-formed breaks nothing."""
    try:
        return etree.tostring(parse(str(div)), encoding="unicode", with_tail=False)
    except ValueError:
        raise NotExpressible(at) from None
