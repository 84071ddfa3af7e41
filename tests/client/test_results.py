"""What a caller reads of the response to a registration."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from fhirpub_client.results import Registered, Stored, version_of

LOCATION = "https://fhir.example.org/sub/fhir/r4/DiagnosticReport/d-1/_history/3"


def issue(text: str, severity: str = "information") -> dict[str, str]:
    return {"severity": severity, "diagnostics": text}


def response(*issues: dict[str, str], **headers: str) -> httpx.Response:
    outcome = {"resourceType": "OperationOutcome", "issue": list(issues)}
    parameter = [
        {"name": "return", "resource": {"resourceType": "DiagnosticReport"}},
        {"name": "issues", "resource": outcome},
    ]
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(
        201,
        json={"resourceType": "Parameters", "parameter": parameter},
        headers={"Location": LOCATION, "ETag": 'W/"3"', **named},
    )


def test_a_registration_has_id_version_and_location() -> None:
    registered = Registered.of(response(issue("Created.")))

    assert (registered.id, registered.version, registered.location) == ("d-1", 3, LOCATION)


def test_the_first_issue_is_no_remark() -> None:
    assert Registered.of(response(issue("Created."))).remarks == ()


def test_remarks_are_in_the_order_of_the_response() -> None:
    registered = Registered.of(
        response(issue("Created."), issue("One.", "warning"), issue("Two."))
    )

    assert [(each.text, each.severity) for each in registered.remarks] == [
        ("One.", "warning"),
        ("Two.", "information"),
    ]


@pytest.mark.parametrize(
    ("headers", "marks"),
    [
        ({}, (False, False)),
        ({"Idempotent_Replayed": "true"}, (True, False)),
        ({"Idempotent_Replayed": "false"}, (False, False)),
        ({"Idempotent_Replayed": "true", "Idempotent_Content": "different"}, (True, True)),
        ({"Idempotent_Replayed": "true", "Idempotent_Content": "same"}, (True, False)),
    ],
)
def test_headers_mark_what_was_there_before(
    headers: dict[str, str], marks: tuple[bool, bool]
) -> None:
    registered = Registered.of(response(issue("Created."), **headers))

    assert (registered.is_replayed, registered.is_different) == marks


def test_the_body_is_at_hand_whole() -> None:
    registered: Any = Registered.of(response(issue("Created.")))

    assert [each["name"] for each in registered.body["parameter"]] == ["return", "issues"]


@pytest.mark.parametrize(
    ("tag", "version"),
    [('W/"12"', 12), ('"12"', 0), ('W/"a"', 0), ("", 0), ('W/"1"x', 0), ('W/""', 0)],
)
def test_the_version_is_that_of_the_tag(tag: str, version: int) -> None:
    assert version_of(httpx.Response(200, headers={"ETag": tag})) == version


def test_without_a_tag_there_is_no_version() -> None:
    assert Stored.of(httpx.Response(200, json={"id": "1"})) == Stored({"id": "1"}, 0)


@pytest.mark.parametrize(
    "base", ["https://x.example", "https://x.example/r4/fhir", "https://r4/r4"]
)
def test_the_id_is_found_below_any_address(base: str) -> None:
    location = f"{base}/fhir/r4/DiagnosticReport/d-1/_history/3"

    assert Registered.of(response(issue("Created."), Location=location)).id == "d-1"
