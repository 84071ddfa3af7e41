"""Deliveries of a tenant's endpoints: the log, reconciliation, sending again (D-211 to D-216)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, ClassVar
from urllib.parse import urlencode

from fhirpub.errors import InvalidContent, InvalidSearch, Issue, NoSuchRecord
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.times import parse_instant
from fhirpub.problems import OperationProblem
from fhirpub.web.handlers.large_responses import with_memory_budget
from fhirpub.web.handlers.webhook_endpoints import WebhooksBodyHandler, WebhooksHandler
from fhirpub.web.message.request import Request
from fhirpub.webhooks.management import serializers as presenting
from fhirpub.webhooks.management.arrivals import MAX_WAIT_SECONDS
from fhirpub.webhooks.management.delivery_log import SHOWN_STATES, ShownState, Wanted
from fhirpub.webhooks.management.pull_endpoints import note_read
from fhirpub.webhooks.management.validation import refuse_unknown_fields, wrong

MAX_IDS = 1_000
MAX_PAGE_BYTES = 100
USUAL_PAGE = 20
HIGHEST_SEQUENCE = 10**15
_WHOLE = re.compile("[0-9]{1,16}")
_FIELDS_OF_REPLAY = ("event_ids", "from_seq", "to_seq", "since", "until", "status")
_REPLAYED = ("dead", "delivered")
_NOT_KNOWN = "is not a parameter here; known are"
_TIME_RULE = "must be a moment with its offset, such as 2026-11-21T10:00:00Z"


class Parameters:
    """Reads the query of a list, and remembers all that is wrong with it."""

    def __init__(self, request: Request, known: Collection[str]) -> None:
        """Take a query that may have these parameters; ``_format`` and the like may be there."""
        self._request = request
        self._issues = [
            Issue.error(OperationProblem.FIELD_UNKNOWN, f"{_NOT_KNOWN} {', '.join(known)}", name)
            for name, _value in request.parameters
            if name not in known and not name.startswith("_")
        ]

    def text(self, name: str) -> str:
        """Return a parameter, empty if it is not there."""
        return self._request.parameter(name)

    def whole_number(self, name: str, *, usual: int, most: int = HIGHEST_SEQUENCE) -> int:
        """Return a number from 0."""
        text = self.text(name)
        good = _WHOLE.fullmatch(text) and int(text) <= most
        if text and not good:
            self._issues.append(wrong(f"must be a whole number, at most {most}", name))
        return int(text) if good else usual

    def moment(self, name: str) -> int | None:
        """Return a moment in milliseconds."""
        text = self.text(name)
        moment = parse_instant(text)
        if text and moment is None:
            self._issues.append(wrong(_TIME_RULE, name))
        return moment

    def state(self, name: str) -> ShownState | None:
        """Return what became of a delivery."""
        text = self.text(name)
        state = next((item for item in SHOWN_STATES if item == text), None)
        if text and state is None:
            self._issues.append(wrong(f"must be one of {', '.join(SHOWN_STATES)}", name))
        return state

    def check(self) -> None:
        """Raise InvalidSearch if anything was wrong."""
        if self._issues:
            raise InvalidSearch(self._issues)


class ListHandler(WebhooksHandler):
    """What the two lists share: pages, and where the next one is."""

    known: ClassVar[tuple[str, ...]]

    @property
    def parameters(self) -> Parameters:
        """The query."""
        return Parameters(self.request, self.known)

    def next_page(self, name: str, sequence: int | None) -> str | None:
        """Return the address of the next page: the same query, from another place on."""
        if sequence is None:
            return None
        query = urlencode({**dict(self.request.parameters), name: sequence})
        return f"{self.services.config.base_url}{self.request.path}?{query}"


class DeliveriesHandler(ListHandler):
    """GET /endpoints/{id}/deliveries."""

    action = "delivery.read"

    known = ("status", "event_type", "resource", "since", "until", "limit", "before")

    async def get(self, endpoint_id: str) -> None:
        """List what was sent, newest first, with every attempt."""
        endpoint = await self.endpoint(endpoint_id)
        given = self.parameters
        wanted = Wanted(
            event_type=given.text("event_type") or None,
            since=given.moment("since"),
            until=given.moment("until"),
        )
        state = given.state("status")
        before = given.whole_number("before", usual=0) or None
        limit = given.whole_number("limit", usual=USUAL_PAGE, most=MAX_PAGE_BYTES)
        given.check()
        page = await self.log.latest(
            endpoint,
            wanted,
            state=state,
            resource=given.text("resource"),
            before=before,
            limit=limit or USUAL_PAGE,
        )
        self.note_events(endpoint, page.deliveries)
        now = self.services.clock()
        self.respond_json(
            {
                "deliveries": [
                    presenting.delivery_record(delivery, endpoint, now=now)
                    for delivery in page.deliveries
                ],
                "next": self.next_page("before", page.following),
            }
        )


class DeliveryHandler(WebhooksHandler):
    """GET /endpoints/{id}/deliveries/{event_id}."""

    action = "delivery.read"

    async def get(self, endpoint_id: str, event_id: str) -> None:
        """Show all of a delivery: what was sent, and each attempt with how its answer begins."""
        endpoint = await self.endpoint(endpoint_id)
        delivery = await self.log.one(endpoint, event_id)
        if delivery is None:
            raise NoSuchRecord("delivery", event_id)
        self.note_events(endpoint, [delivery])
        await self.note_patients([delivery.body])
        now = self.services.clock()
        self.respond_json(presenting.whole_delivery_record(delivery, endpoint, now=now))


class EventsHandler(ListHandler):
    """GET /endpoints/{id}/events: for reconciliation, and for clients that wait for events."""

    action = "delivery.read"

    known = ("after_seq", "since", "limit", "wait")

    async def get(self, endpoint_id: str) -> None:
        """Return the events behind a place in the sequence, in order; wait for one if asked to."""
        endpoint = await self.endpoint(endpoint_id)
        given = self.parameters
        after = given.whole_number("after_seq", usual=0)
        since = given.moment("since")
        limit = given.whole_number("limit", usual=USUAL_PAGE, most=MAX_PAGE_BYTES)
        wait = given.whole_number("wait", usual=0, most=MAX_WAIT_SECONDS)
        given.check()
        now = self.services.clock()
        await note_read(self.services.store, endpoint, now=now)
        if wait:
            await self.services.arrivals.wait(
                endpoint, client=self.caller.client_id, after=after, seconds=wait
            )
        page = await with_memory_budget(
            self,
            lambda: self.log.events(endpoint, after=after, since=since, limit=limit or USUAL_PAGE),
            lambda found: sum(len(delivery.body) for delivery in found.deliveries),
        )
        self.note_events(endpoint, page.deliveries)
        await self.note_patients([delivery.body for delivery in page.deliveries])
        now = self.services.clock()
        self.respond_json(
            {
                "events": [
                    presenting.event_record(delivery, endpoint, now=now)
                    for delivery in page.deliveries
                ],
                "last_sequence": await self.log.last_sequence(endpoint),
                "next": self.next_page("after_seq", page.following),
            }
        )


class ReplayHandler(WebhooksBodyHandler):
    """POST /endpoints/{id}/replay."""

    action = "delivery.replay"
    is_announced = True

    async def post(self, endpoint_id: str) -> None:
        """Have a page of deliveries sent again; ``next`` is the body for those behind it."""
        endpoint = await self.endpoint(endpoint_id)
        fields = self.fields()
        replayed = await self.log.replay(endpoint, _read_selection(fields))
        self.services.metrics.replays.inc(replayed.reopened)
        following = replayed.following
        self.respond_json(
            {
                "reopened": replayed.reopened,
                "state": endpoint.state,
                "next": None if following is None else {**fields, "from_seq": following},
            }
        )


class StatsHandler(WebhooksHandler):
    """GET /endpoints/{id}/stats."""

    action = "delivery.read"

    async def get(self, endpoint_id: str) -> None:
        """Return how the endpoint does."""
        endpoint = await self.endpoint(endpoint_id)
        self.respond_json(presenting.stats_record(await self.log.stats(endpoint), endpoint))


# What is to be replayed.


def _read_selection(fields: JsonObject) -> Wanted:
    """Read which deliveries are to be sent again. Raises InvalidContent."""
    issues = list(refuse_unknown_fields(fields, _FIELDS_OF_REPLAY))
    issues += [
        wrong(rule, name)
        for name, value in fields.items()
        if name in _FIELDS_OF_REPLAY and (rule := _replay_problem(name, value))
    ]
    if not fields:
        rule = f"name one of {', '.join(_FIELDS_OF_REPLAY)}"
        issues = [Issue.error(OperationProblem.FIELD_REQUIRED, rule)]
    if issues:
        raise InvalidContent(issues)
    status = fields.get("status")
    ids = fields.get("event_ids")
    return Wanted(
        states=frozenset() if status is None else frozenset({status}),
        event_ids=None if ids is None else frozenset(ids),
        from_sequence=fields.get("from_seq"),
        to_sequence=fields.get("to_seq"),
        since=parse_instant(fields.get("since", "")),
        until=parse_instant(fields.get("until", "")),
    )


def _replay_problem(name: str, value: Any) -> str:
    if name == "event_ids":
        strings = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return "" if strings and 1 <= len(value) <= MAX_IDS else f"must be 1 to {MAX_IDS} ids"
    if name == "status":
        return "" if value in _REPLAYED else f"must be one of {', '.join(_REPLAYED)}"
    if name in ("since", "until"):
        good = isinstance(value, str) and parse_instant(value) is not None
        return "" if good else _TIME_RULE
    whole = (
        isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= HIGHEST_SEQUENCE
    )
    return "" if whole else f"must be a whole number from 1 to {HIGHEST_SEQUENCE}"
