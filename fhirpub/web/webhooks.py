"""/webhooks/v1: a tenant's own endpoints, and what was sent to them (D-432 to D-440)."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, ClassVar
from urllib.parse import urlencode

from fhirpub.errors import InvalidContent, InvalidSearch, Issue, NoSuchRecord
from fhirpub.fhir.strict_json import JsonObject, dumps, loads
from fhirpub.fhir.times import moment_of
from fhirpub.interactions.update import check_precondition
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.web.base import BaseHandler
from fhirpub.web.body_handler import BodyHandler
from fhirpub.web.media import check_json
from fhirpub.webhooks import presenting
from fhirpub.webhooks.delivery_log import SHOWN_STATES, DeliveryLog, Wanted
from fhirpub.webhooks.endpoints import Administration, Check, Disclosed
from fhirpub.webhooks.registration import unknown_fields

BASE = "/webhooks/v1"
_READ, _WRITE = "webhooks.read", "webhooks.write"
_MOST_BYTES = 65_536
_MOST_IDS = 1_000
_USUAL_GRACE = 86_400
_WHOLE = re.compile("[0-9]{1,15}")
_FIELDS_OF_REPLAY = ("event_ids", "from_seq", "to_seq", "since", "until", "status")
_REPLAYED = ("dead", "delivered")


class WebhooksHandler(BaseHandler):
    """What all of these share: their scopes, and JSON that is not FHIR's."""

    requires_token = True

    @property
    def administration(self) -> Administration:
        """What adds, changes and tries endpoints."""
        return self.services.endpoints

    @property
    def log(self) -> DeliveryLog:
        """What was sent."""
        return self.services.deliveries

    @property
    def tenant_id(self) -> str:
        """Whose endpoints these are."""
        return self.caller.tenant.id

    def is_permitted(self) -> bool:
        """Demand a scope for reading, and another for everything else (D-433)."""
        reading = self.request.method in ("GET", "HEAD")
        return (_READ if reading else _WRITE) in self.caller.scopes

    def check_format(self) -> None:
        """Answer in plain JSON, to whoever accepts any JSON."""
        super().check_format()
        self.answer_type = "application/json"

    async def endpoint(self, endpoint_id: str) -> Endpoint:
        """Return an endpoint of the caller's tenant."""
        return await self.administration.endpoint(self.tenant_id, endpoint_id)

    @property
    def if_match(self) -> Check:
        """The caller's precondition, if there is one."""
        named = ",".join(self.request.headers.get_list("If-Match"))
        return lambda revision: check_precondition(named, revision)

    def tell(self, value: Any, *, status: int = 200) -> None:
        """Write JSON."""
        self._send(dumps(value), status)

    def tell_endpoint(self, endpoint: Endpoint) -> None:
        """Write an endpoint with its tag."""
        self.headers["ETag"] = _tag(endpoint)
        self.tell(presenting.endpoint_record(endpoint))

    def disclose(self, disclosed: Disclosed, *, status: int = 200) -> None:
        """Write an endpoint with what is shown this once, and nothing of it into caches."""
        made = {"signing_secret": disclosed.signing_secret, "bearer_token": disclosed.token}
        record = presenting.endpoint_record(disclosed.endpoint)
        self.headers["ETag"] = _tag(disclosed.endpoint)
        self.headers["Content-Type"] = self.answer_type
        self.headers["Cache-Control"] = "no-store"
        self.status = status
        self.finish(dumps({**record, **{name: text for name, text in made.items() if text}}))

    def whole_number(self, name: str, *, usual: int, most: int) -> int:
        """Return a parameter of the query. Raises InvalidSearch."""
        text = self.request.parameter(name)
        if not text:
            return usual
        if not _WHOLE.fullmatch(text) or int(text) > most:
            raise InvalidSearch.because(f"must be a whole number, at most {most}", expression=name)
        return int(text)

    def page_address(self, **parameters: int | str) -> str:
        """Return where the next page is: the same query with other places."""
        query = urlencode({**dict(self.request.parameters), **parameters})
        return f"{self.services.config.base_url}{self.request.path}?{query}"


class WebhooksBodyHandler(WebhooksHandler, BodyHandler):
    """A handler that takes a JSON object, or no body at all."""

    def check_content_type(self) -> None:
        """Refuse a body that is not JSON (415)."""
        headers = self.request.headers
        if self.request.has_body() and headers.get("Content-Length") != "0":
            check_json(headers.get("Content-Type", ""), headers.get("Content-Encoding", ""))

    def most_bytes(self) -> int:
        """Return how large a body may be."""
        return _MOST_BYTES

    def fields(self) -> JsonObject:
        """Return the body as an object; no body is an empty one. Raises InvalidContent."""
        body = self.take_body()
        fields = loads(body) if body else {}
        if not isinstance(fields, dict):
            raise InvalidContent.because("the body must be a JSON object")
        return fields


class EndpointsHandler(WebhooksHandler):
    """GET /endpoints."""

    async def get(self) -> None:
        """List the endpoints, oldest first."""
        endpoints = await self.administration.endpoints(self.tenant_id)
        self.tell({"endpoints": [presenting.endpoint_record(each) for each in endpoints]})


class AddEndpointHandler(WebhooksBodyHandler):
    """POST /endpoints."""

    async def post(self) -> None:
        """Add an endpoint; its secret and its token are shown this once."""
        added = await self.administration.add(self.tenant_id, self.fields())
        base = self.services.config.base_url
        self.headers["Location"] = f"{base}{BASE}/endpoints/{added.endpoint.id}"
        self.disclose(added, status=HTTPStatus.CREATED)


class EndpointHandler(WebhooksHandler):
    """GET and DELETE /endpoints/{id}."""

    async def get(self, endpoint_id: str) -> None:
        """Show an endpoint."""
        endpoint = await self.endpoint(endpoint_id)
        if self.is_known(str(endpoint.revision)):
            self.headers["ETag"] = _tag(endpoint)
            self.not_modified()
            return
        self.tell_endpoint(endpoint)

    async def delete(self, endpoint_id: str) -> None:
        """Remove an endpoint."""
        await self.administration.delete(self.tenant_id, endpoint_id, check=self.if_match)
        self.answer_empty()


class ChangeEndpointHandler(WebhooksBodyHandler):
    """PATCH /endpoints/{id}."""

    async def patch(self, endpoint_id: str) -> None:
        """Change some fields of an endpoint."""
        changed = await self.administration.change(
            self.tenant_id, endpoint_id, self.fields(), check=self.if_match
        )
        self.tell_endpoint(changed)


class PauseHandler(WebhooksHandler):
    """POST /endpoints/{id}/pause."""

    async def post(self, endpoint_id: str) -> None:
        """Hold what is to be delivered."""
        self.tell_endpoint(await self.administration.pause(self.tenant_id, endpoint_id))


class EnableHandler(WebhooksHandler):
    """POST /endpoints/{id}/enable."""

    async def post(self, endpoint_id: str) -> None:
        """Go on."""
        self.tell_endpoint(await self.administration.enable(self.tenant_id, endpoint_id))


class VerifyHandler(WebhooksHandler):
    """POST /endpoints/{id}/verify."""

    async def post(self, endpoint_id: str) -> None:
        """Send a challenge and tell what came of it."""
        trial = await self.administration.verify(self.tenant_id, endpoint_id)
        self.tell(presenting.trial_record(trial))


class TestHandler(WebhooksHandler):
    """POST /endpoints/{id}/test."""

    async def post(self, endpoint_id: str) -> None:
        """Send a test event and tell what came of it."""
        trial = await self.administration.test(self.tenant_id, endpoint_id)
        self.tell(presenting.trial_record(trial))


class RotateSecretHandler(WebhooksBodyHandler):
    """POST /endpoints/{id}/secret:rotate."""

    async def post(self, endpoint_id: str) -> None:
        """Let a new secret sign, with the others for a while."""
        fields = self.fields()
        unknown_fields(fields, ("grace_seconds", "signing_secret"))
        rotated = await self.administration.rotate_secret(
            self.tenant_id,
            endpoint_id,
            grace_seconds=fields.get("grace_seconds", _USUAL_GRACE),
            secret=fields.get("signing_secret", ""),
        )
        self.disclose(rotated)


class RotateTokenHandler(WebhooksBodyHandler):
    """POST /endpoints/{id}/token:rotate."""

    async def post(self, endpoint_id: str) -> None:
        """Send another token from now on."""
        fields = self.fields()
        unknown_fields(fields, ("bearer_token",))
        token = fields.get("bearer_token", "")
        self.disclose(
            await self.administration.rotate_token(self.tenant_id, endpoint_id, token=token)
        )


class DeliveriesHandler(WebhooksHandler):
    """GET /endpoints/{id}/deliveries."""

    usual: ClassVar[int] = 20
    most: ClassVar[int] = 100

    async def get(self, endpoint_id: str) -> None:
        """List what was sent, newest first, with every attempt."""
        endpoint = await self.endpoint(endpoint_id)
        status = self.request.parameter("status")
        state = next((each for each in SHOWN_STATES if each == status), None)
        if status and state is None:
            raise InvalidSearch.because(
                f"must be one of {', '.join(SHOWN_STATES)}", expression="status"
            )
        wanted = Wanted(
            event_type=self.request.parameter("event_type") or None,
            since=self._moment("since"),
            until=self._moment("until"),
        )
        page = await self.log.latest(
            endpoint,
            wanted,
            state=state,
            before=self.whole_number("before", usual=0, most=10**15) or None,
            limit=self.whole_number("limit", usual=self.usual, most=self.most) or self.usual,
        )
        now = self.services.clock()
        following = page.following
        self.tell(
            {
                "deliveries": [
                    presenting.delivery_record(each, endpoint, now=now) for each in page.deliveries
                ],
                "next": None if following is None else self.page_address(before=following),
            }
        )

    def _moment(self, name: str) -> int | None:
        text = self.request.parameter(name)
        moment = moment_of(text)
        if text and moment is None:
            raise InvalidSearch.because(_TIME_RULE, expression=name)
        return moment


class DeliveryHandler(WebhooksHandler):
    """GET /endpoints/{id}/deliveries/{event_id}."""

    async def get(self, endpoint_id: str, event_id: str) -> None:
        """Show all of a delivery: what was sent, and each attempt with how its answer begins."""
        endpoint = await self.endpoint(endpoint_id)
        delivery = await self.log.one(endpoint, event_id)
        if delivery is None:
            raise NoSuchRecord("delivery", event_id)
        now = self.services.clock()
        self.tell(presenting.whole_delivery_record(delivery, endpoint, now=now))


class EventsHandler(WebhooksHandler):
    """GET /endpoints/{id}/events: for reconciliation."""

    async def get(self, endpoint_id: str) -> None:
        """Return the events behind a place in the sequence, in order."""
        endpoint = await self.endpoint(endpoint_id)
        after = self.whole_number("after_seq", usual=0, most=10**15)
        limit = self.whole_number("limit", usual=20, most=100) or 20
        page = await self.log.events(endpoint, after=after, limit=limit)
        now, following = self.services.clock(), page.following
        self.tell(
            {
                "events": [
                    presenting.event_record(each, endpoint, now=now) for each in page.deliveries
                ],
                "last_sequence": await self.log.last_sequence(endpoint),
                "next": None if following is None else self.page_address(after_seq=following),
            }
        )


class ReplayHandler(WebhooksBodyHandler):
    """POST /endpoints/{id}/replay."""

    async def post(self, endpoint_id: str) -> None:
        """Have a page of deliveries sent again; ``next`` is the body for those behind it."""
        endpoint = await self.endpoint(endpoint_id)
        fields = self.fields()
        replayed = await self.log.replay(endpoint, _wanted(fields))
        following = replayed.following
        self.tell(
            {
                "reopened": replayed.reopened,
                "state": endpoint.state,
                "next": None if following is None else {**fields, "from_seq": following},
            }
        )


class StatsHandler(WebhooksHandler):
    """GET /endpoints/{id}/stats."""

    async def get(self, endpoint_id: str) -> None:
        """Return how the endpoint does."""
        endpoint = await self.endpoint(endpoint_id)
        self.tell(presenting.stats_record(await self.log.stats(endpoint), endpoint))


class EventTypesHandler(WebhooksHandler):
    """GET /event-types."""

    def get(self) -> None:
        """List the events with the JSON Schemas of their bodies."""
        known = self.administration.event_types
        self.tell(
            {
                "event_types": [
                    {
                        "name": each.name,
                        "resource_type": each.resource or None,
                        "title": each.schema.get("title", ""),
                        "schema": each.schema or None,
                    }
                    for each in known.all
                ],
                "shared_schemas": known.shared,
            }
        )


# What is to be replayed.

_TIME_RULE = "must be a moment with its offset, such as 2026-11-21T10:00:00Z"


def _wanted(fields: JsonObject) -> Wanted:
    """Read which deliveries are to be sent again. Raises InvalidContent."""
    unknown_fields(fields, _FIELDS_OF_REPLAY)
    issues = [
        Issue("error", "value", rule, name)
        for name, value in fields.items()
        if (rule := _replay_problem(name, value))
    ]
    if not fields:
        issues = [Issue("error", "required", f"name one of {', '.join(_FIELDS_OF_REPLAY)}")]
    if issues:
        raise InvalidContent(issues)
    status = fields.get("status")
    ids = fields.get("event_ids")
    return Wanted(
        states=frozenset() if status is None else frozenset({status}),
        event_ids=None if ids is None else frozenset(ids),
        from_sequence=fields.get("from_seq"),
        to_sequence=fields.get("to_seq"),
        since=moment_of(fields.get("since", "")),
        until=moment_of(fields.get("until", "")),
    )


def _replay_problem(name: str, value: Any) -> str:
    if name == "event_ids":
        strings = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return "" if strings and 1 <= len(value) <= _MOST_IDS else f"must be 1 to {_MOST_IDS} ids"
    if name == "status":
        return "" if value in _REPLAYED else f"must be one of {', '.join(_REPLAYED)}"
    if name in ("since", "until"):
        good = isinstance(value, str) and moment_of(value) is not None
        return "" if good else _TIME_RULE
    whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 10**15
    return "" if whole else "must be a whole number from 1"


def _tag(endpoint: Endpoint) -> str:
    return f'W/"{endpoint.revision}"'


def webhook_handlers() -> list[tuple[str, str, type[WebhooksHandler]]]:
    """Return every method and path under /webhooks, with its handler."""
    all_, one = f"{BASE}/endpoints", f"{BASE}/endpoints/{{}}"
    return [
        ("GET", all_, EndpointsHandler),
        ("POST", all_, AddEndpointHandler),
        ("GET", one, EndpointHandler),
        ("PATCH", one, ChangeEndpointHandler),
        ("DELETE", one, EndpointHandler),
        ("POST", f"{one}/pause", PauseHandler),
        ("POST", f"{one}/enable", EnableHandler),
        ("POST", f"{one}/verify", VerifyHandler),
        ("POST", f"{one}/test", TestHandler),
        ("POST", f"{one}/secret:rotate", RotateSecretHandler),
        ("POST", f"{one}/token:rotate", RotateTokenHandler),
        ("GET", f"{one}/deliveries", DeliveriesHandler),
        ("GET", f"{one}/deliveries/{{}}", DeliveryHandler),
        ("GET", f"{one}/events", EventsHandler),
        ("POST", f"{one}/replay", ReplayHandler),
        ("GET", f"{one}/stats", StatsHandler),
        ("GET", f"{BASE}/event-types", EventTypesHandler),
    ]
