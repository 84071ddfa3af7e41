"""What one attempt leaves: in the log, in the queue, in the audit trail, and with the endpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.testing.contracts.webhooks.records import NOW, an_endpoint
from fhirpub.testing.samples import LAB, OTHER
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.policy.retry_policy import FailureStreak
from tests.unit.webhooks.dispatch.attempting import ACCEPTED, FAILED, LEASED, TIMEOUT, Desk


async def test_what_was_accepted_is_delivered_and_leaves_the_queue(desk: Desk) -> None:
    found = await desk.deliver(ACCEPTED)

    assert (found.state, found.ended, found.leased) == ("delivered", NOW, 0)
    assert desk.line.queue.next_moment() is None
    (attempt,) = found.attempts
    assert (attempt.number, attempt.status, attempt.duration, attempt.ended) == (1, 204, 40, NOW)


async def test_what_failed_is_tried_again_after_its_wait(desk: Desk) -> None:
    found = await desk.deliver(FAILED)

    assert found.state == "retrying"
    assert NOW + 5_000 <= found.due <= NOW + 6_000
    assert desk.line.queue.next_moment() == found.due


async def test_what_used_up_its_attempts_is_dead(desk: Desk) -> None:
    await desk.deliver(FAILED)
    desk.clock.forward(seconds=10)

    found = await desk.deliver(FAILED)

    assert (found.state, found.number) == ("dead", 2)
    assert desk.line.queue.next_moment() is None


async def test_a_fault_is_a_failure_that_does_not_count_against_the_receiver(desk: Desk) -> None:
    found = await desk.deliver(RuntimeError("a fault"))

    assert (found.attempts[0].reason, found.state) == ("E_INTERNAL", "retrying")
    assert desk.line.condition.streak.failures == 0


async def test_a_failure_counts_against_the_receiver(desk: Desk) -> None:
    await desk.deliver(FAILED)

    assert desk.line.condition.streak.failures == 1


@pytest.mark.parametrize(("late", "sent"), [(0, 1), (1, 0)])
async def test_nothing_is_sent_that_could_outlast_its_lease(
    desk: Desk, late: int, sent: int
) -> None:
    latest = LEASED - round(TIMEOUT * 1000)
    begin = desk.store.begin

    async def slowly(*keys: Any, **named: Any) -> Any:
        begun = await begin(*keys, **named)
        desk.clock.now = latest + late
        return begun

    desk.store.begin = slowly  # type: ignore[method-assign]
    await desk.deliver(ACCEPTED)

    assert len(desk.receiver.sent) == sent


async def test_nothing_is_sent_to_an_endpoint_that_is_paused(desk: Desk) -> None:
    desk.line.endpoint = replace(desk.endpoint, state="paused")

    found = await desk.deliver(ACCEPTED)

    assert (desk.receiver.sent, found.state, desk.store.order) == ([], "pending", [])
    assert desk.line.queue.next_moment() == LEASED


async def test_the_record_of_an_attempt_comes_before_its_outcome(desk: Desk) -> None:
    await desk.deliver(FAILED)

    assert desk.store.order == ["record", "finish"]
    ((tenant, record),) = desk.store.records
    assert (tenant, record["action"], record["status"], record["at"]) == (
        LAB,
        "event.deliver",
        503,
        NOW,
    )
    assert record["what"] == ["DiagnosticReport/1", f"Endpoint/{desk.endpoint.id}"]
    assert record["environment"] == "sandbox"


async def test_without_a_response_the_record_has_504(desk: Desk) -> None:
    await desk.deliver(Outcome(reason="E_TIMEOUT", duration=15_000))

    assert desk.store.records[0][1]["status"] == 504


async def test_without_an_audit_trail_there_is_no_record(desk: Desk) -> None:
    desk.rules = replace(desk.rules, is_audited=False)

    await desk.deliver(ACCEPTED)

    assert desk.store.records == []


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Outcome(status=410), "gone"),
        (Outcome(status=503, wish="disable"), "asked"),
        (Outcome(status=200, wish="disable"), "asked"),
    ],
)
async def test_a_receiver_that_wants_no_more_is_disabled(
    desk: Desk, outcome: Outcome, why: str
) -> None:
    await desk.deliver(outcome)

    assert await desk.state() == ("disabled", why, 2)


async def test_what_a_disabled_endpoint_did_not_take_is_held(desk: Desk) -> None:
    found = await desk.deliver(Outcome(status=410))

    assert (found.state, found.due) == ("retrying", NOW)


async def test_an_endpoint_with_another_url_is_not_disabled(desk: Desk) -> None:
    moved = replace(desk.endpoint, url="https://new.example", revision=2)
    await desk.store.put_endpoint(LAB, moved)

    await desk.deliver(Outcome(status=410))

    assert await desk.state() == ("active", "", 2)
    assert not desk.line.disabling


async def test_an_endpoint_that_was_changed_is_disabled_as_it_is(desk: Desk) -> None:
    changed = replace(desk.endpoint, description="d", revision=2)
    await desk.store.put_endpoint(LAB, changed)

    await desk.deliver(Outcome(status=410))

    found = await desk.store.endpoint(LAB, desk.endpoint.id)
    assert found is not None
    assert (found.state, found.description, found.revision) == ("disabled", "d", 3)


async def test_a_dead_delivery_is_reported_to_the_other_endpoints_of_the_tenant(
    desk: Desk,
) -> None:
    events = ("message.exhausted",)
    others = [an_endpoint(tenant=tenant, events=events) for tenant in (LAB, OTHER)]
    for each in others:
        await desk.store.put_endpoint(each.tenant, each)

    await desk.deliver(Outcome(status=400, wish="abort-message"))

    assert [(one.endpoint, one.event_type) for one in desk.enqueued] == [
        (others[0].id, "message.exhausted")
    ]


async def test_a_dead_report_of_the_service_is_not_reported(desk: Desk) -> None:
    await desk.store.put_endpoint(LAB, an_endpoint(events=("message.exhausted",)))
    await desk.add(event_type="message.exhausted")

    await desk.deliver(Outcome(status=400, wish="abort-message"))

    assert desk.enqueued == []


async def test_an_outcome_of_an_attempt_that_was_overtaken_is_looked_up_again(
    desk: Desk,
) -> None:
    begin = desk.store.begin

    async def twice(*keys: Any, **named: Any) -> Any:
        begun = await begin(*keys, **named)
        await begin(*keys, now=LEASED, until=LEASED + 30_000)
        return begun

    desk.store.begin = twice  # type: ignore[method-assign]
    desk.line.read = 7

    found = await desk.deliver(ACCEPTED)

    assert (found.state, desk.line.read) == ("pending", 0)
    assert desk.line.queue.next_moment() == NOW + 1_000


async def test_an_endpoint_that_has_failed_for_days_is_given_up(desk: Desk) -> None:
    since = NOW - 5 * 24 * 3_600_000
    desk.line.condition = EndpointHealth(streak=FailureStreak(failures=19, since=since))

    await desk.deliver(FAILED)

    assert await desk.state() == ("disabled", "given-up", 2)


@pytest.mark.parametrize(("outcome", "ahead"), [(ACCEPTED, True), (FAILED, False)])
async def test_to_a_fast_receiver_more_deliveries_are_begun_than_are_sent_at_a_time(
    desk: Desk, outcome: Outcome, *, ahead: bool
) -> None:
    before = desk.line.window.size

    await desk.deliver(outcome)

    assert (desk.line.window.size > before) is ahead


async def test_a_delivery_that_was_replayed_has_all_of_its_attempts_again(desk: Desk) -> None:
    await desk.deliver(FAILED)
    first = await desk.stored()
    await desk.add(attempts=first.attempts, number=0)

    found = await desk.deliver(FAILED)

    assert (found.state, found.number, len(found.attempts)) == ("retrying", 1, 2)
    assert desk.receiver.sent[-1].number == 1


async def test_the_record_of_an_event_about_no_resource_names_the_endpoint_alone(
    desk: Desk,
) -> None:
    await desk.add(resource="")

    await desk.deliver(ACCEPTED)

    assert desk.store.records[0][1]["what"] == [f"Endpoint/{desk.endpoint.id}"]
