"""/webhooks/v1: a tenant's own endpoints, and what was sent to them (D-208 to D-216)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any

from fhirpub.audit.record import name_of
from fhirpub.auth.scopes import WEBHOOKS
from fhirpub.errors import InvalidContent
from fhirpub.fhir.strict_json import JsonObject, dumps, loads
from fhirpub.problems import ContentProblem
from fhirpub.storage.webhook_contract import Delivery, Endpoint
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.message.content_negotiation import NotAcceptable, check_json, is_xml
from fhirpub.web.message.preconditions import check_if_match
from fhirpub.webhooks.management import serializers as presenting
from fhirpub.webhooks.management.delivery_log import DeliveryLog
from fhirpub.webhooks.management.endpoints import Check, EndpointService, EndpointWithSecrets

BASE = "/webhooks/v1"
_READ, _WRITE = WEBHOOKS
_MAX_BYTES = 65_536


class WebhooksHandler(BaseHandler):
    """What all of these share: their scopes, and JSON that is not FHIR's."""

    requires_token = True

    @property
    def administration(self) -> EndpointService:
        """What adds, changes and tries endpoints."""
        return self.services.endpoints

    @property
    def log(self) -> DeliveryLog:
        """What was sent."""
        return self.services.deliveries

    @property
    def tenant_id(self) -> str:
        """The tenant that owns the endpoints."""
        return self.caller.tenant.id

    def is_permitted(self) -> bool:
        """Demand a scope for reading, and another for everything else."""
        return self.needed_scope() in self.caller.scopes

    def needed_scope(self) -> str:
        """Return the scope for reading, or the one for everything else."""
        return _READ if self.request.method in ("GET", "HEAD") else _WRITE

    def check_format(self) -> None:
        """Respond in plain JSON to any client that accepts JSON; it is not FHIR and has no XML."""
        super().check_format()
        if is_xml(self.response_type):
            raise NotAcceptable("spoken here is application/json")
        self.response_type = "application/json"

    async def endpoint(self, endpoint_id: str) -> Endpoint:
        """Return an endpoint of the caller's tenant."""
        return await self.administration.endpoint(self.tenant_id, endpoint_id)

    def note_events(self, endpoint: Endpoint, deliveries: Iterable[Delivery]) -> None:
        """Note that events of an endpoint are shown, and what they are about (D-453)."""
        about = dict.fromkeys(one.resource for one in deliveries if one.resource)
        self.note(name_of("Endpoint", endpoint.id), *about)

    @property
    def if_match(self) -> Check:
        """The caller's precondition, if there is one."""
        named = self.request.headers.get_list("If-Match")
        return lambda revision: check_if_match(named, revision)

    def respond_json(self, value: Any, *, status: int = 200) -> None:
        """Write JSON."""
        self.respond_serialized(dumps(value), status)

    def respond_with_endpoint(self, endpoint: Endpoint) -> None:
        """Write an endpoint with its tag."""
        self.headers["ETag"] = _tag(endpoint)
        self.respond_json(presenting.endpoint_record(endpoint))

    def respond_with_secrets(self, disclosed: EndpointWithSecrets, *, status: int = 200) -> None:
        """Write an endpoint with what is shown this once, and nothing of it into caches."""
        self.note(name_of("Endpoint", disclosed.endpoint.id))
        made = {"signing_secret": disclosed.signing_secret, "bearer_token": disclosed.token}
        record = presenting.endpoint_record(disclosed.endpoint)
        self.headers["ETag"] = _tag(disclosed.endpoint)
        self.headers["Content-Type"] = self.response_type
        self.headers["Cache-Control"] = "no-store"
        self.status = status
        self.finish(dumps({**record, **{name: text for name, text in made.items() if text}}))


class WebhooksBodyHandler(WebhooksHandler, BodyHandler):
    """A handler that takes a JSON object, or no body at all."""

    also_read = ("application/json",)

    def check_content_type(self) -> None:
        """Refuse a body that is not JSON (415)."""
        headers = self.request.headers
        if self.request.has_body() and headers.get("Content-Length") != "0":
            check_json(headers.get("Content-Type", ""))

    def max_bytes(self) -> int:
        """Return how large a body may be."""
        return _MAX_BYTES

    def fields(self) -> JsonObject:
        """Return the body as an object; no body is an empty one. Raises InvalidContent."""
        body = self.take_body()
        fields = loads(body) if body else {}
        if not isinstance(fields, dict):
            raise InvalidContent.because(
                "the body must be a JSON object", details=ContentProblem.BODY_UNEXPECTED
            )
        return fields


class EndpointsHandler(WebhooksHandler):
    """GET /endpoints."""

    action = "endpoint.read"

    async def get(self) -> None:
        """List the endpoints, oldest first."""
        endpoints = await self.administration.endpoints(self.tenant_id)
        self.respond_json(
            {"endpoints": [presenting.endpoint_record(endpoint) for endpoint in endpoints]}
        )


class AddEndpointHandler(WebhooksBodyHandler):
    """POST /endpoints."""

    action = "endpoint.create"
    is_announced = True

    async def post(self) -> None:
        """Add an endpoint; its secret and its token are shown this once."""
        added = await self.administration.add(self.tenant_id, self.fields())
        base = self.services.config.base_url
        self.headers["Location"] = f"{base}{BASE}/endpoints/{added.endpoint.id}"
        self.respond_with_secrets(added, status=HTTPStatus.CREATED)


class EndpointHandler(WebhooksHandler):
    """GET /endpoints/{id}."""

    action = "endpoint.read"

    async def get(self, endpoint_id: str) -> None:
        """Show an endpoint."""
        endpoint = await self.endpoint(endpoint_id)
        if self.client_has(str(endpoint.revision)):
            self.headers["ETag"] = _tag(endpoint)
            self.respond_not_modified()
            return
        self.respond_with_endpoint(endpoint)


class DeleteEndpointHandler(WebhooksHandler):
    """DELETE /endpoints/{id}."""

    action = "endpoint.delete"
    is_announced = True

    async def delete(self, endpoint_id: str) -> None:
        """Remove an endpoint."""
        await self.administration.delete(self.tenant_id, endpoint_id, check=self.if_match)
        self.respond_empty()


class ChangeEndpointHandler(WebhooksBodyHandler):
    """PATCH /endpoints/{id}."""

    action = "endpoint.update"
    is_announced = True

    async def patch(self, endpoint_id: str) -> None:
        """Change some fields of an endpoint."""
        changed = await self.administration.change(
            self.tenant_id, endpoint_id, self.fields(), check=self.if_match
        )
        self.respond_with_endpoint(changed)


class PauseHandler(WebhooksHandler):
    """POST /endpoints/{id}/pause."""

    action = "endpoint.pause"
    is_announced = True

    async def post(self, endpoint_id: str) -> None:
        """Hold what is to be delivered."""
        self.respond_with_endpoint(await self.administration.pause(self.tenant_id, endpoint_id))


class EnableHandler(WebhooksHandler):
    """POST /endpoints/{id}/enable."""

    action = "endpoint.enable"
    is_announced = True

    async def post(self, endpoint_id: str) -> None:
        """Go on."""
        self.respond_with_endpoint(await self.administration.enable(self.tenant_id, endpoint_id))


class VerifyHandler(WebhooksHandler):
    """POST /endpoints/{id}/verify."""

    action = "endpoint.verify"
    is_announced = True

    def admit(self) -> AbstractContextManager[None]:
        """Refuse a challenge while as many trials of the tenant run as may."""
        return self.administration.admit_trial(self.tenant_id)

    async def post(self, endpoint_id: str) -> None:
        """Send a challenge and return the result."""
        trial = await self.administration.verify(self.tenant_id, endpoint_id, admitted=True)
        self.respond_json(presenting.trial_record(trial))


class TestHandler(WebhooksBodyHandler):
    """POST /endpoints/{id}/test."""

    action = "endpoint.test"
    is_announced = True

    def admit(self) -> AbstractContextManager[None]:
        """Refuse a test while as many trials of the tenant run as may."""
        return self.administration.admit_trial(self.tenant_id)

    async def post(self, endpoint_id: str) -> None:
        """Send a test event, or a sample of another event, and return the result."""
        fields = self.fields()
        trial = await self.administration.test(self.tenant_id, endpoint_id, fields, admitted=True)
        self.respond_json(presenting.trial_record(trial))


class RotateSecretHandler(WebhooksBodyHandler):
    """POST /endpoints/{id}/secret:rotate."""

    action = "endpoint.secret.rotate"
    is_announced = True

    async def post(self, endpoint_id: str) -> None:
        """Let a new secret sign, with the others for a while."""
        fields, tenant_id = self.fields(), self.tenant_id
        self.respond_with_secrets(
            await self.administration.rotate_secret(tenant_id, endpoint_id, fields)
        )


class RotateTokenHandler(WebhooksBodyHandler):
    """POST /endpoints/{id}/token:rotate."""

    action = "endpoint.token.rotate"
    is_announced = True

    async def post(self, endpoint_id: str) -> None:
        """Send another token from now on."""
        fields, tenant_id = self.fields(), self.tenant_id
        self.respond_with_secrets(
            await self.administration.rotate_token(tenant_id, endpoint_id, fields)
        )


class EventTypesHandler(WebhooksHandler):
    """GET /event-types."""

    def get(self) -> None:
        """List the events with the JSON Schemas of their bodies."""
        known = self.administration.event_types
        self.respond_json(
            {
                "event_types": [
                    {
                        "name": event_type.name,
                        "resource_type": event_type.resource or None,
                        "title": event_type.schema.get("title", ""),
                        "schema": event_type.schema or None,
                    }
                    for event_type in known.all
                ],
                "shared_schemas": known.shared,
            }
        )


def _tag(endpoint: Endpoint) -> str:
    return f'W/"{endpoint.revision}"'
