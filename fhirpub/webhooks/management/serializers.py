"""Endpoints and deliveries as they are shown, by HTTP and by command alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from fhirpub.fhir.times import instant
from fhirpub.storage.webhook_contract import Attempt, Delivery, Endpoint
from fhirpub.webhooks.management.delivery_log import (
    STATS_SECONDS,
    Count,
    Stats,
    effective_state,
)
from fhirpub.webhooks.management.trials import TestDelivery
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.outcome import WITHHELD, Outcome

Record = dict[str, Any]

_REASONS: Mapping[str, str] = {
    "E_BLOCKED_ADDRESS": "the host leads to no address to which webhooks are sent",
    "E_CONNECT": "no connection could be made",
    "E_DNS": "the name of the host cannot be resolved",
    "E_INTERNAL": "the service could not send it, and has not asked; its log says more",
    "E_MALFORMED": "the answer is not HTTP as it should be",
    "E_NO_SINK": "no enabled plugin has the sink that the URL names",
    "E_REJECTED": "the sink will never take this event",
    "E_RESET": "the connection was closed before there was an answer",
    "E_SINK": "the sink failed; the log of the service has the cause",
    "E_TIMEOUT": "there was no answer in time",
    WITHHELD: "it failed in a network of the operator, whose log has the cause",
    "E_TLS": "the certificate is not valid for the host, or TLS failed otherwise",
}
_REPLACED = (
    "the endpoint has not passed its challenge, so the challenge was sent instead of a test event"
)
_NOT_SENT = ("held", "cancelled")
_REDIRECTS = range(300, 400)


def endpoint_record(endpoint: Endpoint) -> Record:
    """Return an endpoint, without its secrets."""
    return {
        "id": endpoint.id,
        "url": endpoint.url,
        "event_types": list(endpoint.events),
        "payload": endpoint.payload,
        "ordering": endpoint.ordering,
        "description": endpoint.description,
        "state": endpoint.state,
        "why": endpoint.why,
        "created": instant(endpoint.created),
        "revision": endpoint.revision,
        "old_secrets_until": [
            instant(secret.expires) for secret in endpoint.secrets if secret.expires is not None
        ],
    }


def trial_record(trial: TestDelivery) -> Record:
    """Return what came of an event that was sent at once."""
    came = _outcome_record(trial.outcome)
    if not trial.passed and not came["why"]:
        came["why"] = "the answer does not repeat the challenge"
    return {
        "passed": trial.passed,
        "state": trial.endpoint.state,
        "event_id": trial.event_id,
        "event_type": trial.event_type,
        "note": _REPLACED if trial.replaces_test else "",
        **came,
    }


def delivery_record(delivery: Delivery, endpoint: Endpoint, *, now: int) -> Record:
    """Return a delivery with its attempts, without what came back as text."""
    state = effective_state(delivery, endpoint, now=now)
    waits = delivery.ended is None and state not in _NOT_SENT
    return {
        "event_id": delivery.event_id,
        "event_type": delivery.event_type,
        "sequence": delivery.sequence,
        "status": state,
        "resource": delivery.resource,
        "created": instant(delivery.created),
        "next_attempt": _moment(delivery.due if waits else None),
        "ended": _moment(delivery.ended),
        "attempts": [_attempt_record(attempt) for attempt in delivery.attempts],
    }


def whole_delivery_record(delivery: Delivery, endpoint: Endpoint, *, now: int) -> Record:
    """Return all of a delivery: what was sent, and how each answer begins."""
    record = delivery_record(delivery, endpoint, now=now)
    for shown, attempt in zip(record["attempts"], delivery.attempts, strict=True):
        shown["answer"] = attempt.answer.decode("utf-8", "replace")
    return {**record, "body": orjson.Fragment(delivery.body)}


def event_record(delivery: Delivery, endpoint: Endpoint, *, now: int) -> Record:
    """Return an event as it is sent, and what became of it."""
    return {
        "sequence": delivery.sequence,
        "event_id": delivery.event_id,
        "event_type": delivery.event_type,
        "status": effective_state(delivery, endpoint, now=now),
        "body": orjson.Fragment(delivery.body),
    }


def stats_record(stats: Stats, endpoint: Endpoint) -> Record:
    """Return the statistics of an endpoint and its health as the dispatcher stored it."""
    rate = round(stats.succeeded / stats.attempts, 4) if stats.attempts else None
    return {
        "state": endpoint.state,
        "deliveries": dict(stats.counts),
        "last_sequence": stats.last_sequence,
        "oldest_undelivered": _moment(stats.oldest_open),
        "window_seconds": STATS_SECONDS,
        "attempts": stats.attempts,
        "success_rate": rate,
        "p50_milliseconds": stats.p50,
        "p95_milliseconds": stats.p95,
        "by_hour": [*map(_count_record, stats.by_hour)],
        "by_day": [*map(_count_record, stats.by_day)],
        **_health(endpoint),
    }


def _count_record(count: Count) -> Record:
    return {
        "since": instant(count.since),
        "succeeded": count.succeeded,
        "failed": count.failed,
    }


def why_failed(*, status: int, reason: str) -> str:
    """Return in words why an attempt failed; nothing if it did not."""
    if reason:
        return _REASONS.get(reason, "there was no answer")
    if status in _REDIRECTS:
        return f"the answer was {status}; redirects are not followed"
    return "" if 200 <= status < 300 else f"the answer was {status}, not 2xx"


def _attempt_record(attempt: Attempt) -> Record:
    shown = {"number": attempt.number, "begun": instant(attempt.begun)}
    if attempt.ended is None:
        return {
            **shown,
            "why": "it is not known what came of it: it is under way, or its process was stopped",
        }
    return {
        **shown,
        "milliseconds": attempt.duration,
        "status": attempt.status or None,
        "reason": attempt.reason,
        "why": why_failed(status=attempt.status, reason=attempt.reason),
    }


def _outcome_record(outcome: Outcome) -> Record:
    reason = outcome.reason or ""
    return {
        "status": outcome.status or None,
        "reason": reason,
        "why": why_failed(status=outcome.status, reason=reason),
        "milliseconds": outcome.duration,
    }


def _health(endpoint: Endpoint) -> Record:
    condition = EndpointHealth.read(endpoint.condition)
    return {
        "breaker": condition.breaker.state,
        "failures_in_a_row": condition.streak.failures,
        "failing_since": _moment(condition.streak.since),
        "warned": 0 < condition.warned == condition.streak.since,
        "throttled_until": _moment(condition.throttled),
    }


def _moment(milliseconds: int | None) -> str | None:
    return instant(milliseconds) if milliseconds else None
