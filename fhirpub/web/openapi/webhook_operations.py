"""The webhook operations in OpenAPI."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fhirpub.auth.scopes import WEBHOOKS
from fhirpub.web.handlers import webhook_deliveries
from fhirpub.web.handlers import webhook_endpoints as webhooks
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.openapi.operation import Operation, Success
from fhirpub.web.openapi.operations import NOT_MODIFIED

_READ, _WRITE = WEBHOOKS


def _operation(
    name: str, summary: str, success: Success, *refusals: int, status: int = 200, **more: Any
) -> Operation:
    return Operation(
        name=name,
        summary=summary,
        successes={status: success},
        refusals=(403, 406, *refusals),
        blanks=("id", "event_id"),
        tag="Webhooks",
        **{"scope": _WRITE, **more},
    )


def _describe(schema: str, *headers: str) -> Success:
    return Success(text="What there is now.", form="json", schema=schema, headers=headers)


WEBHOOK_OPERATIONS: dict[tuple[type[BaseHandler], str], Operation] = {
    (webhooks.EndpointsHandler, "GET"): _operation(
        "listEndpoints", "List the endpoints, oldest first", _describe("EndpointList"), scope=_READ
    ),
    (webhooks.AddEndpointHandler, "POST"): _operation(
        "addEndpoint",
        "Add an endpoint",
        replace(_describe("DisclosedEndpoint", "ETag", "Location"), id_at="/id"),
        422,
        text="Its secret and its token are shown this once.",
        status=201,
        body="newEndpoint",
    ),
    (webhooks.EndpointHandler, "GET"): Operation(
        name="readEndpoint",
        summary="Read an endpoint",
        successes={
            200: Success(
                text="The endpoint.", form="json", schema="WebhookEndpoint", headers=("ETag",)
            ),
            304: NOT_MODIFIED,
        },
        refusals=(403, 404, 406),
        parameters=("If-None-Match",),
        scope=_READ,
        tag="Webhooks",
    ),
    (webhooks.ChangeEndpointHandler, "PATCH"): _operation(
        "changeEndpoint",
        "Change fields of an endpoint",
        _describe("WebhookEndpoint", "ETag"),
        404,
        412,
        body="changedEndpoint",
        parameters=("If-Match",),
    ),
    (webhooks.DeleteEndpointHandler, "DELETE"): Operation(
        name="removeEndpoint",
        summary="Remove an endpoint",
        successes={204: Success(text="It is gone.", form="empty")},
        refusals=(403, 404, 406, 412),
        parameters=("If-Match",),
        scope=_WRITE,
        tag="Webhooks",
    ),
    (webhooks.PauseHandler, "POST"): _operation(
        "pauseEndpoint",
        "Hold what is to be delivered",
        _describe("WebhookEndpoint", "ETag"),
        404,
        422,
    ),
    (webhooks.EnableHandler, "POST"): _operation(
        "enableEndpoint",
        "Go on delivering",
        _describe("WebhookEndpoint", "ETag"),
        404,
        422,
    ),
    (webhooks.VerifyHandler, "POST"): _operation(
        "verifyEndpoint",
        "Send a challenge and report the result",
        _describe("Trial"),
        404,
        422,
    ),
    (webhooks.TestHandler, "POST"): _operation(
        "testEndpoint",
        "Send a test event and report the result",
        _describe("Trial"),
        404,
        422,
        body="test",
        text="An endpoint that has not passed its challenge gets the challenge instead.",
    ),
    (webhooks.RotateSecretHandler, "POST"): _operation(
        "rotateSecret",
        "Let a new secret sign, with the others for a while",
        _describe("DisclosedEndpoint", "ETag"),
        404,
        422,
        body="newSecret",
    ),
    (webhooks.RotateTokenHandler, "POST"): _operation(
        "rotateToken",
        "Send another token from now on",
        _describe("DisclosedEndpoint", "ETag"),
        404,
        body="newToken",
    ),
    (webhook_deliveries.DeliveriesHandler, "GET"): _operation(
        "listDeliveries",
        "List what was sent, newest first, with every attempt",
        _describe("DeliveryList"),
        404,
        scope=_READ,
        parameters=("status", "event_type", "resource", "since", "until", "limit", "before"),
    ),
    (webhook_deliveries.DeliveryHandler, "GET"): _operation(
        "readDelivery",
        "Read all of a delivery: what was sent, and how each answer began",
        _describe("Delivery"),
        404,
        scope=_READ,
    ),
    (webhook_deliveries.EventsHandler, "GET"): _operation(
        "listEvents",
        "List events in their sequence, to find what is missing, or wait for the next",
        _describe("EventList"),
        404,
        scope=_READ,
        parameters=("after_seq", "since", "limit", "wait"),
    ),
    (webhook_deliveries.ReplayHandler, "POST"): _operation(
        "replay",
        "Have a page of deliveries sent again",
        _describe("Replayed"),
        404,
        422,
        text="`next` in the answer is the body for those behind it.",
        body="replay",
    ),
    (webhook_deliveries.StatsHandler, "GET"): _operation(
        "readStats", "Read how an endpoint does", _describe("Stats"), 404, scope=_READ
    ),
    (webhooks.EventTypesHandler, "GET"): _operation(
        "listEventTypes",
        "List the events, with the schemas of their bodies",
        _describe("EventTypeList"),
        scope=_READ,
    ),
}
