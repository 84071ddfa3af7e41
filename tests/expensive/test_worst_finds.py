"""The most expensive requests that the searches and their authors have found stay bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps
from tests.bodies import register_body
from tests.expensive import targets
from tests.expensive.bounds import HEAD, QUERY, Bounds, of_body
from tests.expensive.json_bodies import nested
from tests.expensive.measure import Work, measure
from tests.expensive.texts import XHTML
from tests.expensive.xml_bodies import registration_of

Find = tuple[bytes, Work, Bounds]
_PATIENT, _ORGANIZATION = 0, 1


def registered(**changes: Any) -> Find:
    """Return a registration whose report has these elements."""
    return _registration(register_body("A-1", **changes))


def registered_with(entry: int, **changes: Any) -> Find:
    """Return a registration one of whose parts has these elements."""
    body = register_body("A-1")
    body["parameter"][entry]["resource"] |= changes
    return _registration(body)


def _registration(body: Any) -> Find:
    raw = dumps(body)
    return raw, targets.registration(raw), of_body(raw)


def patched(operations: list[dict[str, Any]]) -> Find:
    """Return an update by JSON Patch."""
    raw = dumps(operations)
    return raw, targets.update(raw, "json-patch"), of_body(raw)


def in_xml(inner: str) -> Find:
    """Return a registration in XML."""
    raw = registration_of(inner)
    return raw, targets.registration(raw, is_xml=True), of_body(raw)


def with_field(name: str, value: str) -> Find:
    """Return a head with a field."""
    raw = f"GET / HTTP/1.1\r\nHost: a\r\n{name}: {value}\r\n\r\n".encode()
    return raw, targets.head(raw), HEAD


def searched_by(text: str) -> Find:
    """Return a query."""
    return text.encode(), targets.query(text), QUERY


def address(size: int) -> str:
    """Return a URL with combining marks in its host, in the order that takes longest to sort."""
    return f"http://{chr(0x315) * (size // 4)}{chr(0x334) * (size // 4)}"


def doubling(operations: int) -> list[dict[str, Any]]:
    """Return operations that copy an object into itself."""
    path = "/presentedForm/0"
    return [
        {"op": "add", "path": "/presentedForm", "value": [{}]},
        *({"op": "copy", "from": path, "path": f"{path}/a{n}"} for n in range(operations)),
    ]


def in_namespaces(levels: int, names: int, elements: int) -> str:
    """Return a narrative whose elements stand in the scope of many namespaces."""
    starts = [
        "<b" + "".join(f' xmlns:a{level}_{name}="a:"' for name in range(names)) + ">"
        for level in range(levels)
    ]
    return f'<div xmlns="{XHTML}">{"".join(starts)}{"<b/>" * elements}a{"</b>" * levels}</div>'


def below_long_paths(items: list[Any]) -> list[Any]:
    """Return items so deep that their places are too long to be shown, and are all the same."""
    return [nested({"url": "a:b", "extension": items}, 24)]


_CONTEXT = {"url": "a:b", "valueUsageContext": {}}
_TIMING = {"url": "a:b", "valueTiming": {"repeat": {"count": 0}}}
_TYPES = {"coding": [{"code": f"{number:03}"} for number in range(900)]}
_BASIC = {
    "resourceType": "Basic",
    "id": "a",
    "code": {"text": "a"},
    "extension": [{"url": "a:b", "valueReference": {"reference": "a:b"}}] * 370,
}

FINDS: dict[str, Callable[[], Find]] = {
    "marks in the URL of a document": (
        lambda: registered(presentedForm=[{"url": address(60_000)}])
    ),
    "fifteen copies in a JSON Patch": lambda: patched(doubling(15)),
    "the same issue 150 times": (lambda: registered(extension=below_long_paths([_CONTEXT] * 150))),
    "900 names with gaps": (
        lambda: registered_with(
            _PATIENT, name=[{"unknown": 1, "given": ["a"] * 900, "_given": [None] * 900}]
        )
    ),
    "a long list in _elements": lambda: searched_by("_elements=" + "a," * 10_000),
    "900 types of an identifier": (
        lambda: registered(identifier=[{"system": "a:b", "value": "v" * 2_000, "type": _TYPES}])
    ),
    "a hundred issues in timings": lambda: registered(extension=[_TIMING] * 110),
    "a contained resource without a schema": (
        lambda: registered(contained=[_BASIC], result=[{"reference": "#a"}])
    ),
    "a thousand operations": (
        lambda: patched([{"op": "add", "path": "/conclusion", "value": "a"}] * 1_000)
    ),
    "a pointer of 25,000 steps": (
        lambda: patched([{"op": "add", "path": "/conclusion" + "/a" * 25_000, "value": 1}])
    ),
    "a number of 60,000 digits": (
        lambda: in_xml(f'<extension url="a:b"><valueDecimal value="{"1" * 60_000}"/></extension>')
    ),
    "a narrative of 9,000 entities": (
        lambda: registered(
            text={"status": "additional", "div": f'<div xmlns="{XHTML}">{"&nbsp;" * 9_000}</div>'}
        )
    ),
    "2,000 namespaces around 5,000 elements": (
        lambda: in_xml(
            f'<text><status value="additional"/><h:div xmlns:h="{XHTML}"'
            + "".join(f' xmlns:a{number}="b"' for number in range(2_000))
            + f">{'<h:b/>' * 5_000}</h:div></text>"
        )
    ),
    "1,200 namespaces around 1,700 elements in JSON": (
        lambda: registered(text={"status": "additional", "div": in_namespaces(20, 60, 1_700)})
    ),
    "16,000 media ranges": lambda: with_field("Accept", "," * 15_900),
    "1,700 addresses of proxies": lambda: with_field("X-Forwarded-For", "10.0.0.1," * 1_700),
    "a thousand parameters of which the last counts": (
        lambda: searched_by("&".join(["_count=1&_id=a"] * 500))
    ),
    "13,000 sort keys": lambda: searched_by("_sort=" + ",".join(["date"] * 13_000)),
    "30,000 escapes": lambda: searched_by("code=" + "\\," * 30_000),
    "999 identifiers": lambda: searched_by("identifier=" + ",".join(["a|b"] * 999)),
}


@pytest.mark.parametrize("find", FINDS.values(), ids=FINDS)
def test_a_request_that_was_expensive_stays_within_its_bounds(find: Callable[[], Find]) -> None:
    raw, work, bounds = find()

    assert bounds.exceeded(work, measure(work), len(raw)) == []
