"""Bodies in XML, and why they are refused."""

from __future__ import annotations

import pytest

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.xml.reader import read_xml


def xml(inside: str, *, name: str = "Patient", more: str = "", head: str = "") -> bytes:
    return f'{head}<{name} xmlns="http://hl7.org/fhir"{more}>{inside}</{name}>'.encode()


def refused(raw: bytes) -> list[Issue]:
    """Return the complaints about a body."""
    with pytest.raises(InvalidContent) as caught:
        read_xml(raw)
    return [*caught.value.issues]


def words(raw: bytes) -> list[tuple[str, str]]:
    """Return the words of the complaints about a body, each with its place."""
    return [(issue.expression, issue.diagnostics) for issue in refused(raw)]
