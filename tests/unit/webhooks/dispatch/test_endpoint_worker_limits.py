"""When a worker sends the next deliveries of its endpoint, and how many."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.storage.webhook_contract import Endpoint, QueuedDelivery
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery, an_endpoint
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.management.endpoint_secrets import encrypt_secret
from fhirpub.webhooks.policy.endpoint_health import NEW_HEALTH, EndpointHealth
from fhirpub.webhooks.policy.retry_policy import Breaker, FailurePolicy, FailureStreak

SEAL = SecretCipher([b"k" * 32])
FAILING = EndpointHealth(streak=FailureStreak(failures=3, since=NOW), warned=NOW)


def endpoint(**changes: Any) -> Endpoint:
    made = an_endpoint(ordering="none", **changes)
    secret = encrypt_secret(made.id, "secret", SEAL)
    token = SEAL.encrypt("token", endpoint=made.id, purpose="token")
    return replace(made, secrets=(secret,), token=token)


def worker(
    given: Endpoint | None = None, *, deliveries: int = 9, **settings: Any
) -> EndpointWorker:
    usual = {"in_flight_per_endpoint": 4, "rate_per_endpoint": 100.0}
    made = EndpointWorker(
        given or endpoint(),
        settings=WebhooksConfig(**{**usual, **settings}),
        patience=FailurePolicy(),
        seal=SEAL,
    )
    made.queue.renew(
        [queued(number) for number in range(1, deliveries + 1)], ordering="none", last=deliveries
    )
    made.read = NOW
    return made


def queued(number: int, **changes: Any) -> QueuedDelivery:
    usual: dict[str, Any] = {
        "endpoint": "e",
        "sequence": number,
        "event_id": f"evt_{number}",
        "resource": "Patient/1",
        "created": NOW,
        "due": 0,
        "number": 0,
        "leased": 0,
    }
    return QueuedDelivery(**{**usual, **changes})


@pytest.mark.parametrize(
    ("most", "settings", "expected"),
    [
        (9, {}, 4),
        (3, {}, 3),
        (0, {}, 0),
        (-1, {}, 0),
        (9, {"in_flight_per_endpoint": 20}, 9),
        (9, {"rate_per_endpoint": 2.0}, 2),
    ],
)
def test_the_smallest_limit_counts(most: int, settings: dict[str, Any], expected: int) -> None:
    assert len(worker(**settings).dequeue(NOW, most)) == expected


def test_what_is_in_flight_counts_until_it_has_ended() -> None:
    made = worker()
    made.dequeue(NOW, 3)

    assert len(made.dequeue(NOW, 9)) == 1
    assert made.dequeue(NOW, 9) == []
    made.queue.remove("evt_1")
    assert len(made.dequeue(NOW, 9)) == 1


def test_the_rate_counts_over_several_calls() -> None:
    made = worker(rate_per_endpoint=3.0, in_flight_per_endpoint=9)

    taken = [len(made.dequeue(NOW, 2)) for _ in range(3)]

    assert taken == [2, 1, 0]


@pytest.mark.parametrize("closed", ["leaving", "disabling"])
def test_an_endpoint_that_is_closed_is_sent_nothing(closed: str) -> None:
    made = worker()
    setattr(made, closed, True)

    assert made.dequeue(NOW, 9) == []
    assert made.next_moment(NOW) is None
    assert made.waits_for_process(NOW) is None


def test_an_endpoint_without_readable_secrets_is_sent_nothing_until_it_has_some() -> None:
    good = endpoint()
    made = worker(replace(good, secrets=(), token=b"damaged"))
    assert made.dequeue(NOW, 9) == []

    made.update(replace(good, revision=2))

    assert made.dequeue(NOW, 9) != []
    assert made.message(a_delivery(good.id, body=b"{}"), NOW).secrets == ("secret",)


def test_an_endpoint_without_readable_secrets_is_logged_without_them() -> None:
    damaged = replace(endpoint(), token=b"damaged")

    with capture_logs() as logs:
        worker(damaged)

    (line,) = logs
    assert (line["event"], line["log_level"]) == ("endpoint cannot be sent to", "error")
    assert line["endpoint"] == damaged.id
    assert line["reason"]
    assert "damaged" not in str(line)


def test_a_new_worker_has_to_load_its_queue_and_is_not_closing() -> None:
    made = EndpointWorker(
        endpoint(), settings=WebhooksConfig(), patience=FailurePolicy(), seal=SEAL
    )

    assert made.stale
    assert not any((made.reading, made.behind, made.leaving, made.disabling))
    assert made.alarm is None


def test_a_throttled_endpoint_is_sent_nothing_before_its_moment() -> None:
    health = EndpointHealth(throttled=NOW + 10)
    made = worker(endpoint(condition=health.serialize()))

    assert made.dequeue(NOW + 9, 9) == []
    assert made.waits_for_process(NOW + 9) is None
    assert made.next_moment(NOW) == NOW + 10
    assert len(made.dequeue(NOW + 10, 9)) == 4


def test_a_probe_is_one_delivery() -> None:
    health = EndpointHealth(breaker=Breaker(state="open", until=NOW))
    made = worker(endpoint(condition=health.serialize()))

    assert len(made.dequeue(NOW, 9)) == 1
    assert made.condition.breaker.state == "half-open"


def test_the_next_attempt_is_due_when_its_delivery_is() -> None:
    made = worker(deliveries=0)
    assert made.next_moment(NOW) is None
    made.queue.add([queued(1, due=NOW + 50)])

    assert made.next_moment(NOW) == NOW + 50


def test_the_next_attempt_waits_for_the_rate() -> None:
    made = worker(rate_per_endpoint=1.0)
    made.dequeue(NOW, 1)

    moment = made.next_moment(NOW)

    assert moment is not None
    assert NOW < moment <= NOW + 1_000
    assert len(made.dequeue(moment, 9)) == 1


def test_with_all_slots_taken_nothing_is_due() -> None:
    made = worker()
    made.dequeue(NOW, 9)

    assert made.next_moment(NOW) is None


async def test_a_delivery_that_could_be_sent_waits_for_the_process() -> None:
    made = worker(rate_per_endpoint=2.0, in_flight_per_endpoint=2)
    made.dequeue(NOW, 0)

    assert made.waits_for_process(NOW) == NOW
    async with made.window.slots, made.window.slots:
        assert made.waits_for_process(NOW) is None
    made.dequeue(NOW, 2)
    assert made.waits_for_process(NOW) is None


def test_a_delivery_to_a_throttled_endpoint_waits_for_the_receiver() -> None:
    made = worker()
    made.dequeue(NOW, 0)
    made.condition = EndpointHealth(throttled=NOW + 10)

    assert made.waits_for_process(NOW + 9) is None
    assert made.waits_for_process(NOW + 10) == NOW


def test_what_another_process_has_is_looked_at_again_after_a_second() -> None:
    made = worker(deliveries=1)
    (taken,) = made.dequeue(NOW, 1)

    made.requeue_and_reload(taken, NOW)

    assert made.stale
    assert made.dequeue(NOW + 999, 9) == []
    assert [each.event_id for each in made.dequeue(NOW + 1_000, 9)] == ["evt_1"]


@pytest.mark.parametrize(
    ("changes", "stale"),
    [
        ({"ordering": "strict"}, True),
        ({"reopened": 1}, True),
        ({"description": "x"}, False),
        ({"url": "https://new.example"}, False),
    ],
)
def test_a_queue_is_loaded_again_when_its_order_or_its_past_changes(
    changes: dict[str, Any], *, stale: bool
) -> None:
    given = endpoint()
    made = worker(given)

    made.update(replace(given, revision=2, **changes))

    assert made.stale is stale


@pytest.mark.parametrize(("revision", "disabling"), [(1, True), (2, False)])
def test_another_revision_ends_the_disabling(revision: int, *, disabling: bool) -> None:
    given = endpoint()
    made = worker(given)
    made.disabling = True

    made.update(replace(given, revision=revision))

    assert made.disabling is disabling


def test_an_endpoint_whose_stored_health_is_new_again_begins_again() -> None:
    given = endpoint(condition=FAILING.serialize())
    made = worker(given)

    made.update(replace(given, condition=NEW_HEALTH))

    assert made.condition == EndpointHealth()


def test_a_new_endpoint_keeps_what_happened_since() -> None:
    given = endpoint(condition=NEW_HEALTH)
    made = worker(given)
    made.condition = FAILING

    made.update(replace(given, revision=2))

    assert made.condition == FAILING


@pytest.mark.parametrize(("state", "failures"), [("active", 3), ("paused", 0), ("disabled", 0)])
def test_failures_of_an_inactive_endpoint_count_no_more(state: Any, failures: int) -> None:
    made = worker(endpoint(state=state, condition=FAILING.serialize()))

    made.reset_health()

    assert made.condition.streak.failures == failures


def test_a_message_is_that_of_its_delivery() -> None:
    given = endpoint()
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    body = b'{"traceparent":"%s"}' % trace.encode()
    delivery = a_delivery(given.id, 7, number=3, body=body)

    message = worker(given).message(delivery, NOW)

    assert (message.tenant, message.url, message.token) == (given.tenant, given.url, "token")
    assert (message.endpoint, message.event_id, message.sequence) == (given.id, "evt_7", 7)
    assert (message.number, message.body, message.traceparent) == (3, body, trace)
    assert message.event_type == "diagnosticreport.created"


def test_the_next_moment_is_not_before_the_breaker_allows_a_probe() -> None:
    made = worker()
    breaker = Breaker(state="open", until=NOW + 60_000, open_for=60_000)
    made.condition = EndpointHealth(breaker=breaker, throttled=NOW + 5_000)

    assert made.next_moment(NOW) == NOW + 60_000


def test_a_probe_that_never_ends_is_over_after_the_time_of_the_settings() -> None:
    made = EndpointWorker(
        endpoint(),
        settings=WebhooksConfig(),
        patience=FailurePolicy(open_seconds=5.0),
        seal=SEAL,
    )
    made.queue.renew([queued(1), queued(2)], ordering="none", last=2)
    made.condition = EndpointHealth(breaker=Breaker(state="open", until=NOW, open_for=5_000))

    assert len(made.dequeue(NOW, 9)) == 1

    assert made.condition.until == NOW + 5_000
