"""Parameters, headers, refusals and scopes that operations share."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.openapi.parameters import tries
from tests.bodies import register_body
from tests.unit.web.openapi import described

REPORT = "DiagnosticReport"


def test_what_operations_share_is_described_as_it_is_wanted(document: Any) -> None:
    assert [*described.parameters(document)] == described.wanted("parameters")


def test_each_shared_parameter_and_header_has_its_words(document: Any) -> None:
    parts = document["components"]

    assert all(one["description"] for one in parts["parameters"].values())
    assert all(one["description"] for one in parts["headers"].values())


def named(document: Any, path: str, method: str = "get") -> dict[str, Any]:
    """Return the schema of each parameter of an operation."""
    shared = document["components"]["parameters"]
    given = document["paths"][path][method]["parameters"]
    found = [shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in given]
    return {one["name"]: one["schema"] for one in found}


def test_a_page_of_deliveries_has_its_limits(document: Any) -> None:
    found = named(document, "/webhooks/v1/endpoints/{id}/deliveries")

    assert found["limit"] == {"type": "integer", "minimum": 0, "maximum": 100, "default": 20}
    assert found["since"] == found["until"] == {"type": "string", "format": "date-time"}
    assert set(found["status"]["enum"]) == {
        *("pending", "delivering", "retrying", "delivered", "dead", "held", "cancelled")
    }


def test_a_client_may_wait_for_events(document: Any) -> None:
    found = named(document, "/webhooks/v1/endpoints/{id}/events")

    assert found["wait"] == {"type": "integer", "minimum": 0, "maximum": 30, "default": 0}
    assert found["after_seq"]["maximum"] == 10**15


def test_a_search_has_the_parameters_of_its_page(document: Any) -> None:
    reports = named(document, "/fhir/r4/DiagnosticReport")
    events = named(document, "/fhir/r4/AuditEvent")

    page = {"_count", "_cursor", "_elements", "_include", "_revinclude", "_sort", "_summary"}
    assert page | {"_total", "status", "identifier"} <= reports.keys()
    assert reports["_total"]["enum"] == ["none", "estimate", "accurate"]
    assert {"_count", "_cursor", "_elements", "_sort", "_summary", "_total"} <= events.keys()
    assert events["_total"]["enum"] == ["none"]


def test_what_can_be_tried_is_the_one_value_that_is_not_refused(
    service: RunningService, lab: Integrator
) -> None:
    tried = {one["name"]: one["schema"]["enum"] for one in tries(service.services, REPORT)}

    assert tried.keys() == {"mode", "profile"}
    for name, values in tried.items():
        (value,) = values
        for sent, wanted in ((value, "information"), (f"{value}x", "error")):
            path = f"/fhir/r4/{REPORT}/$validate?{urlencode({name: sent})}"
            issues = lab.request("POST", path, register_body("R-1")).issues
            assert issues[-1]["severity"] == wanted, (name, sent)
