"""With which secrets a worker sends, and when an endpoint's history begins again."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery, an_endpoint
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.dispatch.queue_loader import queued
from fhirpub.webhooks.management.endpoint_secrets import encrypt_secret
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.retry_policy import FailurePolicy, FailureStreak

SEAL = SecretCipher([b"k" * 32])
STREAK = FailureStreak(failures=7, since=NOW)


def endpoint_with_secrets() -> Endpoint:
    """Return an endpoint with a new secret, and an older one that ends in a second."""
    endpoint = an_endpoint(condition=EndpointHealth(streak=STREAK).serialize())
    new, old = [encrypt_secret(endpoint.id, text, SEAL) for text in ("new", "old")]
    return replace(
        endpoint,
        secrets=(new, replace(old, expires=NOW + 1_000)),
        token=SEAL.encrypt("whtok", endpoint=endpoint.id, purpose="token"),
    )


def worker_of(endpoint: Endpoint) -> EndpointWorker:
    settings = WebhooksConfig()
    return EndpointWorker(endpoint, settings=settings, patience=FailurePolicy(), seal=SEAL)


def test_a_secret_signs_until_its_end_and_not_from_then_on() -> None:
    endpoint = endpoint_with_secrets()
    worker, delivery = worker_of(endpoint), a_delivery(endpoint.id, body=b"{}")

    assert worker.message(delivery, NOW + 999).secrets == ("new", "old")
    assert worker.message(delivery, NOW + 1_000).secrets == ("new",)


def test_a_token_that_was_replaced_is_not_sent_any_more() -> None:
    endpoint = endpoint_with_secrets()
    worker = worker_of(endpoint)

    token = SEAL.encrypt("another", endpoint=endpoint.id, purpose="token")
    worker.update(replace(endpoint, token=token, revision=endpoint.revision + 1))

    assert worker.message(a_delivery(endpoint.id, body=b"{}"), NOW).token == "another"


def test_with_readable_secrets_and_no_readable_token_nothing_is_sent() -> None:
    worker = worker_of(replace(endpoint_with_secrets(), token=b"damaged"))
    worker.queue.add([queued(a_delivery(worker.endpoint.id))])

    assert worker.dequeue(NOW, 9) == []
    assert worker.waits_for_process(NOW) is None


def test_the_limit_of_the_rate_does_not_shorten_another_wait() -> None:
    worker = worker_of(endpoint_with_secrets())
    worker.queue.add([queued(a_delivery(worker.endpoint.id, 1 + number)) for number in range(500)])
    while worker.dequeue(NOW, 500):
        for one in range(1, 500):
            worker.queue.remove(f"evt_{one}")
    worker.condition = EndpointHealth(throttled=NOW + 60_000)

    assert worker.next_moment(NOW) == NOW + 60_000


def test_the_failures_of_a_former_url_are_not_those_of_the_next_one() -> None:
    endpoint = endpoint_with_secrets()
    worker = worker_of(endpoint)
    assert worker.condition.streak == STREAK

    worker.update(replace(endpoint, url="https://new.example", revision=endpoint.revision + 1))

    assert worker.condition == EndpointHealth()


def test_another_revision_at_the_same_url_keeps_the_failures() -> None:
    endpoint = endpoint_with_secrets()
    worker = worker_of(endpoint)

    worker.update(replace(endpoint, description="LIS", revision=endpoint.revision + 1))

    assert worker.condition.streak == STREAK
