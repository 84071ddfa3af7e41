"""Request bodies of abuses: as dense as the limits allow, or wrong in as many places."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fhirpub.fhir.strict_json import MAX_NODES, dumps
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.interactions.indexing.limits import MAX_SEARCH_VALUES
from tests.bodies import document, organization, parameters, patient, register_body

JsonValue = Any
SMALL = 63_000
"""Just below 64 KiB: the service validates such a body on its event loop."""
RESOURCE = 8_200_000
"""Just below the limit of a resource without its documents."""
LONG = 28_000_000
NUMBERED = "@value@-@value@"
_NODES = MAX_NODES - 1_000
"""What the other elements of a report leave of the limit of values."""
_PER_VALUE = _NODES // (MAX_SEARCH_VALUES - 100)
"""So many items have as many search values as a resource may have."""


@dataclass(frozen=True, slots=True)
class Body:
    """A registration without the value of its identifier."""

    before: bytes
    after: bytes

    @property
    def length(self) -> int:
        return len(self.before) + len(NUMBERED) + len(self.after)

    def numbered(self, serial: int) -> tuple[bytes, bytes, bytes]:
        """Return the body for one identifier, in parts."""
        return self.before, b"A-%0*d" % (len(NUMBERED) - 2, serial), self.after

    @property
    def whole(self) -> bytes:
        """The body for one identifier that is always the same."""
        return b"".join(self.numbered(0))


def body_of(value: bytes) -> Body:
    before, _, after = value.partition(NUMBERED.encode())
    return Body(before, after)


def encoded(value: JsonValue) -> bytes:
    """Return a body as bytes, unless it is that already."""
    return value if isinstance(value, bytes) else dumps(value)


def registration(**changes: Any) -> Body:
    """Return a registration; changes go to the report."""
    return body_of(dumps(register_body(NUMBERED, **changes)))


def registration_in_xml(**changes: Any) -> Body:
    """Return the same registration in XML."""
    return body_of(write_xml(register_body(NUMBERED, **changes)))


def spaced_registration(**changes: Any) -> Body:
    """Return a registration with line breaks, for which the service needs its slow parser."""
    return body_of(json.dumps(register_body(NUMBERED, **changes), indent=0).encode())


def with_entries(entries: list[JsonValue]) -> Body:
    """Return a registration with further entries beside the three that are needed."""
    body = register_body(NUMBERED)
    body["parameter"] += entries
    return body_of(dumps(body))


# Wrong


def repeated(item: JsonValue, size: int) -> list[JsonValue]:
    """Return a list of equal items that takes ``size`` bytes, within the limit of values."""
    nodes = 1 + (len(item) if isinstance(item, (dict, list)) else 0)
    return [item] * min(size // (len(dumps(item)) + 1), _NODES // nodes)


def unknown_names(size: int) -> dict[str, int]:
    """Return elements that no resource has."""
    return {f"unknown{number:05}": 0 for number in range(size // 15)}


def nested_around_a_string(levels: int, size: int) -> dict[str, Any]:
    """Return nested extensions, each with an unknown property, around one long string."""
    value: dict[str, Any] = {"url": "urn:x", "valueString": "x" * size, "unknown": 1}
    for _ in range(levels - 1):
        value = {"url": "urn:x", "extension": [value], "unknown": 1}
    return value


# Valid, and as dense as possible


def filled(
    item: Callable[[int, str], JsonValue], *, size: int, nodes: int, of_list: int = 1
) -> list[JsonValue]:
    """Return a list of about ``size`` bytes of as many items as the limit of values allows.

    ``item`` takes a number and a text that fills it up. Each item has ``nodes`` values.
    """
    least = len(dumps(item(10**5, ""))) + 1
    count = min(size // least, _NODES // (nodes + of_list))
    text = "x" * max(0, size // count - least)
    return [item(10**5 + number, text) for number in range(count)]


def extensions(size: int) -> dict[str, Any]:
    """Return extensions with a value each."""
    items = filled(
        lambda _number, text: {"url": "a:b", "valueString": f"x{text}"}, size=size, nodes=2
    )
    return {"extension": items}


def codings(size: int) -> dict[str, Any]:
    """Return a code with many codings, each of which is a search value."""
    items = filled(
        lambda number, text: {"code": f"{number}", "display": f"x{text}"},
        size=size,
        nodes=_PER_VALUE,
    )
    return {"code": {"text": "Blood count", "coding": items}}


def performers(size: int) -> dict[str, Any]:
    """Return many performers after the one that is registered with the report."""
    items = filled(
        lambda number, text: {"reference": f"Practitioner/{number}", "display": f"x{text}"},
        size=size,
        nodes=_PER_VALUE,
    )
    return {"performer": [{"reference": "Organization/o1"}, *items]}


def contained_chain(size: int) -> dict[str, Any]:
    """Return contained resources, each of which refers to the next one."""

    def link(number: int, text: str) -> JsonValue:
        return {
            "resourceType": "Basic",
            "id": str(number),
            "code": {"text": f"x{text}"},
            "subject": {"reference": f"#{number + 1}"},
        }

    links = filled(link, size=size, nodes=6)
    del links[-1]["subject"]
    first = {"url": "a:b", "valueReference": {"reference": f"#{links[0]['id']}"}}
    return {"contained": links, "extension": [first]}


def nested_extensions(levels: int) -> dict[str, Any]:
    """Return an extension that holds another one, and so on."""
    value: dict[str, Any] = {"url": "a:b", "valueCode": "x"}
    for _ in range(levels - 1):
        value = {"url": "a:b", "extension": [value]}
    return value


def narrative(elements: int, *, levels: int) -> dict[str, Any]:
    """Return a narrative of many elements, nested this deep."""
    nested = "<b>" * levels + "x" + "</b>" * levels
    inner = nested * (elements // levels)
    div = f'<div xmlns="http://www.w3.org/1999/xhtml">{inner}</div>'
    return {"text": {"status": "additional", "div": div}}


def namespaces(levels: int, *, elements: int) -> dict[str, Any]:
    """Return a narrative whose elements stand in the scope of 60 namespaces for each level."""
    starts = [
        "<b" + "".join(f' xmlns:a{level}_{number}="a:"' for number in range(60)) + ">"
        for level in range(levels)
    ]
    inner = f"{''.join(starts)}{'<b/>' * elements}x{'</b>' * levels}"
    div = f'<div xmlns="http://www.w3.org/1999/xhtml">{inner}</div>'
    return {"text": {"status": "additional", "div": div}}


# XML that the writer would not make


def xml_with(report_content: str) -> bytes:
    """Return a registration in XML whose report is only ``report_content``."""
    entries = parameters(patient=patient(), organization=organization())
    whole = write_xml(entries).decode()
    added = (
        '<parameter><name value="diagnosticReport"/><resource>'
        f"<DiagnosticReport>{report_content}</DiagnosticReport></resource></parameter>"
    )
    return whole.replace("</Parameters>", f"{added}</Parameters>").encode()


def attributes(count: int) -> str:
    """Return one element with many attributes."""
    named = " ".join(f'a{number}="x"' for number in range(count))
    return f'<status value="final" {named}/>'


def elements(count: int) -> str:
    """Return many elements that no resource has."""
    return "<a/>" * count


# Updates


def patch_operations(count: int) -> list[dict[str, Any]]:
    """Return a JSON Patch that writes the same element again and again."""
    return [
        {"op": "replace", "path": "/conclusion", "value": f"Revision {number}"}
        for number in range(count)
    ]


def with_data(data: bytes) -> Body:
    """Return a registration with one document."""
    return registration(presentedForm=[document(data)])
