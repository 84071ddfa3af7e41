"""Handles one event after another, and remembers each that was handled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, repeat

import click

from fhirpub.cli.printing import as_text
from fhirpub.cli.publish.service import note
from fhirpub.cli.webhooks.forwarding import Forwarder
from fhirpub.cli.webhooks.listen.position import Position
from fhirpub.cli.webhooks.listen.queue import EventQueue, QueuedEvent
from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.webhooks.management.event_types import matches
from fhirpub.webhooks.management.serializers import why_failed
from fhirpub.webhooks.policy.outcome import Outcome

_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
_LONGEST_PAUSE = 30.0

Start = tuple[int | None, int | None]
"""From which sequence, or from which time, events are handled again; None: neither."""


@dataclass(slots=True, kw_only=True)
class Listener:
    """Follows a queue. Without a ``forwarder`` events are only printed."""

    queue: EventQueue
    position: Position
    forwarder: Forwarder | None
    skips_refused: bool
    as_json: bool
    _is_stopped: bool = field(default=False, init=False)
    _is_sending: bool = field(default=False, init=False)

    async def run(self, start: Start, begun: Callable[[], None]) -> None:
        """Handle events until this is cancelled; ``begun`` is called once the service answers.

        Raises ClickException.
        """
        await self.queue.open(self.position.endpoint)
        after = await self._begin(start)
        begun()
        click.echo(f"Waiting for events after {after}; Ctrl-C ends this.", err=True)
        while True:
            page = await self.queue.after(after)
            self._note_gap(after, page.events)
            for event in page.events:
                if not await self._handle(event):
                    return
                after = event.sequence
                self.position.move(self.queue.endpoint, after)
                if self._is_stopped:
                    return

    def stop(self, running: asyncio.Task[None]) -> None:
        """End :meth:`run`, which runs in a task; an attempt in progress ends first."""
        self._is_stopped = True
        if not self._is_sending:
            running.cancel()

    async def _begin(self, start: Start) -> int:
        sequence, moment = start
        if sequence is not None:
            return max(0, sequence - 1)
        if moment is not None:
            return await self.queue.last_before(moment)
        if self.position.endpoint == self.queue.endpoint:
            return self.position.sequence
        if self.position.endpoint:
            note("the queue of the last run is no longer there: events since then may be missing")
        after = 0 if self.queue.is_new else await self.queue.last()
        self.position.move(self.queue.endpoint, after)
        return after

    def _note_gap(self, after: int, events: Sequence[QueuedEvent]) -> None:
        if events and events[0].sequence > after + 1:
            note(f"the service no longer has the events {after + 1} to {events[0].sequence - 1}")

    async def _handle(self, event: QueuedEvent) -> bool:
        """Print or forward an event; return false if it is stopped before that is done."""
        if not matches(self.queue.patterns, event.event_type):
            return True  # it was queued when the queue collected others
        if self.forwarder is None:
            self._print(event, None, 0)
            return True
        for number, pause in zip(count(1), _pauses(), strict=False):
            outcome = await self._send(self.forwarder, event, number)
            self._print(event, outcome, number)
            if outcome.delivered or self._gives_up(outcome):
                return True
            if self._is_stopped:
                return False
            await _wait(event, max(pause, min(outcome.retry_after or 0.0, _LONGEST_PAUSE)))
        raise AssertionError  # count has no end

    async def _send(self, forwarder: Forwarder, event: QueuedEvent, number: int) -> Outcome:
        self._is_sending = True
        try:
            return await forwarder.send(
                event.event_id,
                event.event_type,
                event.body,
                sequence=event.sequence,
                number=number,
            )
        finally:
            self._is_sending = False

    def _gives_up(self, outcome: Outcome) -> bool:
        """Return whether a refused event is left out: the receiver asks for it, or the option."""
        return outcome.status > 0 and (self.skips_refused or outcome.wish == "abort-message")

    def _print(self, event: QueuedEvent, outcome: Outcome | None, number: int) -> None:
        body = loads_stored(event.body)
        if self.as_json:
            click.echo(dumps(_record(event, body, outcome, number)))
            return
        data = body.get("data", {})
        about = "/".join(filter(None, (data.get("resource_type"), data.get("id"))))
        line = f"{event.sequence}  {body.get('timestamp')}  {event.event_type}  {about}".rstrip()
        click.echo(as_text(f"{line}  {_came_of(outcome)}".rstrip()))


async def _wait(event: QueuedEvent, seconds: float) -> None:
    """Wait until an event is sent again."""
    click.echo(f"Sending event {event.sequence} again in {seconds:g} s.", err=True)
    await asyncio.sleep(seconds)


def _pauses() -> Iterator[float]:
    return chain(_PAUSES, repeat(_LONGEST_PAUSE))


def _record(
    event: QueuedEvent, body: object, outcome: Outcome | None, number: int
) -> dict[str, object]:
    record: dict[str, object] = {
        "sequence": event.sequence,
        "event_id": event.event_id,
        "event_type": event.event_type,
        "body": body,
    }
    if outcome is None:
        return record
    return {
        **record,
        "attempt": number,
        "accepted": outcome.delivered,
        "status": outcome.status or None,
        "reason": outcome.reason or "",
        "milliseconds": outcome.duration,
    }


def _came_of(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    if outcome.delivered:
        return f"-> {outcome.status} in {outcome.duration} ms"
    return f"-> {why_failed(status=outcome.status, reason=outcome.reason or '')}"
