"""XML in, as strictly as JSON: read along the element tables into the form of JSON (ADR 16).

The result is validated like a JSON body. Refused here is what JSON cannot express: the wrong
namespace, order or repetition, text, attributes, and whatever the tables do not have (D-246,
D-247).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from lxml import etree

from fhirpub.errors import MAX_ISSUES, InvalidContent, Issue
from fhirpub.fhir.explanation.unknown_names import (
    MAX_SUGGESTIONS,
    describe_unknown_names,
    suggest_name,
)
from fhirpub.fhir.explanation.unreadable import refuse_bytes
from fhirpub.fhir.strict_json import (
    MAX_DEPTH,
    MAX_NODES,
    TOO_DEEP,
    JsonObject,
    loads,
    refuse_excess,
)
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
from fhirpub.problems import ContentProblem

_FHIR = "{http://hl7.org/fhir}"
_XHTML = "{http://www.w3.org/1999/xhtml}"
_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
_WHERE_SCHEMAS_ARE = frozenset({f"{_XSI}schemaLocation", f"{_XSI}noNamespaceSchemaLocation"})
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml\s[^>]*?encoding\s*=\s*[\"']([^\"'>]*)[\"']")
_HEAD_BYTES = 4096
_BEFORE_THE_ROOT = re.compile(rb"[ \t\r\n]+|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_ROOT = re.compile(rb"<[^!?]")
_MARK = b"\xef\xbb\xbf"
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}
_MAX_MARKUP_TOKENS = 2 * MAX_NODES
"""Most signs of an element's beginning or end, and of an attribute: each costs memory to parse."""
_ATTRIBUTE = re.compile(rb"=[ \t\r\n]*[\"']")
_LONG_NAMESPACE = re.compile(
    rb"(?<=[ \t\r\n])xmlns(?::[^ \t\r\n=<>\"']*)?[ \t\r\n]*=[ \t\r\n]*(?:\"[^\"]{257}|'[^']{257})"
)
"""Each element's name comes with its namespace: many elements of a long one fill the memory."""
_BLANK = " \t\r\n"
_MAX_ATTRIBUTES = 64
_TOO_MANY_ATTRIBUTES = f"must not have more than {_MAX_ATTRIBUTES} attributes"
_DEEPEST_NARRATIVE = 256
"""What is nested deeper cannot be read as a narrative of JSON either."""
# A copy of XHTML with nothing that is declared around it: readers of JSON expect <div xmlns=…>.
_WITHOUT_PREFIXES = etree.XSLT(
    etree.XML(
        """\
<transform version="1.0" xmlns="http://www.w3.org/1999/XSL/Transform"
    xmlns:x="http://www.w3.org/1999/xhtml" exclude-result-prefixes="x">
  <template match="@*|node()">
    <copy><apply-templates select="@*|node()"/></copy>
  </template>
  <template match="x:*">
    <element name="{local-name()}" namespace="http://www.w3.org/1999/xhtml">
      <apply-templates select="@*|node()"/>
    </element>
  </template>
</transform>"""
    )
)
_SOME_TEXT = "must not hold text: FHIR's XML has values in attributes"

Pair = tuple[Any, JsonObject | None]
"""A value, and what a primitive carries beside it."""


def read_xml(raw: bytes) -> JsonObject:
    """Return the resource in a body of XML as JSON has it.

    A number or a boolean that is none stays a string, for the schema to explain. Raises
    InvalidContent with everything that is wrong with the XML, each with its place as FHIRPath.
    """
    root = _parse(raw)
    name = _local_name(root, _FHIR)
    if name not in tables().resources:
        rule = "the body must be a resource of FHIR R4 in the namespace http://hl7.org/fhir"
        raise _malformed(rule)
    reading = _Reading()
    resource = reading.resource(root, name, 1)
    if reading.issues:
        raise InvalidContent(reading.issues)
    refuse_excess(resource)
    return resource


def _parse(raw: bytes) -> etree._Element:
    """Return the root of what is XML in UTF-8, of bearable size, and nothing else (D-248)."""
    declared = _HEAD.match(raw[:_HEAD_BYTES])
    if declared and declared[1].lower() not in (b"utf-8", b"utf8"):
        raise InvalidContent.because(
            "the body must be UTF-8, and say so if it says anything",
            details=ContentProblem.BODY_NOT_UTF8,
        )
    # Without a document type there are no entities either: nothing grows, nothing loads. Behind
    # the beginning of the root there is none, but in comments and in text.
    if b"<!DOCTYPE" in raw and not _root_is_first(raw):
        raise _malformed("the body must not have a document type (DTD)")
    # Most = in a text are none of an attribute: they are looked at only if they are many.
    attributes = _ATTRIBUTE.finditer(raw) if raw.count(b"=") > _MAX_MARKUP_TOKENS else ()
    if raw.count(b"<") > _MAX_MARKUP_TOKENS or any(islice(attributes, _MAX_MARKUP_TOKENS, None)):
        raise _too_complex("the body holds too many values")
    if _LONG_NAMESPACE.search(raw):
        raise _malformed("the body declares a namespace of more than 256 characters")
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        recover=False,
        huge_tree=True,  # a document may be larger than the parser's 10 MB for an attribute
    )
    try:
        return etree.fromstring(raw, parser)
    except etree.XMLSyntaxError as problem:
        refuse_bytes(raw)
        line, column = problem.position
        code = problem.code  # type: ignore[attr-defined]  # the stubs do not have it
        entity = code == etree.ErrorTypes.ERR_UNDECLARED_ENTITY
        what = "uses an entity that XML does not have" if entity else "is not well-formed XML"
        if raw[:_HEAD_BYTES].lstrip()[:1] in (b"{", b"["):
            what = "is JSON, whose Content-Type is application/fhir+json, not well-formed XML"
        raise _malformed(f"the body {what} (line {line}, column {column})") from None


def _malformed(said: str) -> InvalidContent:
    return InvalidContent.because(said, details=ContentProblem.XML_MALFORMED)


def _too_complex(said: str) -> InvalidContent:
    return InvalidContent.because(said, details=ContentProblem.BODY_TOO_COMPLEX)


def _root_is_first(raw: bytes) -> bool:
    """Return whether only blanks, comments and processing instructions stand before the root."""
    at = len(_MARK) if raw.startswith(_MARK) else 0
    while found := _BEFORE_THE_ROOT.match(raw, at):
        at = found.end()
    return _ROOT.match(raw, at) is not None


def _local_name(element: etree._Element, namespace: str) -> str:
    """Return the name of an element of a namespace, or nothing if it is of another."""
    tag = str(element.tag)
    return tag.removeprefix(namespace) if tag.startswith(namespace) else ""


class _Reading:
    """One resource on its way in, and everything that is wrong with it."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self._objects = tables().objects

    def resource(self, element: etree._Element, at: str, depth: int) -> JsonObject:
        """Return a resource; its element has a resource's name."""
        name = _local_name(element, _FHIR)
        self._attributes(element, (), at)
        return {"resourceType": name, **self._members(element, name, at, depth)}

    def _members(self, element: etree._Element, path: str, at: str, depth: int) -> JsonObject:
        """Return the child elements of an object by name."""
        if depth > MAX_DEPTH:
            raise _too_complex(TOO_DEEP)
        known, latest = self._objects[path], None
        found: dict[str, list[Pair]] = {}
        unknown: list[str] = []
        for child in self._children(element, at):
            name = child.tag.rpartition("}")[2]
            one = known.get(name)
            if one is None:
                unknown.append(name)
                continue
            pairs = found.setdefault(name, [])
            here = f"{at}.{one.place}"
            if one.many:
                here += f"[{len(pairs)}]"
            elif pairs:
                self._refuse("must not repeat", here)
            if latest is not None and one.order < latest.order:
                self._refuse(f"must stand before {latest.name}: the order is fixed in XML", here)
            else:
                latest = one
            pairs.append(self._value(child, one, here, depth + 1))
        if unknown:
            self._refuse_names("elements", unknown, known, at)
        return _join(found, known)

    def _value(self, element: etree._Element, of: Element, at: str, depth: int) -> Pair:
        if of.type == XHTML:
            return self._narrative(element, at), None
        if _local_name(element, _FHIR) == "":
            self._refuse("must be in the namespace http://hl7.org/fhir", at)
            return None, None
        if of.type == RESOURCE:
            return self._unwrap_resource(element, at, depth), None
        if of.type not in self._objects:
            return self._primitive(element, of.type, at, depth)
        known = ("id", "url") if of.type == "Extension" else ("id",)
        value: JsonObject = self._attributes(element, known, at)
        return value | self._members(element, of.type, at, depth), None

    def _unwrap_resource(self, element: etree._Element, at: str, depth: int) -> JsonObject | None:
        """Return the one resource that stands in an element such as ``contained``."""
        self._attributes(element, (), at)
        inner = list(self._children(element, at))
        if len(inner) == 1 and _local_name(inner[0], _FHIR) in tables().resources:
            return self.resource(inner[0], at, depth)
        self._refuse("must hold one resource of FHIR R4", at)
        return None

    def _primitive(self, element: etree._Element, kind: str, at: str, depth: int) -> Pair:
        beside = self._attributes(element, ("id", "value"), at)
        text = beside.pop("value", None)
        if len(element) or element.text:
            beside |= self._members(element, OF_PRIMITIVE, at, depth)
        if text is None and "extension" not in beside:
            self._refuse("needs a value or an extension", at, ContentProblem.VALUE_EMPTY)
        return None if text is None else _convert(text, kind), beside or None

    def _narrative(self, element: etree._Element, at: str) -> str:
        if str(element.tag) != f"{_XHTML}div":
            rule = "must be a div in the namespace http://www.w3.org/1999/xhtml"
            self._refuse(rule, at, ContentProblem.NARRATIVE_INVALID)
        depth = 0
        for event, item in etree.iterwalk(element, events=("start", "end")):
            depth += 1 if event == "start" else -1
            if depth > _DEEPEST_NARRATIVE:
                self._refuse(f"must not be nested deeper than {_DEEPEST_NARRATIVE} levels", at)
                return ""
            if len(item.attrib) > _MAX_ATTRIBUTES:
                self._refuse(_TOO_MANY_ATTRIBUTES, at)
                return ""
        return etree.tostring(_WITHOUT_PREFIXES(element).getroot(), encoding="unicode")

    def _attributes(self, element: etree._Element, known: tuple[str, ...], at: str) -> JsonObject:
        """Return the attributes of an element that it may have."""
        if len(element.attrib) > _MAX_ATTRIBUTES:  # to read each takes as long as to find it
            self._refuse(_TOO_MANY_ATTRIBUTES, at)
            return {}
        found: JsonObject = {str(name): value for name, value in element.items()}
        unknown = [name for name in found if name not in known]
        for name in unknown:
            del found[name]
        others = [name for name in unknown if name not in _WHERE_SCHEMAS_ARE]
        if others:
            self._refuse_names("attributes", others, (), at)
        return found

    def _children(self, element: etree._Element, at: str) -> Iterator[etree._Element]:
        """Yield the child elements; text between them is an issue, and a comment is nothing."""
        texts = {element.text}
        for child in element:
            texts.add(child.tail)
            if isinstance(child.tag, str):
                yield child
        if any(text and text.strip(_BLANK) for text in texts):
            self._refuse(_SOME_TEXT, at)

    def _refuse_names(
        self, kind: str, names: Sequence[str], known: Iterable[str], at: str
    ) -> None:
        said = describe_unknown_names(kind, names)
        if len(self.issues) < MAX_SUGGESTIONS:
            said += suggest_name(names, known)
        self._refuse(said, at, ContentProblem.ELEMENT_UNKNOWN)

    def _refuse(
        self, rule: str, at: str, details: ContentProblem = ContentProblem.ELEMENT_MALFORMED
    ) -> None:
        self.issues.append(Issue.error(details, rule, at))
        if len(self.issues) == MAX_ISSUES:
            raise InvalidContent(self.issues)


def _join(found: Mapping[str, list[Pair]], known: Mapping[str, Element]) -> JsonObject:
    """Return what was found under the names of JSON: values, and what stands beside them."""
    joined: JsonObject = {}
    for name, pairs in found.items():
        for key, column in ((name, 0), (f"_{name}", 1)):
            each = [pair[column] for pair in pairs]
            if any(one is not None for one in each):
                joined[key] = each if known[name].many else each[0]
    return joined


def _convert(text: str, kind: str) -> Any:
    """Return a primitive with its type in JSON, or the text if it does not have its form."""
    if kind == BOOLEAN:
        return _BOOLEANS.get(text, text)
    if kind in INTEGERS:
        return int(text) if _WHOLE.fullmatch(text) else text
    if kind == DECIMAL and _NUMBER.fullmatch(text):
        try:
            return loads(text.encode())  # a number of JSON, every digit kept
        except InvalidContent:
            return text
    return text
