"""What attempts lead to for the endpoint and for others, and what happens while they are made."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.webhook_contract import Delivery
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery, an_endpoint
from fhirpub.testing.samples import LAB
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.outcome import WITHHELD, Outcome
from fhirpub.webhooks.policy.retry_policy import FailureStreak, Schedule
from fhirpub.webhooks.transport.message import Message
from tests.unit.webhooks.dispatch.attempting import ACCEPTED, BODY, FAILED, LEASED, TIMEOUT, Desk

HOUR_MS = 3_600_000
LATEST = LEASED - round(TIMEOUT * 1000)
REFUSED = Outcome(status=400, wish="abort-message")
FAILING = EndpointHealth(streak=FailureStreak(failures=3, since=NOW - 25 * HOUR_MS))


async def subscribe(desk: Desk, *events: str, number: int = 1) -> list[str]:
    """Add other endpoints that subscribe to events of the service, and return their ids."""
    others = [an_endpoint(events=events) for _number in range(number)]
    for other in others:
        await desk.store.put_endpoint(LAB, other)
    return [other.id for other in others]


def emitted(desk: Desk) -> list[str]:
    return [delivery.event_type for delivery in desk.enqueued]


async def test_each_of_many_attempts_that_end_at_once_has_its_record(desk: Desk) -> None:
    events = [f"evt_{number}" for number in range(1, 7)]
    more = [a_delivery(desk.endpoint.id, number, body=BODY) for number in range(2, 7)]
    await desk.store.append([replace(one, due=NOW) for one in more])
    desk.line.queue.add(await desk.store.waiting(desk.endpoint.id, after=1))
    attempts, begun = desk.attempts(), await desk.begin(*events)

    await asyncio.gather(*(attempts.deliver(desk.line, one) for one in begun))

    assert len(begun) == len(desk.store.records) == 6


async def test_the_log_has_what_was_dialled_and_how_the_answer_begins(desk: Desk) -> None:
    found = await desk.deliver(replace(FAILED, dialled=("192.0.2.1",), answer=b"busy"))

    (attempt,) = found.attempts
    assert (attempt.dialled, attempt.answer, attempt.reason) == (("192.0.2.1",), b"busy", "")


@pytest.mark.parametrize("change", ["paused", "late"])
async def test_what_changes_while_an_attempt_waits_for_its_slot_counts(
    desk: Desk, change: str
) -> None:
    (begun,) = await desk.begin("evt_1")
    slots, held = desk.line.window.slots, 0
    while not slots.locked():
        await slots.acquire()
        held += 1
    attempt = asyncio.create_task(desk.attempts().deliver(desk.line, begun))
    await asyncio.sleep(0)

    if change == "paused":
        desk.line.endpoint = replace(desk.endpoint, state="paused")
    else:
        desk.clock.now = LATEST + 1
    for _slot in range(held):
        slots.release()
    await attempt

    assert desk.receiver.sent == []
    assert desk.line.queue.next_moment() == LEASED


# Reports to other endpoints


async def test_a_dead_delivery_is_reported_to_each_endpoint_that_wants_to_know(
    desk: Desk,
) -> None:
    others = await subscribe(desk, "message.exhausted", number=3)

    await desk.deliver(REFUSED)

    assert {delivery.endpoint for delivery in desk.enqueued} == set(others)


async def test_a_dead_delivery_to_a_receiver_that_is_gone_also_disables_it(desk: Desk) -> None:
    await subscribe(desk, "message.exhausted", "endpoint.disabled")

    await desk.deliver(replace(REFUSED, status=410))

    assert emitted(desk) == ["message.exhausted", "endpoint.disabled"]
    assert await desk.state() == ("disabled", "gone", 2)


async def test_a_dead_delivery_of_a_failing_endpoint_is_a_warning_too(desk: Desk) -> None:
    await subscribe(desk, "message.exhausted", "endpoint.failing")
    desk.line.condition = FAILING

    await desk.deliver(REFUSED)

    assert emitted(desk) == ["message.exhausted", "endpoint.failing"]


async def test_an_endpoint_that_goes_on_failing_is_warned_of_once(desk: Desk) -> None:
    desk.rules = replace(desk.rules, schedule=Schedule(waits=[5.0, 5.0]))
    await subscribe(desk, "endpoint.failing")
    desk.line.condition = FAILING

    await desk.deliver(FAILED)
    warned = desk.line.condition.warned
    desk.clock.forward(seconds=10)
    asked: list[bool] = []

    async def all_endpoints(**_of: Any) -> list[Any]:
        asked.append(True)
        return []

    desk.store.all_endpoints = all_endpoints  # type: ignore[method-assign]
    await desk.deliver(FAILED)

    assert (emitted(desk), asked) == (["endpoint.failing"], [])
    assert warned == desk.line.condition.warned == FAILING.streak.since


async def test_failures_that_end_while_they_are_reported_were_not_warned_of(desk: Desk) -> None:
    await subscribe(desk, "endpoint.failing")
    desk.line.condition = FAILING
    append = desk.store.append

    async def meanwhile(deliveries: Sequence[Delivery]) -> int:
        desk.line.condition = EndpointHealth()  # another attempt was accepted
        return await append(deliveries)

    desk.store.append = meanwhile  # type: ignore[method-assign]
    await desk.deliver(FAILED)

    assert emitted(desk) == ["endpoint.failing"]
    assert desk.line.condition == EndpointHealth()


# Endpoints that are disabled


async def test_what_a_disabled_endpoint_did_not_take_stays_in_its_queue(desk: Desk) -> None:
    await desk.deliver(Outcome(status=410))

    assert (len(desk.line.queue), desk.line.queue.taken) == (1, 0)


async def test_an_endpoint_that_was_given_up_begins_again_without_its_failures(
    desk: Desk,
) -> None:
    since = NOW - 5 * 24 * HOUR_MS
    desk.line.condition = EndpointHealth(streak=FailureStreak(failures=19, since=since))

    await desk.deliver(FAILED)

    assert await desk.state() == ("disabled", "given-up", 2)
    assert desk.line.condition == EndpointHealth()
    assert desk.line.disabling


async def test_of_another_revision_failures_do_not_give_up_an_endpoint(desk: Desk) -> None:
    since = NOW - 5 * 24 * HOUR_MS
    desk.line.condition = EndpointHealth(streak=FailureStreak(failures=19, since=since))
    enabled = replace(desk.endpoint, revision=2)
    await desk.store.put_endpoint(LAB, enabled)

    await desk.deliver(FAILED)

    assert await desk.state() == ("active", "", 2)
    assert not desk.line.disabling


async def test_a_change_that_comes_between_is_not_overwritten(desk: Desk) -> None:
    put, changed = desk.store.put_endpoint, replace(desk.endpoint, description="d", revision=2)

    async def after_another(tenant: str, endpoint: Any) -> bool:
        desk.store.put_endpoint = put  # type: ignore[method-assign]
        await put(tenant, changed)
        return await put(tenant, endpoint)

    desk.store.put_endpoint = after_another  # type: ignore[method-assign]
    await desk.deliver(Outcome(status=410))

    found = await desk.store.endpoint(LAB, desk.endpoint.id)
    assert found is not None
    assert (found.state, found.description, found.revision) == ("disabled", "d", 3)


async def test_what_an_endpoint_accepts_ends_its_failures(desk: Desk) -> None:
    desk.line.condition = FAILING

    await desk.deliver(ACCEPTED)

    assert desk.line.condition.streak == FailureStreak()


# A store that is away


class Away:
    """Fails once in place of a method of the store."""

    def __init__(self, method: Any) -> None:
        self.method, self.calls = method, 0

    async def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls == 1:
            raise StoreUnavailable("away")
        return await self.method(*arguments, **named)


@pytest.mark.parametrize("name", ["add_audit_records", "finish"])
async def test_an_outcome_is_stored_once_the_store_is_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    away = Away(getattr(desk.store, name))
    monkeypatch.setattr(desk.store, name, away)

    found = await desk.deliver(ACCEPTED)

    assert (found.state, away.calls, len(desk.receiver.sent)) == ("delivered", 2, 1)


@pytest.mark.parametrize("name", ["all_endpoints", "append", "endpoint", "put_endpoint"])
async def test_an_endpoint_is_disabled_and_reported_once_the_store_is_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    await subscribe(desk, "endpoint.disabled")
    away = Away(getattr(desk.store, name))
    monkeypatch.setattr(desk.store, name, away)

    await desk.deliver(Outcome(status=410))

    assert emitted(desk) == ["endpoint.disabled"]
    assert await desk.state() == ("disabled", "gone", 2)
    assert away.calls >= 2


async def test_a_failure_that_is_withheld_ends_and_is_tried_again_as_a_timeout(
    desk: Desk,
) -> None:
    found = await desk.deliver(Outcome(reason="E_CONNECT", private=True, duration=3))

    (attempt,) = found.attempts
    longest = round(TIMEOUT * 1000)
    assert (attempt.reason, attempt.duration) == (WITHHELD, longest)
    assert attempt.ended == attempt.begun + longest
    assert found.due >= attempt.ended + 5_000


async def test_failures_that_are_withheld_last_since_the_first_of_them_ended_for_the_log(
    desk: Desk,
) -> None:
    found = await desk.deliver(Outcome(reason="E_CONNECT", private=True, duration=3))

    assert desk.line.condition.streak == FailureStreak(1, found.attempts[0].ended or 0)
    assert desk.line.condition.streak.since == NOW + round(TIMEOUT * 1000)


async def test_a_second_failure_that_is_withheld_ends_after_its_own_begin(desk: Desk) -> None:
    await desk.deliver(FAILED)
    desk.clock.forward(seconds=10)

    found = await desk.deliver(Outcome(reason="E_CONNECT", private=True, duration=3))

    assert found.attempts[1].ended == NOW + 10_000 + round(TIMEOUT * 1000)


@pytest.mark.parametrize("outcome", [FAILED, Outcome(status=410)])
async def test_what_the_former_receiver_answers_after_a_move_does_not_count_for_the_new_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    moved = replace(desk.endpoint, url="https://new.example/", revision=2)
    attempt = desk.receiver.attempt

    async def while_it_moves(message: Message) -> Outcome:
        await desk.store.put_endpoint(LAB, moved)
        desk.line.update(moved)
        return await attempt(message)

    monkeypatch.setattr(desk.receiver, "attempt", while_it_moves)
    await desk.deliver(outcome)

    assert desk.receiver.sent[0].url == desk.endpoint.url
    assert desk.line.condition == EndpointHealth()
    assert await desk.state() == ("active", "", 2)


async def test_an_endpoint_that_is_being_disabled_is_left_to_the_attempt_that_disables_it(
    desk: Desk,
) -> None:
    await subscribe(desk, "endpoint.disabled")
    desk.line.disabling = True

    await desk.deliver(Outcome(status=410))

    assert emitted(desk) == []
    assert await desk.state() == ("active", "", 1)
