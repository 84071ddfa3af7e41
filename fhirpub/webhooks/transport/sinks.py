"""Sends events to sinks of plugins: endpoints whose URLs begin with ``sink:`` (D-412)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence

from fhirpub.errors import InvalidContent
from fhirpub.plugin_api.sinks import EventRejected, EventSink, SinkEvent
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.suggestion import did_you_mean
from fhirpub.webhooks.policy.outcome import Outcome, Reason, Wish
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.url_policy import MAX_URL_LENGTH, refuse_url

SCHEME = "sink:"
_URL = re.compile(
    r"sink:(?P<name>[a-z0-9][a-z0-9-]{0,63})(/(?P<destination>[A-Za-z0-9._~:@!$&'()*+,;=/-]+))?"
)
_ACCEPTED = 200
_CLOSE_SECONDS = 5.0

_log = logger()


class Sinks:
    """The sinks of one event loop. Each send is bounded in time, whatever the sink does."""

    def __init__(self, sinks: Sequence[EventSink] = (), *, timeout_seconds: float) -> None:
        self._sinks: Mapping[str, EventSink] = {sink.name: sink for sink in sinks}
        self._seconds = timeout_seconds

    def check(self, url: str) -> str:
        """Return the URL of an endpoint that a sink is to serve. Raises InvalidContent."""
        self._parse(url)
        return url

    async def attempt(self, message: Message, headers: Mapping[str, str]) -> Outcome:
        """Send a message once, and return what came of it.

        A sink that has taken the event counts as a receiver that has answered 200. What it raises
        is logged with the name of the sink, without the text, which may hold a secret.
        """
        begun = time.monotonic()
        reason: Reason | None = None
        wish: Wish | None = None
        try:
            sink, event = self._find(message, headers)
            async with asyncio.timeout(self._seconds):
                await sink.send(event)
        except EventRejected:
            reason, wish = "E_REJECTED", "abort-message"
        except TimeoutError:
            reason = "E_TIMEOUT"
        except InvalidContent:
            reason = "E_NO_SINK"
        except Exception as problem:  # noqa: BLE001 - of any kind, from another's code
            reason = "E_SINK"
            name = message.url.removeprefix(SCHEME).partition("/")[0]
            _log.warning("sink failed", sink=name, endpoint=message.endpoint, **where(problem))
        duration = round((time.monotonic() - begun) * 1000)
        status = 0 if reason else _ACCEPTED
        return Outcome(reason=reason, status=status, wish=wish, duration=duration)

    async def close(self) -> None:
        """Close all sinks; one that fails or hangs does not keep the others open."""
        for name, sink in self._sinks.items():
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await sink.close()
            except Exception as problem:  # noqa: BLE001 - of any kind, from another's code
                _log.warning("sink not closed", sink=name, **where(problem))

    def _parse(self, url: str) -> re.Match[str]:
        match = _URL.fullmatch(url) if len(url) <= MAX_URL_LENGTH else None
        if match is None:
            raise refuse_url("must be sink:NAME or sink:NAME/DESTINATION")
        if match["name"] not in self._sinks:
            known = ", ".join(self._sinks) or "none"
            advice = did_you_mean(match["name"], self._sinks) or f"there are: {known}"
            raise refuse_url(f"names a sink that no enabled plugin has; {advice}")
        return match

    def _find(self, message: Message, headers: Mapping[str, str]) -> tuple[EventSink, SinkEvent]:
        match = self._parse(message.url)
        return self._sinks[match["name"]], SinkEvent(
            tenant=message.tenant,
            endpoint=message.endpoint,
            destination=match["destination"] or "",
            event_id=message.event_id,
            event_type=message.event_type,
            sequence=message.sequence,
            attempt=message.number,
            body=message.body,
            headers=headers,
        )
