"""Events as requests that a receiver gets."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fhirpub.fhir.strict_json import loads
from fhirpub.web.openapi.webhook_events import event_schemas
from tests.openapi_references import followed

SCHEMAS = Path(__file__).parents[4] / "schemas" / "events"
"""Those that are shared have names without a dot."""

HEADERS = [
    *("webhook-id", "webhook-timestamp", "webhook-signature", "X-Webhook-Signature"),
    *("X-Webhook-Event", "X-Webhook-Attempt", "X-Webhook-Sequence"),
]


def test_each_type_of_event_is_a_request(document: Any) -> None:
    assert {*document["webhooks"]} == {
        *(f"diagnostic_report.{what}" for what in ("created", "updated", "erased")),
        *("endpoint.disabled", "endpoint.failing", "endpoint.test", "endpoint.verification"),
        "message.exhausted",
    }


def test_a_receiver_gets_json_with_the_headers_of_webhooks(document: Any) -> None:
    for name, methods in document["webhooks"].items():
        request = methods["post"]
        headers = [one["name"] for one in request["parameters"]]
        schema = request["requestBody"]["content"]["application/json"]["schema"]["$ref"]

        words = "".join(part.title() for part in name.replace(".", "_").split("_"))
        assert headers == HEADERS, name
        assert all(one["in"] == "header" and one["required"] for one in request["parameters"])
        assert request["requestBody"]["required"] is True
        assert request["operationId"] == f"receive{words}"
        assert schema.startswith("#/components/schemas/")
        assert request["tags"] == ["Webhook events"]


def test_the_answers_of_a_receiver_are_described(document: Any) -> None:
    answers = {tuple(methods["post"]["responses"]) for methods in document["webhooks"].values()}

    assert answers == {("2XX", "410", "default")}


def test_a_client_takes_members_that_it_does_not_know(document: Any) -> None:
    schemas = document["components"]["schemas"]

    for name in ("DiagnosticReportCreatedEvent", "EndpointTestEvent", "EnvelopeEvent"):
        assert schemas[name].get("additionalProperties") is not False


def test_each_reference_of_a_schema_leads_to_another(document: Any) -> None:
    schemas = document["components"]["schemas"]
    inner = {name for name in schemas if name.startswith("CompositionEvent.")}

    assert followed(document)
    assert {name.rpartition(".")[2] for name in inner} == {
        *("identifier", "author", "Coding", "CodeableConcept", "Period", "Reference")
    }


def test_a_schema_demands_what_the_shared_one_demands_too(document: Any) -> None:
    schemas = document["components"]["schemas"]
    shared, own = schemas["EnvelopeEvent"], schemas["DiagnosticReportCreatedEvent"]

    assert {*shared["required"]} <= {*own["required"]}
    assert shared["properties"].keys() <= own["properties"].keys()


def test_references_from_one_schema_to_another_lead_into_the_document() -> None:
    found = {path: loads(path.read_bytes()) for path in sorted(SCHEMAS.glob("*.json"))}
    shared = {path: schema for path, schema in found.items() if path.stem.count(".") == 1}
    own = [schema for path, schema in found.items() if path not in shared]
    known: Any = SimpleNamespace(
        shared=list(shared.values()), all=[SimpleNamespace(schema=schema) for schema in own]
    )

    described = event_schemas(known)

    assert len(shared) == 3
    leads = followed({"components": {"schemas": {"Anything": {}, **described}}})
    assert "#/components/schemas/CompositionEvent.identifier" in leads
    assert not [reference for reference in leads if "urn:" in reference]
