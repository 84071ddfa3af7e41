"""Events for sinks of plugins: which sink, what it gets, and what comes of it."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from fhirpub.errors import InvalidContent
from fhirpub.plugin_api.sinks import EventRejected, EventSink, SinkEvent
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.transport import sinks as module
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.sinks import Sinks


class Kept(EventSink):
    """Keeps events, or fails as it is set to."""

    def __init__(self, name: str, problem: Exception | None = None) -> None:
        self.name = name
        self.events: list[SinkEvent] = []
        self.closed = False
        self._problem = problem

    async def send(self, event: SinkEvent) -> None:
        self.events.append(event)
        if self._problem:
            raise self._problem

    async def close(self) -> None:
        if self._problem:
            raise self._problem
        self.closed = True


class Hanging(Kept):
    async def send(self, _event: SinkEvent) -> None:
        await asyncio.Event().wait()


class NeverClosed(Kept):
    async def close(self) -> None:
        await asyncio.Event().wait()


def message(url: str) -> Message:
    return Message(
        tenant="t-1",
        url=url,
        token="token",
        secrets=(),
        event_id="evt_1",
        event_type="patient.created",
        body=b"{}",
        number=3,
        sequence=7,
        endpoint="e-1",
    )


def sinks(*given: EventSink, seconds: float = 5.0) -> Sinks:
    return Sinks(given, timeout_seconds=seconds)


async def attempt(url: str, *given: EventSink, seconds: float = 5.0) -> Outcome:
    return await sinks(*given, seconds=seconds).attempt(message(url), {"a": "b"})


async def test_a_sink_gets_the_whole_event() -> None:
    queue, other = Kept("queue"), Kept("other")

    outcome = await attempt("sink:queue/a/b", other, queue)

    assert queue.events == [
        SinkEvent(
            tenant="t-1",
            endpoint="e-1",
            destination="a/b",
            event_id="evt_1",
            event_type="patient.created",
            sequence=7,
            attempt=3,
            body=b"{}",
            headers={"a": "b"},
        )
    ]
    assert other.events == []
    assert (outcome.status, outcome.reason, outcome.delivered) == (200, None, True)


async def test_a_url_without_a_destination_has_an_empty_one() -> None:
    queue = Kept("queue")

    await attempt("sink:queue", queue)

    assert queue.events[0].destination == ""


async def test_what_a_sink_never_takes_is_not_sent_again() -> None:
    outcome = await attempt("sink:queue", Kept("queue", EventRejected()))

    assert (outcome.reason, outcome.wish, outcome.status) == ("E_REJECTED", "abort-message", 0)


async def test_a_sink_that_hangs_is_a_timeout() -> None:
    outcome = await attempt("sink:queue", Hanging("queue"), seconds=0.01)

    assert (outcome.reason, outcome.wish) == ("E_TIMEOUT", None)
    assert 10 <= outcome.duration < 5_000


async def test_a_sink_that_is_gone_is_a_failure_of_its_own() -> None:
    assert (await attempt("sink:gone", Kept("queue"))).reason == "E_NO_SINK"


async def test_what_a_sink_raises_is_logged_without_its_text() -> None:
    with capture_logs() as logs:
        outcome = await attempt("sink:queue/x/y", Kept("queue", RuntimeError("a secret")))

    assert (outcome.reason, outcome.wish, outcome.status) == ("E_SINK", None, 0)
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("sink failed", "warning")
    assert (line["sink"], line["endpoint"], line["error"]) == ("queue", "e-1", "RuntimeError")
    assert "a secret" not in str(logs)


@pytest.mark.parametrize("url", ["sink:queue", "sink:queue/a", "sink:queue/A-z.0_~:@!$&'()*+,;="])
def test_a_url_of_a_sink_is_taken_as_it_is(url: str) -> None:
    assert sinks(Kept("queue")).check(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "sink:",
        "sink:Queue",
        "sink:-queue",
        "sink:queue/",
        "sink:queue/a b",
        "sink:queue?a",
        "sink:queue\n",
    ],
)
def test_another_form_is_refused(url: str) -> None:
    with pytest.raises(InvalidContent) as refused:
        sinks(Kept("queue")).check(url)

    assert "must be sink:NAME or sink:NAME/DESTINATION" in str(refused.value.issues)


@pytest.mark.parametrize(("length", "taken"), [(2_048, True), (2_049, False)])
def test_a_url_is_as_long_as_any(length: int, *, taken: bool) -> None:
    url = "sink:queue/".ljust(length, "x")

    if taken:
        assert sinks(Kept("queue")).check(url) == url
    else:
        with pytest.raises(InvalidContent):
            sinks(Kept("queue")).check(url)


@pytest.mark.parametrize(
    ("url", "given", "advice"),
    [
        ("sink:queu", ("queue", "kafka"), "did you mean queue?"),
        ("sink:x", ("queue", "kafka"), "there are: queue, kafka"),
        ("sink:x", (), "there are: none"),
    ],
)
def test_an_unknown_sink_is_refused_with_those_that_there_are(
    url: str, given: tuple[str, ...], advice: str
) -> None:
    with pytest.raises(InvalidContent) as refused:
        sinks(*map(Kept, given)).check(url)

    assert "names a sink that no enabled plugin has" in str(refused.value.issues)
    assert advice in str(refused.value.issues)


async def test_a_sink_that_cannot_be_closed_keeps_no_other_open() -> None:
    good = Kept("good")
    with capture_logs() as logs:
        await sinks(Kept("bad", RuntimeError()), good).close()

    assert good.closed
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("sink not closed", "warning")
    assert (line["sink"], line["error"]) == ("bad", "RuntimeError")


async def test_a_sink_that_is_never_closed_keeps_no_other_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_CLOSE_SECONDS", 0.01)
    good = Kept("good")

    async with asyncio.timeout(30):
        await sinks(NeverClosed("bad"), good).close()

    assert good.closed
