"""The queue of the events of a tenant at the service: an endpoint that is read (ADR 47)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

import click

from fhirpub.cli.webhooks.service_calls import Refused, WebhookCalls
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.fhir.times import instant
from fhirpub.webhooks.transport.pull_url import PULL

_PAGE = 100
_WAIT_SECONDS = 25
"""Less than the service allows: some proxies end requests after 30 seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedEvent:
    """One event of the queue; ``body`` is what an endpoint gets."""

    sequence: int
    event_id: str
    event_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """Events in their order, and the number of the last event of the queue."""

    events: Sequence[QueuedEvent]
    last_sequence: int


@dataclass(slots=True)
class EventQueue:
    """The queue of a name. ``patterns`` are the events that it collects."""

    calls: WebhookCalls
    name: str
    patterns: Sequence[str]
    endpoint: str = ""
    is_new: bool = False

    async def open(self, last: str) -> None:
        """Find the queue, or add it; it collects what is committed from now on.

        There may be several if a response was lost: ``last`` is the endpoint of the last run.
        """
        url = f"{PULL}{self.name}"
        endpoints = (await self.calls.get("/endpoints"))["endpoints"]
        found = [each for each in endpoints if each["url"] == url]
        known = next((each for each in found if each["id"] == last), next(iter(found), None))
        wanted = {"event_types": [*self.patterns]}
        if known is None:
            fields = {"url": url, "description": "fhirpub webhooks listen", **wanted}
            known = await self.calls.send("POST", "/endpoints", fields)
            self.is_new = True
        elif known["event_types"] != wanted["event_types"]:
            known = await self.calls.send("PATCH", f"/endpoints/{known['id']}", wanted)
        self.endpoint = str(known["id"])

    async def after(self, sequence: int) -> Page:
        """Return the next events; wait for one if there is none."""
        return await self._page(after_seq=sequence, limit=_PAGE, wait=_WAIT_SECONDS)

    async def last(self) -> int:
        """Return the number of the last event, 0 before the first."""
        return (await self._page(limit=1)).last_sequence

    async def last_before(self, moment: int) -> int:
        """Return the number of the last event that was queued before a moment."""
        page = await self._page(since=instant(moment), limit=1)
        return page.events[0].sequence - 1 if page.events else page.last_sequence

    async def _page(self, **query: int | str) -> Page:
        try:
            found = await self.calls.get(f"/endpoints/{self.endpoint}/events", **query)
        except Refused as problem:
            if problem.status != HTTPStatus.NOT_FOUND:
                raise
            gone = "the queue at the service was removed; run the command again to add another"
            raise click.ClickException(gone) from problem
        return Page([_event(each) for each in found["events"]], int(found["last_sequence"]))


def _event(record: JsonObject) -> QueuedEvent:
    return QueuedEvent(
        sequence=int(record["sequence"]),
        event_id=str(record["event_id"]),
        event_type=str(record["event_type"]),
        body=dumps(record["body"]),
    )
