"""Strategies of JSON bodies: few long strings, many values, and updates in each of their forms."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.patch_formats import Form
from tests.bodies import register_body
from tests.expensive.texts import XHTML, Text, filled, texts
from tests.strategies import PRIMITIVES, RESOURCE_TYPES, _object

Shape = Callable[[int], bytes]
"""Returns a body of about so many bytes: the same one, larger or smaller."""

Value = Any
_PATIENT, _ORGANIZATION, _REPORT = range(3)
_MAX_LEVELS = 26
"""Deeper places are too long to be shown, so that the issues in them are the same."""

# Places of a string

_STRINGS: tuple[tuple[int, str], ...] = (
    *((_REPORT, name) for name in ("id", "implicitRules", "language", "status", "conclusion")),
    *((_REPORT, name) for name in ("effectiveDateTime", "effectivePeriod.start", "issued")),
    *((_REPORT, f"identifier[].{name}") for name in ("system", "value", "use", "type.text")),
    *((_REPORT, f"identifier[].period.{name}") for name in ("start", "end")),
    *((_REPORT, f"code.{name}") for name in ("text", "coding[].system", "coding[].code")),
    *((_REPORT, f"subject.{name}") for name in ("reference", "type", "display")),
    *((_REPORT, f"performer[].{name}") for name in ("reference", "type")),
    *((_REPORT, f"presentedForm[].{name}") for name in ("data", "url", "hash", "contentType")),
    *((_REPORT, f"presentedForm[].{name}") for name in ("creation", "title", "language")),
    *((_REPORT, f"text.{name}") for name in ("div", "status")),
    *((_REPORT, f"meta.{name}") for name in ("profile[]", "source", "lastUpdated")),
    (_REPORT, "extension[].url"),
    *((_PATIENT, name) for name in ("birthDate", "name[].text", "name[].family", "gender")),
    *((_PATIENT, name) for name in ("name[].given[]", "photo[].data", "identifier[].system")),
    *((_ORGANIZATION, name) for name in ("name", "identifier[].system", "identifier[].value")),
)
_VALUES = sorted(f"value{name[0].upper()}{name[1:]}" for name in PRIMITIVES if name != "xhtml")


def put(resource: dict[str, Any], path: str, value: Value) -> None:
    """Set what is at a path, and what leads there; ``[]`` is a list of one."""
    head, _, rest = path.partition(".")
    name, is_list = head.removesuffix("[]"), head.endswith("[]")
    if not rest:
        resource[name] = [value] if is_list else value
        return
    below = resource.get(name, [{}] if is_list else {})
    resource[name] = below
    put(below[0] if is_list else below, rest, value)


def nested(value: Value, levels: int) -> Value:
    """Return an extension below others."""
    for _ in range(levels):
        value = {"url": "a:b", "extension": [value]}
    return value


def around(div: str) -> str:
    """Return the text as a narrative, if it is none."""
    return div if div.startswith("<div") else f'<div xmlns="{XHTML}">{div}</div>'


@st.composite
def bodies_of_few_values(draw: st.DrawFn) -> Shape:
    """Return registrations with one long string, or a number, or the name of a member."""
    text = draw(texts())
    fill = draw(st.sampled_from(_FILLS))
    place = draw(st.sampled_from(_STRINGS))
    value_name, levels = draw(st.sampled_from(_VALUES)), draw(st.integers(0, _MAX_LEVELS))
    is_wrong, is_ascii = draw(st.booleans()), draw(st.booleans())

    def shape(size: int) -> bytes:
        body, room = register_body("A-1"), size - 2_500
        report = body["parameter"][_REPORT]["resource"]
        if fill is not None:
            fill(body, text, place, room)
        else:
            report["extension"] = [nested({"url": "a:b", value_name: text(room)}, levels)]
        if is_wrong:
            report["unknown"] = 1
        raw = json.dumps(body, ensure_ascii=is_ascii).encode()
        return raw[: size + 2_500]  # escapes may have made it longer

    return shape


@st.composite
def numbers(draw: st.DrawFn) -> Shape:
    """Return registrations with one long number."""
    begin, unit = (
        draw(st.sampled_from(_NUMBERS)),
        draw(st.sampled_from(["0", "9", "12", "0.", "e"])),
    )
    exponent = draw(st.sampled_from(["", "1", "e1", "E-9", "E-99999999", "e+99999999"]))
    raw = dumps(register_body("A-1", extension=[{"url": "a:b", "valueDecimal": "@"}]))

    def shape(size: int) -> bytes:
        number = begin + filled(unit, size - 2_500) + exponent
        return raw.replace(b'"@"', number.encode())

    return shape


_NUMBERS = ("", "-", "0.", "1.", "-0.0")


def _fill_one(body: Value, text: Text, place: tuple[int, str], room: int) -> None:
    entry, path = place
    put(body["parameter"][entry]["resource"], path, text(room))


def _fill_all(body: Value, text: Text, _place: tuple[int, str], room: int) -> None:
    for place in _STRINGS:
        _fill_one(body, text, place, room // len(_STRINGS))


def _fill_narrative(body: Value, text: Text, _place: tuple[int, str], room: int) -> None:
    narrative = {"status": "additional", "div": around(text(room))}
    body["parameter"][_REPORT]["resource"]["text"] = narrative


def _fill_name(body: Value, text: Text, _place: tuple[int, str], room: int) -> None:
    body["parameter"][_REPORT]["resource"]["extension"] = [{text(room): 1, "url": "a:b"}]


_FILLS = (_fill_one, _fill_one, _fill_all, _fill_narrative, _fill_name, None)


# Many values

_LISTS: tuple[tuple[int, str], ...] = (
    *((_REPORT, name) for name in ("extension", "contained", "category", "performer", "media")),
    *((_REPORT, name) for name in ("identifier", "presentedForm", "modifierExtension", "result")),
    *((_REPORT, name) for name in ("code.coding", "identifier[].type.coding", "meta.tag")),
    *((_REPORT, name) for name in ("effectiveTiming.event", "subject.identifier.type.coding")),
    *((_PATIENT, name) for name in ("identifier", "name", "contact", "communication", "telecom")),
    *((_PATIENT, name) for name in ("name[].given", "extension", "contained", "link")),
    *((_ORGANIZATION, name) for name in ("identifier", "contact", "alias", "extension")),
)
_ODD: tuple[Value, ...] = (
    *({}, [], None, 0, "", "a", True, {"id": "a"}, {"url": "a:b"}, {"extension": []}, [[]]),
    *({"url": "a:b", "valueCode": "a"}, {"url": "a:b", "valueCode": "a", "valueId": "b"}),
    *({"unknown": 1}, {"system": "a:b", "code": "a"}, {"code": "a"}, {"system": "a:b"}),
    *({"reference": "#a"}, {"reference": "#"}, {"reference": "Patient/p1", "type": "Group"}),
    *({"url": "http://a/b", "contentType": "a/b"}, {"data": "QQ==", "hash": ""}, {"data": ""}),
    *({"resourceType": "Nonsense"}, {"resourceType": "Basic", "id": "a"}, {"resourceType": 1}),
    *({"resourceType": "Basic", "id": "a", "code": {}, "subject": {"reference": "#a"}},),
    *({"resourceType": "Bundle", "type": "batch", "link": [{}]}, {"_value": None}),
    *({"start": "2026-02", "end": "2026-01"}, {"coding": [{}]}, {"text": "a", "coding": []}),
)
_TYPES = (
    *("Address", "Annotation", "Attachment", "CodeableConcept", "Coding", "ContactPoint"),
    *("DataRequirement", "Dosage", "Expression", "Extension", "HumanName", "Identifier"),
    *("Period", "Quantity", "Range", "Ratio", "Reference", "SampledData", "Signature", "Timing"),
    *("TriggerDefinition", "UsageContext", "RelatedArtifact", "ParameterDefinition"),
)
_CONTAINED = tuple(
    sorted({"Observation", "Patient", "Practitioner", "Encounter"}.intersection(RESOURCE_TYPES))
)


@st.composite
def items(draw: st.DrawFn) -> Value:
    """Return what may stand in a list: valid, odd, or valid but for one member."""
    kind = draw(st.sampled_from(["odd", "valid", "value", "broken", "contained"]))
    if kind == "odd":
        return draw(st.sampled_from(_ODD))
    if kind == "contained":
        name = draw(st.sampled_from(_CONTAINED))
        return {"resourceType": name, "id": "a", **draw(_object(name, 3))}
    name = draw(st.sampled_from(_TYPES))
    value = draw(_object(name, 3))
    if kind == "broken" and value:
        value[draw(st.sampled_from(sorted(value)))] = draw(st.sampled_from(_ODD))
    return value if kind == "valid" else {"url": "a:b", f"value{name}": value}


@st.composite
def bodies_of_many_values(draw: st.DrawFn) -> Shape:
    """Return registrations that repeat a few items, wherever and however deep."""
    repeated = draw(st.lists(items(), min_size=1, max_size=3))
    entry, path = draw(st.sampled_from(_LISTS))
    levels = draw(st.integers(0, _MAX_LEVELS)) if path == "extension" else 0
    has_gaps = draw(st.booleans())
    share = draw(st.sampled_from([1.0, 1.0, 0.5, 0.1])) * (0.2 if has_gaps else 1)  # of nulls
    is_wrong, has_ids = draw(st.booleans()), draw(st.booleans())
    indent = draw(st.sampled_from([None, None, 0]))

    def shape(size: int) -> bytes:
        body = register_body("A-1")
        resource = body["parameter"][entry]["resource"]
        values = list(_many(repeated, share * (size - 2_500), has_ids=has_ids))
        if levels:
            values = [nested({"url": "a:b", "extension": values}, levels - 1)]
        put(resource, path, values)
        if has_gaps and "." not in path:
            resource[f"_{path}"] = [None] * len(values)
        if is_wrong:
            resource["unknown"] = 1
        return json.dumps(body, indent=indent, default=float, ensure_ascii=False).encode()

    return shape


def _many(repeated: list[Value], size: float, *, has_ids: bool) -> Iterator[Value]:
    """Yield items in turn until they take a size, each with an id of its own if ``has_ids``."""
    left, number = size, 0
    while left > 0:
        item = repeated[number % len(repeated)]
        if has_ids and isinstance(item, dict):
            item = {**item, "id": f"n{number}"}
        left -= len(json.dumps(item, default=float)) + 2
        yield item
        number += 1


# Updates

_POINTERS = (
    *("/conclusion", "/status", "/presentedForm", "/presentedForm/0", "/presentedForm/-", ""),
    *("/presentedForm/0/extension", "/presentedForm/0/extension/-", "/presentedForm/0/title"),
    *("/_conclusion", "/_conclusion/extension", "/identifier/0", "/~0~1", "/presentedForm/00"),
    "/conclusion" + "/~0" * 20_000,
    "/a" * 20_000,
)


@st.composite
def updates(draw: st.DrawFn) -> tuple[Form, Shape]:
    """Return bodies of PATCH: operations, or fields with many values or a long text."""
    form: Form = draw(st.sampled_from(["fhir", "merge-patch", "json-patch", "json-patch"]))
    text = draw(texts())
    repeated = draw(st.lists(items(), min_size=1, max_size=2))
    name = draw(st.sampled_from(["conclusion", "presentedForm", "_conclusion", "status"]))
    is_long = draw(st.booleans())
    kinds = ["add", "replace", "test", "move", "remove", "copy"]
    operations = draw(
        st.lists(
            st.tuples(
                st.sampled_from(kinds), st.sampled_from(_POINTERS), st.sampled_from(_POINTERS)
            ),
            min_size=1,
            max_size=3,
        )
    )

    def shape(size: int) -> bytes:
        value = text(size - 500) if is_long else list(_many(repeated, size - 500, has_ids=False))
        if form != "json-patch":
            patch = {"resourceType": "DiagnosticReport", name: value}
            return json.dumps(patch, default=float, ensure_ascii=False).encode()
        first = {"op": "add", "path": "/presentedForm", "value": value}
        given = [{"op": op, "path": path, "from": source} for op, path, source in operations]
        given = [{**item, "value": "a"} if item["op"] != "copy" else item for item in given]
        many = [first, *given] if is_long else list(_many(given, size - 100, has_ids=False))
        return json.dumps(many, default=float, ensure_ascii=False).encode()

    return form, shape
