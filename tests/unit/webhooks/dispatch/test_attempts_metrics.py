"""What metrics count of attempts that have ended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client import parser

from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.webhooks.policy.outcome import Outcome
from tests.unit.webhooks.dispatch.attempting import ACCEPTED, FAILED, Desk

REFUSED = Outcome(status=400, wish="abort-message")


def shown(desk: Desk, name: str) -> dict[tuple[str, ...], float]:
    """Return the samples of a name that are not 0, by the values of their labels."""
    text = desk.metrics.text("")[0].decode()
    return {
        tuple(sample.labels.values()): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == f"fhirpub_{name}" and sample.value
    }


@pytest.mark.parametrize(("outcome", "state"), [(ACCEPTED, "delivered"), (REFUSED, "dead")])
async def test_a_delivery_that_has_ended_is_counted_by_its_state_and_outcome(
    desk: Desk, outcome: Outcome, state: str
) -> None:
    await desk.deliver(outcome)

    assert shown(desk, "webhook_deliveries_total") == {(state, outcome.word): 1.0}


async def test_a_delivery_that_is_tried_again_has_not_ended(desk: Desk) -> None:
    await desk.deliver(FAILED)

    assert shown(desk, "webhook_deliveries_total") == {}


async def test_the_time_from_the_event_to_its_delivery_is_measured(desk: Desk) -> None:
    desk.clock.forward(seconds=7)

    await desk.deliver(ACCEPTED)

    assert shown(desk, "webhook_delivery_seconds_count") == {(): 1.0}
    assert shown(desk, "webhook_delivery_seconds_sum") == {(): 7.0}


async def test_no_time_is_measured_of_a_delivery_that_was_refused(desk: Desk) -> None:
    await desk.deliver(REFUSED)

    assert shown(desk, "webhook_delivery_seconds_count") == {}


async def test_no_time_is_measured_of_a_delivery_that_was_replayed(desk: Desk) -> None:
    await desk.deliver(FAILED)
    first = await desk.stored()
    await desk.add(attempts=first.attempts, number=0)

    await desk.deliver(ACCEPTED)

    assert shown(desk, "webhook_delivery_seconds_count") == {}
    assert shown(desk, "webhook_deliveries_total") == {("delivered", "2xx"): 1.0}


async def test_an_endpoint_that_is_disabled_is_counted(desk: Desk) -> None:
    await desk.deliver(Outcome(status=410))

    assert shown(desk, "webhook_endpoints_disabled_total") == {(): 1.0}


async def test_an_endpoint_that_was_paused_in_the_meantime_is_not_counted(desk: Desk) -> None:
    paused = replace(desk.endpoint, state="paused", revision=2)
    await desk.store.put_endpoint(desk.endpoint.tenant, paused)

    await desk.deliver(Outcome(status=410))

    assert shown(desk, "webhook_endpoints_disabled_total") == {}


@pytest.mark.parametrize("outcome", [ACCEPTED, FAILED, REFUSED, Outcome(reason="E_DNS")])
async def test_each_attempt_is_counted_by_its_outcome_with_its_seconds(
    desk: Desk, outcome: Outcome
) -> None:
    await desk.deliver(replace(outcome, duration=1_500))

    assert shown(desk, "webhook_attempts_total") == {(outcome.word,): 1.0}
    assert shown(desk, "webhook_attempt_seconds_sum") == {(): 1.5}


async def test_a_fault_of_ours_is_an_attempt_that_took_no_time(desk: Desk) -> None:
    await desk.deliver(RuntimeError())

    assert shown(desk, "webhook_attempts_total") == {("E_INTERNAL",): 1.0}
    assert shown(desk, "webhook_attempt_seconds_count") == {}


async def test_what_is_not_sent_is_no_attempt(desk: Desk) -> None:
    desk.line.endpoint = replace(desk.endpoint, state="paused")

    await desk.deliver(ACCEPTED)

    assert shown(desk, "webhook_attempts_total") == {}


async def test_what_is_withheld_from_the_tenant_is_counted_by_its_cause(desk: Desk) -> None:
    await desk.deliver(Outcome(reason="E_CONNECT", private=True, duration=3))

    assert shown(desk, "webhook_attempts_total") == {("E_CONNECT",): 1.0}


async def test_the_time_of_an_attempt_is_measured_although_the_tenant_is_not_told(
    desk: Desk,
) -> None:
    await desk.deliver(Outcome(reason="E_CONNECT", private=True, duration=1_500))

    assert shown(desk, "webhook_attempt_seconds_sum") == {(): 1.5}


async def test_a_delivery_took_no_time_where_the_clock_is_behind_that_of_its_event(
    desk: Desk,
) -> None:
    await desk.add(body=b'{"timestamp":"2099-01-01T00:00:00Z"}')

    await desk.deliver(ACCEPTED)

    assert shown(desk, "webhook_delivery_seconds_count") == {(): 1.0}
    assert shown(desk, "webhook_delivery_seconds_sum") == {}


async def test_an_endpoint_that_is_disabled_after_a_lost_race_is_counted_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, lost = desk.store.put_endpoint, list[Endpoint]()

    async def lose_the_first(tenant: str, endpoint: Endpoint) -> bool:
        if not lost:
            lost.append(endpoint)
            return False
        return await put(tenant, endpoint)

    monkeypatch.setattr(desk.store, "put_endpoint", lose_the_first)
    await desk.deliver(Outcome(status=410))

    assert len(lost) == 1
    assert shown(desk, "webhook_endpoints_disabled_total") == {(): 1.0}
