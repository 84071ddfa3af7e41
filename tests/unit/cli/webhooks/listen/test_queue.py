"""The queue of a tenant at the service: how it is found or added, and read."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import click
import pytest
from tornado.httpclient import HTTPResponse

from fhirpub.cli.webhooks.listen.queue import EventQueue
from fhirpub.cli.webhooks.service_calls import Refused, WebhookCalls
from tests.canned import Canned, response

EVENT = {"sequence": 5, "event_id": "evt", "event_type": "a.created", "body": {"b": 1}}


def endpoint(name: str, url: str = "pull:laptop", *events: str) -> dict[str, Any]:
    return {"id": name, "url": url, "event_types": [*(events or ("*",))]}


def queue(*responses: HTTPResponse, of: str = "") -> tuple[EventQueue, Canned]:
    service = Canned(*responses)
    calls = WebhookCalls(service.publisher)
    return EventQueue(calls=calls, name="laptop", patterns=["*"], endpoint=of), service


def page(*events: dict[str, Any], last: int = 9) -> HTTPResponse:
    return response(200, {"events": [*events], "last_sequence": last})


async def test_a_queue_is_found_by_its_name() -> None:
    others = [endpoint("a", "pull:laptop2"), endpoint("b"), endpoint("c")]
    made, service = queue(response(200, {"endpoints": others}))

    await made.open("")

    assert (made.endpoint, made.is_new, len(service.calls)) == ("b", False, 1)


async def test_of_several_queues_that_of_the_last_run_is_taken() -> None:
    made, _ = queue(response(200, {"endpoints": [endpoint("a"), endpoint("b")]}))

    await made.open("b")

    assert made.endpoint == "b"


async def test_a_queue_of_another_name_is_not_that_of_the_last_run() -> None:
    others = [endpoint("a", "pull:other"), endpoint("b")]
    made, _ = queue(response(200, {"endpoints": others}))

    await made.open("a")

    assert made.endpoint == "b"


async def test_a_missing_queue_is_added() -> None:
    made, service = queue(response(200, {"endpoints": []}), response(201, endpoint("n")))

    await made.open("old")

    assert (made.endpoint, made.is_new) == ("n", True)
    assert service.sent(1)["url"] == "pull:laptop"
    assert service.sent(1)["event_types"] == ["*"]


async def test_a_queue_that_collects_other_events_is_changed() -> None:
    known = endpoint("a", "pull:laptop", "b.*")
    made, service = queue(response(200, {"endpoints": [known]}), response(200, endpoint("a")))

    await made.open("")

    assert service.calls[1].method == "PATCH"
    assert service.calls[1].url.endswith("/endpoints/a")
    assert service.sent(1) == {"event_types": ["*"]}
    assert not made.is_new


async def test_the_next_events_are_those_behind_a_number() -> None:
    made, service = queue(page(EVENT), of="e")

    found = await made.after(4)

    (event,) = found.events
    assert (event.sequence, event.event_id, event.event_type) == (5, "evt", "a.created")
    assert (event.body, found.last_sequence) == (b'{"b":1}', 9)
    query = parse_qs(urlsplit(service.calls[0].url).query)
    assert query == {"after_seq": ["4"], "limit": ["100"], "wait": ["25"]}


async def test_the_last_number_is_that_of_the_queue() -> None:
    made, service = queue(page(EVENT, last=7), of="e")

    assert await made.last() == 7
    assert parse_qs(urlsplit(service.calls[0].url).query) == {"limit": ["1"]}


@pytest.mark.parametrize(("events", "number"), [([EVENT], 4), ([], 9)])
async def test_what_was_queued_before_a_moment_ends_before_the_first_since_then(
    events: list[dict[str, Any]], number: int
) -> None:
    made, service = queue(page(*events), of="e")

    assert await made.last_before(1_000) == number
    assert parse_qs(urlsplit(service.calls[0].url).query)["since"][0].startswith("1970-01-01T")


async def test_a_queue_that_was_removed_ends_the_command() -> None:
    made, _ = queue(response(404, {}), of="e")

    with pytest.raises(click.ClickException, match="was removed; run the command again"):
        await made.last()


async def test_another_refusal_stays_what_it_is() -> None:
    made, _ = queue(response(403, {}), of="e")

    with pytest.raises(Refused):
        await made.last()


async def test_a_queue_that_is_added_states_what_it_is_for() -> None:
    made, service = queue(response(200, {"endpoints": []}), response(201, endpoint("n")))

    await made.open("")

    assert service.sent(1)["description"] == "fhirpub webhooks listen"


@pytest.mark.parametrize("known", [("*", "b.*"), ("b.*", "*"), ("b.*",)])
async def test_a_queue_collects_what_is_followed_and_nothing_else(known: tuple[str, ...]) -> None:
    found = response(200, {"endpoints": [endpoint("a", "pull:laptop", *known)]})
    made, service = queue(found, response(200, endpoint("a")))

    await made.open("")

    assert service.sent(1) == {"event_types": ["*"]}
