"""What each handler does beside those of webhooks, and what leads on from what was made."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.web.openapi.operations import OPERATIONS, reading
from tests.unit.web.openapi import described

FHIR = ("DiagnosticReport", "Observation", "Organization", "Binary", "CodeSystem")
SERVICE = ("CapabilityStatement", "OperationDefinition", "Authorization", "Service")


@pytest.mark.parametrize("tag", [*FHIR, *SERVICE])
def test_operations_are_described_as_they_are_wanted(document: Any, tag: str) -> None:
    found = described.of_tags(described.operations(document), tag)

    assert found == described.of_tags(described.wanted("operations"), tag)
    assert found


@pytest.mark.parametrize(
    ("path", "status", "place"),
    [
        ("/fhir/r4/DiagnosticReport/$register", "201", "/parameter/0/resource/id"),
        ("/fhir/r4/DiagnosticReport", "201", "/id"),
        ("/webhooks/v1/endpoints", "201", "/id"),
    ],
)
def test_links_lead_on_by_the_id_of_what_was_made(
    document: Any, path: str, status: str, place: str
) -> None:
    links = document["paths"][path]["post"]["responses"][status]["links"]

    assert links
    for name, link in links.items():
        assert link == {"operationId": name, "parameters": {"id": f"$response.body#{place}"}}


def test_a_read_says_what_it_is_for_and_which_blanks_it_has() -> None:
    made = reading("vread", "Read it", ("id", "version"))

    assert (made.name, made.summary, made.blanks) == ("vread", "Read it", ("id", "version"))
    assert {*made.successes} == {200, 304}


def test_each_answer_is_explained() -> None:
    for operation in OPERATIONS.values():
        assert operation.summary
        assert all(success.text for success in operation.successes.values())
