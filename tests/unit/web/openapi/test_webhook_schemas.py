"""The schemas of webhooks hold for what is accepted and answered."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from fhirpub.testing.contracts.webhooks.records import a_delivery
from fhirpub.testing.service import Integrator
from fhirpub.web.openapi.webhook_schemas import WEBHOOK_BODIES, WEBHOOK_SCHEMAS
from fhirpub.webhooks.management.validation import MAX_DESCRIPTION_LENGTH, MAX_TOKEN_LENGTH
from tests.unit.web.handlers.asking import running
from tests.unit.web.openapi import described

BASE = "/webhooks/v1/endpoints"
KIND = {"Content-Type": "application/json"}
SECRET = "whsec_" + "A" * 43 + "="


def test_the_schemas_of_webhooks_are_described_as_they_are_wanted(document: Any) -> None:
    found = [line for line in described.schemas(document) if line.split(":")[0] in WEBHOOK_SCHEMAS]
    wanted = described.wanted("schemas")

    assert found == [line for line in wanted if line.split(":")[0] in WEBHOOK_SCHEMAS]
    assert len(found) == len(WEBHOOK_SCHEMAS)


def accepts(name: str, body: Any) -> bool:
    return bool(jsonschema_rs.validator_for(WEBHOOK_BODIES[name]).is_valid(body))


@pytest.mark.parametrize(
    ("fields", "is_good"),
    [
        ({}, True),
        ({"bearer_token": "t" * MAX_TOKEN_LENGTH}, True),
        ({"bearer_token": "t" * (MAX_TOKEN_LENGTH + 1)}, False),
        ({"bearer_token": ""}, False),
        ({"signing_secret": SECRET}, True),
        ({"description": "d" * MAX_DESCRIPTION_LENGTH}, True),
        ({"description": "d" * (MAX_DESCRIPTION_LENGTH + 1)}, False),
        ({"event_types": []}, False),
        ({"event_types": ["*"] * 51}, False),
        ({"ordering": "some"}, False),
        ({"payload": "full"}, False),
        ({"state": "active"}, False),
    ],
)
def test_an_endpoint_is_added_exactly_if_its_schema_allows_it(
    lab: Integrator, fields: dict[str, Any], *, is_good: bool
) -> None:
    body = {"url": "https://93.184.215.14/hook", **fields}

    answer = lab.request("POST", BASE, body, KIND)

    assert (accepts("newEndpoint", body), answer.status == 201) == (is_good, is_good)


@pytest.mark.parametrize(
    ("body", "is_good"),
    [
        ({"status": "dead"}, True),
        ({"status": "delivered"}, True),
        ({"status": "held"}, False),
        ({"from_seq": 1, "to_seq": 10**15}, True),
        ({"from_seq": 0}, False),
        ({"to_seq": 10**15 + 1}, False),
        ({"event_ids": ["e"] * 1_000}, True),
        ({"event_ids": ["e"] * 1_001}, False),
        ({"event_ids": []}, False),
        ({}, False),
        ({"state": "dead"}, False),
    ],
)
def test_a_replay_is_accepted_exactly_if_its_schema_allows_it(
    lab: Integrator, body: dict[str, Any], *, is_good: bool
) -> None:
    made = lab.request("POST", BASE, {"url": "https://93.184.215.14/hook"}, KIND).json

    answer = lab.request("POST", f"{BASE}/{made['id']}/replay", body, KIND)

    assert (accepts("replay", body), answer.status == 200) == (is_good, is_good)


def test_what_is_answered_has_the_members_that_its_schema_requires(lab: Integrator) -> None:
    made = lab.request("POST", BASE, {"url": "https://93.184.215.14/hook"}, KIND).json
    one = f"{BASE}/{made['id']}"
    sent = a_delivery(made["id"], 1, tenant=lab.tenant.id, body=b"{}")
    running(lab).call(running(lab).services.store.append([sent]))
    answers = {
        "DisclosedEndpoint": made,
        "WebhookEndpoint": lab.get(one).json,
        "EndpointList": lab.get(BASE).json,
        "DeliveryList": lab.get(f"{one}/deliveries").json,
        "Delivery": lab.get(f"{one}/deliveries/{sent.event_id}").json,
        "EventList": lab.get(f"{one}/events").json,
        "Stats": lab.get(f"{one}/stats").json,
        "EventTypeList": lab.get("/webhooks/v1/event-types").json,
        "Replayed": lab.request("POST", f"{one}/replay", {"status": "dead"}, KIND).json,
    }

    for name, answer in answers.items():
        schema = WEBHOOK_SCHEMAS[name]
        assert {*schema["required"]} <= answer.keys() <= {*schema["properties"]}, name
    (shown,) = answers["DeliveryList"]["deliveries"]
    items = WEBHOOK_SCHEMAS["DeliveryList"]["properties"]["deliveries"]["items"]
    assert {*items["required"]} == shown.keys()
