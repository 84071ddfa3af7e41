"""The whole document: each operation, what depends on settings, and its tag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fhirpub.config.audit import AuditConfig
from fhirpub.config.settings import Config, FhirConfig, ServerConfig
from fhirpub.fhir.strict_json import loads
from fhirpub.testing.service import RunningService
from fhirpub.web.openapi.document import document as made
from fhirpub.web.openapi.document import openapi
from tests.openapi_references import followed
from tests.unit.web.openapi import described


def test_each_operation_is_described_as_it_is_wanted(document: Any) -> None:
    assert [*described.operations(document)] == described.wanted("operations")


def test_each_reference_leads_somewhere(document: Any) -> None:
    assert followed(document)


def test_the_ids_of_operations_differ(document: Any) -> None:
    ids = [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    ]

    assert len(ids) == len({*ids})


def test_each_tag_of_an_operation_is_listed(document: Any) -> None:
    used = {
        tag
        for methods in document["paths"].values()
        for operation in methods.values()
        for tag in operation["tags"]
    }

    assert {tag["name"] for tag in document["tags"]} == used


def test_the_document_names_the_address_of_the_service(
    service: RunningService, document: Any
) -> None:
    flow = document["components"]["securitySchemes"]["oauth2"]["flows"]["clientCredentials"]

    assert document["servers"] == [{"url": service.base_url}]
    assert flow["tokenUrl"] == f"{service.base_url}/oauth/token"


def test_the_blanks_of_a_path_are_needed_and_have_their_patterns(document: Any) -> None:
    operation = document["paths"]["/fhir/r4/DiagnosticReport/{id}/_history/{version}"]["get"]

    patterns = {
        one["name"]: (one["schema"]["pattern"], one["required"])
        for one in operation["parameters"]
        if one.get("in") == "path"
    }
    assert patterns == {
        "id": ("^[A-Za-z0-9.-]{1,64}$", True),
        "version": ("^[0-9]{1,16}$", True),
    }


def test_the_tag_is_weak_and_follows_from_the_document(service: RunningService) -> None:
    tag, body = openapi(service.services)

    assert (tag, body) == openapi(service.services)
    assert tag.startswith('W/"')
    assert len(tag) == len('W/""') + 16
    assert loads(body)["openapi"] == "3.1.0"


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The document of a service without a trail, whose statement is public."""
    config = Config(
        audit=AuditConfig(enabled=False),
        fhir=FhirConfig(metadata_public=True),
        server=ServerConfig(base_url="https://fhir.example.org"),
    )
    with RunningService(tmp_path_factory.mktemp("other"), config=config) as service:
        yield made(service.services)


def test_without_a_trail_nothing_of_it_is_described(other: Any) -> None:
    flow = other["components"]["securitySchemes"]["oauth2"]["flows"]["clientCredentials"]

    assert not [path for path in other["paths"] if "AuditEvent" in path]
    assert not [scope for scope in flow["scopes"] if "AuditEvent" in scope]
    assert "AuditEvent" not in other["components"]["schemas"]


def test_what_is_public_needs_no_token(other: Any) -> None:
    operation = other["paths"]["/fhir/r4/metadata"]["get"]

    assert operation["security"] == []
    assert "401" not in operation["responses"]
    assert other["servers"] == [{"url": "https://fhir.example.org"}]


def test_a_token_is_got_by_oauth_or_sent_as_it_is(document: Any) -> None:
    schemes = document["components"]["securitySchemes"].values()
    found = {one["type"]: one for one in schemes}

    assert found.keys() == {"oauth2", "http"}
    assert found["http"]["scheme"] == "bearer"
    scopes = found["oauth2"]["flows"]["clientCredentials"]["scopes"]
    assert scopes["system/DiagnosticReport.u"] == "update a DiagnosticReport"
    assert {"webhooks.read", "webhooks.write", "system/AuditEvent.s"} <= scopes.keys()
    assert "system/Observation.u" not in scopes
    assert "system/Observation.r" in scopes
