"""What is shown of endpoints and deliveries, field by field, and what is not shown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import orjson
import pytest

from fhirpub.storage.webhook_contract import DeliveryState, EndpointSecret, EndpointState
from fhirpub.testing.webhook_contract import NOW, UNTIL, a_delivery, an_attempt, an_endpoint
from fhirpub.webhooks.management.delivery_log import Count, ShownState, Stats, effective_state
from fhirpub.webhooks.management.serializers import (
    delivery_record,
    endpoint_record,
    event_record,
    stats_record,
    trial_record,
    whole_delivery_record,
    why_failed,
)
from fhirpub.webhooks.management.trials import TestDelivery as Trial
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.outcome import WITHHELD, Outcome, Reason
from fhirpub.webhooks.policy.retry_policy import Breaker, FailureStreak

NOW_TEXT, UNTIL_TEXT = "2023-11-14T22:13:20.000Z", "2023-11-14T22:13:50.000Z"


def shown(record: Any) -> Any:
    return json.loads(orjson.dumps(record))


def test_an_endpoint_is_shown_without_its_secrets() -> None:
    endpoint = an_endpoint(
        url="https://lab.example/hook",
        events=("diagnosticreport.*", "patient.*"),
        payload="id-only",
        ordering="strict",
        description="A ward",
        state="disabled",
        why="gone",
        secrets=(EndpointSecret(b"new"), EndpointSecret(b"old", UNTIL)),
        token=b"token",
        revision=4,
    )

    assert endpoint_record(endpoint) == {
        "id": endpoint.id,
        "url": "https://lab.example/hook",
        "event_types": ["diagnosticreport.*", "patient.*"],
        "payload": "id-only",
        "ordering": "strict",
        "description": "A ward",
        "state": "disabled",
        "why": "gone",
        "created": NOW_TEXT,
        "revision": 4,
        "old_secrets_until": [UNTIL_TEXT],
    }


@pytest.mark.parametrize("state", ["active", "paused", "unverified", "disabled"])
def test_a_delivery_that_is_being_sent_is_delivering_in_every_state(state: EndpointState) -> None:
    delivery = a_delivery("e", leased=NOW + 1, state="retrying")

    assert effective_state(delivery, an_endpoint(state=state), now=NOW) == "delivering"


EFFECTIVE: list[tuple[DeliveryState, EndpointState, ShownState]] = [
    ("pending", "active", "pending"),
    ("retrying", "active", "retrying"),
    ("pending", "paused", "held"),
    ("retrying", "disabled", "held"),
    ("pending", "unverified", "held"),
    ("pending", "deleted", "cancelled"),
    ("delivered", "deleted", "delivered"),
    ("dead", "paused", "dead"),
]


@pytest.mark.parametrize(("stored", "state", "expected"), EFFECTIVE)
def test_what_becomes_of_a_delivery_depends_on_its_endpoint(
    stored: DeliveryState, state: EndpointState, expected: ShownState
) -> None:
    delivery = a_delivery("e", state=stored, leased=NOW)

    assert effective_state(delivery, an_endpoint(state=state), now=NOW) == expected


def test_a_lease_of_a_deleted_endpoint_delivers_nothing() -> None:
    delivery = a_delivery("e", leased=UNTIL)

    assert effective_state(delivery, an_endpoint(state="deleted"), now=NOW) == "cancelled"


def test_a_delivery_is_shown_with_its_next_attempt() -> None:
    delivery = a_delivery("e", sequence=7, state="retrying", due=UNTIL)

    assert delivery_record(delivery, an_endpoint(), now=NOW) == {
        "event_id": "evt_7",
        "event_type": "diagnosticreport.created",
        "sequence": 7,
        "status": "retrying",
        "resource": "DiagnosticReport/1",
        "created": NOW_TEXT,
        "next_attempt": UNTIL_TEXT,
        "ended": None,
        "attempts": [],
    }


@pytest.mark.parametrize("state", ["paused", "deleted"])
def test_what_is_not_sent_has_no_next_attempt(state: EndpointState) -> None:
    delivery = a_delivery("e", state="retrying", due=UNTIL)

    record = delivery_record(delivery, an_endpoint(state=state), now=NOW)

    assert record["next_attempt"] is None


def test_what_has_ended_has_no_next_attempt() -> None:
    delivery = a_delivery("e", state="dead", due=UNTIL, ended=NOW)

    record = delivery_record(delivery, an_endpoint(), now=NOW)

    assert (record["next_attempt"], record["ended"]) == (None, NOW_TEXT)


def test_an_attempt_is_shown_with_its_outcome_and_without_its_answer_in_lists() -> None:
    failed = an_attempt(2, status=503, duration=70, answer=b"private", dialled=("10.0.0.1",))

    (attempt,) = delivery_record(a_delivery("e", attempts=(failed,)), an_endpoint(), now=NOW)[
        "attempts"
    ]

    assert attempt == {
        "number": 2,
        "begun": NOW_TEXT,
        "milliseconds": 70,
        "status": 503,
        "reason": "",
        "why": "the answer was 503, not 2xx",
    }


def test_an_attempt_without_an_answer_has_no_status() -> None:
    failed = an_attempt(status=0, reason="E_DNS")

    (attempt,) = delivery_record(a_delivery("e", attempts=(failed,)), an_endpoint(), now=NOW)[
        "attempts"
    ]

    assert (attempt["status"], attempt["reason"]) == (None, "E_DNS")
    assert attempt["why"] == "the name of the host cannot be resolved"


def test_of_an_attempt_without_an_end_its_begin_is_shown() -> None:
    open_ = an_attempt(ended=None, status=0)

    (attempt,) = delivery_record(a_delivery("e", attempts=(open_,)), an_endpoint(), now=NOW)[
        "attempts"
    ]

    assert set(attempt) == {"number", "begun", "why"}
    assert attempt["why"].startswith("it is not known what came of it")


def test_a_whole_delivery_has_what_was_sent_and_each_answer() -> None:
    attempts = (an_attempt(1, answer=b"sorry \xff"), an_attempt(2, answer=b"OK"))
    delivery = a_delivery("e", attempts=attempts, body=b'{"a": 1.50}')

    record = whole_delivery_record(delivery, an_endpoint(), now=NOW)

    assert [attempt["answer"] for attempt in record["attempts"]] == ["sorry \ufffd", "OK"]
    assert b'{"a": 1.50}' in orjson.dumps(record)


def test_an_event_is_shown_as_it_is_sent() -> None:
    delivery = a_delivery("e", sequence=3, body=b'{"a":1}', state="pending")

    record = event_record(delivery, an_endpoint(state="paused"), now=NOW)

    assert shown(record) == {
        "sequence": 3,
        "event_id": "evt_3",
        "event_type": "diagnosticreport.created",
        "status": "held",
        "body": {"a": 1},
    }


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (200, ""),
        (204, ""),
        (299, ""),
        (199, "the answer was 199, not 2xx"),
        (300, "the answer was 300; redirects are not followed"),
        (399, "the answer was 399; redirects are not followed"),
        (400, "the answer was 400, not 2xx"),
        (500, "the answer was 500, not 2xx"),
    ],
)
def test_a_status_is_explained(status: int, why: str) -> None:
    assert why_failed(status=status, reason="") == why


def test_each_reason_is_explained_in_words_of_its_own() -> None:
    texts = [why_failed(status=0, reason=reason) for reason in (*get_args(Reason), WITHHELD)]

    assert len(set(texts)) == len(texts)
    assert "there was no answer" not in texts


def test_an_unknown_reason_is_no_answer() -> None:
    assert why_failed(status=0, reason="E_NEW") == "there was no answer"


def a_trial(outcome: Outcome, *, passed: bool, replaces: bool = False) -> Trial:
    return Trial(an_endpoint(state="unverified"), "evt_1", "ping", outcome, passed, replaces)


def test_a_trial_that_passed_is_shown_without_a_cause() -> None:
    record = trial_record(a_trial(Outcome(status=204, duration=12), passed=True))

    assert record == {
        "passed": True,
        "state": "unverified",
        "event_id": "evt_1",
        "event_type": "ping",
        "note": "",
        "status": 204,
        "reason": "",
        "why": "",
        "milliseconds": 12,
    }


def test_a_trial_that_answers_without_its_challenge_says_so() -> None:
    record = trial_record(a_trial(Outcome(status=200), passed=False))

    assert record["why"] == "the answer does not repeat the challenge"


def test_a_trial_that_failed_otherwise_has_its_cause() -> None:
    record = trial_record(a_trial(Outcome(reason="E_TLS"), passed=False, replaces=True))

    assert record["why"].startswith("the certificate is not valid")
    assert (record["status"], record["reason"]) == (None, "E_TLS")
    assert "the challenge was sent instead of a test event" in record["note"]


STATS = Stats(
    counts={"dead": 1},
    last_sequence=9,
    oldest_open=UNTIL,
    attempts=3,
    succeeded=2,
    p50=40,
    p95=70,
    by_hour=[Count(NOW, 2, 1)],
    by_day=[Count(UNTIL, 4, 0)],
)


def test_statistics_are_shown_with_a_rate_of_four_digits() -> None:
    record = stats_record(STATS, an_endpoint())

    assert record == {
        "state": "active",
        "deliveries": {"dead": 1},
        "last_sequence": 9,
        "oldest_undelivered": UNTIL_TEXT,
        "window_seconds": 86_400,
        "attempts": 3,
        "success_rate": 0.6667,
        "p50_milliseconds": 40,
        "p95_milliseconds": 70,
        "by_hour": [{"since": NOW_TEXT, "succeeded": 2, "failed": 1}],
        "by_day": [{"since": UNTIL_TEXT, "succeeded": 4, "failed": 0}],
        "breaker": "closed",
        "failures_in_a_row": 0,
        "failing_since": None,
        "warned": False,
        "throttled_until": None,
    }


def test_without_attempts_there_is_no_rate() -> None:
    none = replace(STATS, attempts=0, succeeded=0, oldest_open=None)

    record = stats_record(none, an_endpoint())

    assert (record["success_rate"], record["oldest_undelivered"]) == (None, None)


@pytest.mark.parametrize(
    ("warned", "since", "expected"), [(NOW, NOW, True), (NOW - 1, NOW, False), (0, 0, False)]
)
def test_a_warning_counts_for_the_failures_of_now(
    warned: int, since: int, *, expected: bool
) -> None:
    health = EndpointHealth(
        breaker=Breaker(state="open", until=UNTIL),
        streak=FailureStreak(failures=5, since=since),
        throttled=UNTIL,
        warned=warned,
    )

    record = stats_record(STATS, an_endpoint(condition=health.serialize()))

    assert record["warned"] is expected
    assert (record["breaker"], record["failures_in_a_row"]) == ("open", 5)
    assert record["throttled_until"] == UNTIL_TEXT
    assert record["failing_since"] == (NOW_TEXT if since else None)


def test_the_time_of_an_open_breaker_is_no_wait_that_the_receiver_asked_for() -> None:
    health = EndpointHealth(breaker=Breaker(state="open", until=UNTIL), throttled=NOW)

    record = stats_record(STATS, an_endpoint(condition=health.serialize()))

    assert record["throttled_until"] == NOW_TEXT
