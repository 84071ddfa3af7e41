"""Resources in each format, and the links of a Bundle."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.web.message.representation import Format, serialize, serialize_bundle

STORED = b'{"resourceType":"Patient","id":"1","active":true}'
PARSED: dict[str, Any] = {"resourceType": "Patient", "id": "1", "active": True}
PLAIN, LINES = Format(is_xml=False, in_lines=False), Format(is_xml=False, in_lines=True)
XML, XML_LINES = Format(is_xml=True, in_lines=False), Format(is_xml=True, in_lines=True)


def test_plain_json_alone_is_the_stored_format() -> None:
    assert [each.is_stored for each in (PLAIN, LINES, XML, XML_LINES)] == [
        True,
        False,
        False,
        False,
    ]


def test_a_stored_resource_is_returned_byte_for_byte() -> None:
    assert serialize(STORED, PLAIN) is STORED


def test_a_resource_that_is_not_encoded_is() -> None:
    assert serialize(PARSED, PLAIN) == STORED


@pytest.mark.parametrize("resource", [STORED, PARSED])
def test_each_format_is_the_same_from_bytes_and_from_objects(resource: Any) -> None:
    assert serialize(resource, LINES).startswith(b'{\n  "resourceType": "Patient"')
    xml, lines = serialize(resource, XML), serialize(resource, XML_LINES)
    assert b'<Patient xmlns="http://hl7.org/fhir"><id value="1"/><active value="true"/>' in xml
    assert lines.count(b"\n") > xml.count(b"\n")


@pytest.mark.parametrize(
    ("url", "asked", "shown"),
    [
        ("https://a/Patient", "_format=xml", "https://a/Patient?_format=xml"),
        ("https://a/Patient?x=1", "_format=xml", "https://a/Patient?x=1&_format=xml"),
        ("https://a/Patient?x=1", "", "https://a/Patient?x=1"),
    ],
)
def test_links_of_a_bundle_ask_for_the_same_format(url: str, asked: str, shown: str) -> None:
    bundle = {"resourceType": "Bundle", "link": [{"relation": "self", "url": url}]}
    listing: Any = SimpleNamespace(bundle=lambda _context: bundle)

    made = serialize_bundle(None, b"", listing=listing, asked=asked, form=PLAIN)  # type: ignore[arg-type]

    assert f'"url":"{shown}"'.encode() in made
