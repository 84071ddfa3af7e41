"""Resources in each format, and the links of a Bundle."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config
from fhirpub.interactions.context import Context
from fhirpub.interactions.versions import Shown
from fhirpub.testing.clock import HandClock
from fhirpub.web.message.representation import (
    Format,
    serialize,
    serialize_bundle,
    serialize_stored,
    serialize_subset,
)

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


def test_each_link_of_a_bundle_asks_for_the_same_format() -> None:
    urls = ["https://a/Patient?x=1", "https://a/Patient?_cursor=k"]
    links = [{"relation": "self", "url": urls[0]}, {"relation": "next", "url": urls[1]}]
    listing: Any = SimpleNamespace(bundle=lambda _context: {"link": links})

    made = serialize_bundle(None, b"", listing=listing, asked="_format=xml", form=PLAIN)  # type: ignore[arg-type]

    assert [made.count(f"{url}&_format=xml".encode()) for url in urls] == [1, 1]


@pytest.fixture(scope="module")
def context() -> Context:
    return create_context(Config(), clock=HandClock())


@pytest.mark.parametrize(
    ("form", "start"), [(PLAIN, b'{"resourceType":"Patient"'), (XML, b"<?xml"), (LINES, b"{\n")]
)
def test_a_part_of_a_resource_is_in_the_format_too(
    context: Context, form: Format, start: bytes
) -> None:
    stored = STORED[:-1] + b',"meta":{"versionId":"1"}}'
    version = Shown("Patient", "1", 1, stored)

    found = serialize_subset(
        context, b"", version=version, summary="", elements="active", form=form
    )

    assert found.startswith(start)
    assert b"active" in found


def test_a_stored_resource_is_sent_in_the_format_that_is_given(context: Context) -> None:
    assert serialize_stored(context, STORED, form=LINES) == serialize(STORED, LINES) != STORED
