"""Hypothesis strategies that create valid FHIR R4 resources from the element tables."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

_SOURCE = Path(__file__).parent.parent / "schemas" / "source" / "fhir_r4_elements.json"
_TABLES: Mapping[str, Any] = json.loads(_SOURCE.read_bytes())
_DEEPEST = 4
_FEW = (4, 2, 2, 1, 0, 0, 0, 0, 0)  # optional elements of an object, by depth
_CONTAINABLE = ("Organization", "Patient", "Practitioner", "Specimen")
_CONTROL = [chr(n) for n in range(32) if chr(n) not in "\t\r\n"]

RESOURCE_TYPES = sorted(
    name
    for name, table in _TABLES["types"].items()
    if table["kind"] == "resource" and name != "Resource"
)
"""Every type that has an element table."""

Element = Mapping[str, Any]
_CHILDREN: dict[str, list[Element]] = {}
for _table in _TABLES["types"].values():
    for _each in _table["elements"]:
        _CHILDREN.setdefault(_each["path"].rpartition(".")[0], []).append(_each)

_NEEDED: Mapping[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(("Duration", "Quantity"), (("code", "system"),)),
    **dict.fromkeys(("Age", "Count", "Distance"), (("value", "code"), ("code", "system"))),
    "ContactPoint": (("value", "system"),),
    "Ratio": (("numerator", "denominator"), ("denominator", "numerator")),
    "Timing.repeat": (
        ("periodMax", "period"),
        ("durationMax", "duration"),
        ("countMax", "count"),
        ("duration", "durationUnit"),
        ("period", "periodUnit"),
        ("offset", "when"),
    ),
    "ServiceRequest": (("orderDetail", "code"),),
    "TriggerDefinition": (("condition", "data"),),
}
"""Elements that FHIR requires next to another one: invariants that the schemas check."""

_ANY_OF: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("DataRequirement.codeFilter", "DataRequirement.dateFilter"),
        frozenset({"path", "_path", "searchParam", "_searchParam"}),
    ),
    "Expression": frozenset({"expression", "_expression", "reference", "_reference"}),
    "Observation.referenceRange": frozenset({"low", "high", "text", "_text"}),
    "Organization": frozenset({"name", "_name", "identifier"}),
    "Patient.contact": frozenset({"name", "telecom", "address", "organization"}),
}
"""Elements of which one is required; if none is drawn, the first of these is."""

_EXCLUDED: Mapping[str, tuple[str, str]] = {
    "AuditEvent.entity": ("name", "query"),
    "DataRequirement.codeFilter": ("path", "searchParam"),
    "DataRequirement.dateFilter": ("path", "searchParam"),
    "Timing.repeat": ("when", "timeOfDay"),
    "TriggerDefinition": ("data", "timing"),
}
"""Elements that must not occur with another one; its name begins with the second item."""

_BESIDE: Mapping[str, Any] = json.loads(_SOURCE.with_name("beside.json").read_bytes())
_SIMPLE: Mapping[str, list[str]] = _BESIDE["simple"]
"""Quantities that FHIR allows no comparator."""

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters=_CONTROL), min_size=1, max_size=9)
_DATE = st.dates().map(str)
_CLOCK = st.sampled_from(["00:00:00", "23:59:60", "10:20:30.5", "10:20:30.123456789"])
_OFFSET = st.sampled_from(["Z", "+02:00", "-13:59", "+14:00"])
_INSTANT = st.builds("{}T{}{}".format, _DATE, _CLOCK, _OFFSET)
_URI = st.sampled_from(["http://example.org/a", "urn:oid:1.2.3", "#x", "Patient/1", "a:ñ\u00a0"])

PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "base64Binary": st.binary(min_size=1, max_size=9).map(
        lambda raw: base64.b64encode(raw).decode()
    ),
    "boolean": st.booleans(),
    "canonical": _URI.map("{}|1.0".format),
    "code": st.sampled_from(["a", "two words", "text/plain; charset=x", "ñ", "1.2-3_4"]),
    "date": _DATE | _DATE.map(lambda day: day[:7]) | _DATE.map(lambda day: day[:4]),
    "dateTime": _INSTANT | _DATE | _DATE.map(lambda day: day[:7]),
    "decimal": st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["0.10", "-0.0", "1E-7", "1.50E+300", "9" * 30]).map(Decimal),
    "id": st.sampled_from(["a", "A-1.b", "x" * 64]),
    "instant": _INSTANT,
    "integer": st.integers(-(2**31), 2**31 - 1),
    "markdown": _TEXT,
    "oid": st.sampled_from(["urn:oid:2.16.840.1", "urn:oid:0.0"]),
    "positiveInt": st.integers(1, 2**31 - 1),
    "string": _TEXT,
    "time": _CLOCK,
    "unsignedInt": st.integers(0, 2**31 - 1),
    "uri": _URI,
    "url": _URI,
    "uuid": st.uuids().map("urn:uuid:{}".format),
    "xhtml": _TEXT.map('<div xmlns="http://www.w3.org/1999/xhtml">{}</div>'.format),
}
_OF_ITS_OWN = {
    **dict.fromkeys(
        ("Timing.repeat.duration", "Timing.repeat.period"), PRIMITIVES["decimal"].map(abs)
    ),
    **dict.fromkeys(
        ("Age.system", "Count.system", "Distance.system", "Duration.system"),
        st.just("http://unitsofmeasure.org"),
    ),
    "Age.value": st.integers(1, 150) | st.sampled_from(["0.5", "1E-7"]).map(Decimal),
    "Count.code": st.just("1"),
    "Count.value": st.integers(-(10**9), 10**9),
    "Extension.url": PRIMITIVES["uri"],
    "SampledData.data": st.sampled_from(("0", "-1.5 E 2.25 U L")),  # required by HL7's XML schema
}
"""Values of each primitive type, as the JSON parser returns them."""


def resource_of(type_name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of resources that are valid by type, cardinality and binding.

    Only those invariants between elements are respected that the schemas check.
    """
    return _object(type_name, 0).map(lambda body: {"resourceType": type_name, **body})


@st.composite
def _object(draw: st.DrawFn, path: str, depth: int) -> dict[str, Any]:
    """Return an object with its required elements and some of the others."""
    chosen, others = _elements(path, depth)
    least = 1 if not chosen and depth else 0
    most = max(least, _FEW[depth])
    picked = {draw(_up_to(len(others) - 1)) for _ in range(draw(_up_to(most)) or least)}
    value: dict[str, Any] = {}
    for element in (*chosen, *(others[index] for index in sorted(picked))):
        value |= draw(_element(element, depth))
    for name, needed in _NEEDED.get(path, ()):
        if name in value and value.keys().isdisjoint((needed, f"_{needed}")):
            (element,) = (child for child in _CHILDREN[path] if _path(child) == f"{path}.{needed}")
            value |= draw(_element(element, depth))
    any_of = _ANY_OF.get(path, frozenset())
    if any_of and any_of.isdisjoint(value):
        element = next(child for child in _CHILDREN[path] if _path(child).split(".")[-1] in any_of)
        value |= draw(_element(element, depth))
    _remove_excluded(path, value)
    for quantity in (value[name] for name in _SIMPLE.get(path, ()) if name in value):
        quantity.pop("comparator", None)
        quantity.pop("_comparator", None)
        if quantity.keys() <= {"id"}:
            quantity["unit"] = "g"
    return value


def _remove_excluded(path: str, value: dict[str, Any]) -> None:
    """Remove elements from an object that must not occur with the others."""
    given = {name.lstrip("_") for name in value}
    present, excluded = _EXCLUDED.get(path, ("", ""))
    if present in given:
        for name in [item for item in value if item.lstrip("_").startswith(excluded)]:
            del value[name]
    if path == "Observation" and any(name.startswith("value") for name in given):
        value.pop("dataAbsentReason", None)
        if any(_codes(value) & _codes(item) for item in value.get("component", ())):
            del value["component"]
    if path == "Organization":
        for item in (*value.get("telecom", ()), *value.get("address", ())):
            if item.get("use") == "home":
                item["use"] = "work"


def _codes(value: dict[str, Any]) -> set[tuple[str, str]]:
    codings = value["code"].get("coding", ())
    return {(coding.get("system", ""), coding["code"]) for coding in codings if "code" in coding}


@cache
def _up_to(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


@cache
def _elements(path: str, depth: int) -> tuple[list[Element], list[Element]]:
    """Return the required and the optional elements."""
    known = [
        child for child in _CHILDREN[path] if not (depth and _path(child).endswith("contained"))
    ]
    optional = [record for record in known if record["min"] == 0 and _fits(record, depth)]
    return [record for record in known if record["min"] > 0], optional


def _path(element: Element) -> str:
    return str(element["path"])


def _fits(element: Element, depth: int) -> bool:
    """Return whether an element may be drawn: near the bottom only leaves may."""
    if depth and element["path"].endswith(".id"):
        return False  # an element needs more than an id
    types = element["types"]
    ends = PRIMITIVES.keys() | {"Extension"}
    return depth < _DEEPEST or bool(types and types[0] in ends)


@st.composite
def _element(draw: st.DrawFn, element: Element, depth: int) -> dict[str, Any]:
    """Return the JSON properties of one element."""
    name, types = element["path"].rpartition(".")[2], element["types"]
    type_name = types[0] if types else "BackboneElement"
    if name.endswith("[x]"):
        ends = [item for item in types if item in PRIMITIVES] if depth >= _DEEPEST else []
        type_name = draw(st.sampled_from(ends or types))
        name = name.removesuffix("[x]") + type_name[0].upper() + type_name[1:]
    one = _value(element, type_name, depth)
    many = element["max"] == "*"
    bare = name == "id" or element["path"] in ("Extension.url", "Narrative.div")
    if type_name in PRIMITIVES and not bare:
        return draw(_primitive(name, one, depth, many=many))
    return {name: [draw(one) for _ in range(1 + draw(_up_to(1)))] if many else draw(one)}


def _value(element: Element, type_name: str, depth: int) -> st.SearchStrategy[Any]:
    """Return a strategy of single values of an element."""
    path, (strength, url) = element["path"], element.get("binding", ("", ""))
    if path.count(".") == 1 and path.endswith(".id"):
        return PRIMITIVES["id"]
    if strength == "required" and url in _TABLES["codes"]:
        return st.sampled_from([code for _, code in _TABLES["codes"][url]])
    if type_name in PRIMITIVES:
        return _OF_ITS_OWN.get(path, PRIMITIVES[type_name])
    if type_name == "Resource":
        return st.sampled_from(_CONTAINABLE).flatmap(_contained)
    if type_name in ("BackboneElement", "Element"):
        return _object(element.get("same_as", path), depth + 1)
    return _object(type_name, depth + 1)


def _contained(type_name: str) -> st.SearchStrategy[dict[str, Any]]:
    if type_name not in RESOURCE_TYPES:
        return st.just({"resourceType": type_name, "id": "c", "note": [{"text": "?"}]})
    return _object(type_name, _DEEPEST).map(lambda body: {"resourceType": type_name, **body})


@st.composite
def _primitive(
    draw: st.DrawFn, name: str, one: st.SearchStrategy[Any], depth: int, *, many: bool
) -> dict[str, Any]:
    """Return a primitive: sometimes with extensions, or with extensions instead of a value."""
    kind = draw(_up_to(9)) if depth < _DEEPEST else 0
    extended = {"extension": [{"url": "http://example.org/why", "valueCode": "masked"}]}
    if not many:
        extras = {7: {"id": "p"}, 8: extended, 9: extended}
        sibling = {f"_{name}": extras[kind]} if kind in extras else {}
        return sibling if kind == 9 else {name: draw(one), **sibling}
    values = [draw(one) for _ in range(1 + draw(_up_to(1)))]
    siblings: dict[int, dict[str, Any]] = {
        7: {name: values, f"_{name}": [{"id": "p"}, *(None for _ in values[1:])]},
        8: {name: [*values, None], f"_{name}": [*(None for _ in values), extended]},
        9: {f"_{name}": [extended]},
    }
    return siblings.get(kind, {name: values})
