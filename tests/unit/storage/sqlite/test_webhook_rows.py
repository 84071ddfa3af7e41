"""Endpoints, deliveries and attempts become rows, and come back from them as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

import pytest

from fhirpub.storage.sqlite.tables.webhooks import ENDPOINT
from fhirpub.storage.sqlite.webhook_rows import (
    attempts_of,
    delivery_of,
    delivery_row,
    endpoint_of,
    endpoint_row,
    outcome_row,
    waiting_of,
)
from fhirpub.storage.webhook_contract import AttemptResult, DeliveryState, QueuedDelivery
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    a_delivery,
    a_full_delivery,
    a_full_endpoint,
    an_attempt,
    an_endpoint,
)

KEPT = 16_384


def test_an_endpoint_comes_back_from_its_row_as_it_was() -> None:
    endpoint = replace(a_full_endpoint(), revision=5, reopened=3, condition=b"{}")

    assert endpoint_of(endpoint_row(endpoint)) == endpoint


def test_an_endpoint_with_nothing_but_its_url_comes_back_so() -> None:
    endpoint = an_endpoint()

    assert endpoint_of(endpoint_row(endpoint)) == endpoint


def test_the_row_of_an_endpoint_ends_with_what_no_change_of_it_replaces() -> None:
    row = endpoint_row(an_endpoint(reopened=3, condition=b"{1}"))

    assert row[-2:] == (3, b"{1}")
    assert ENDPOINT.split(", ")[-2:] == ["reopened", "condition"]


def test_thousands_of_endpoints_are_created_once() -> None:
    rows = [endpoint_row(an_endpoint(created=number)) for number in range(KEPT)]
    # A cache of its own: services of other tests put their endpoints into that of the process.
    cached = lru_cache(**endpoint_of.cache_parameters())(endpoint_of.__wrapped__)

    first = [cached(row) for row in rows]

    assert all(cached(row) is one for row, one in zip(rows, first, strict=True))


def test_a_delivery_comes_back_from_its_row_as_it_was() -> None:
    delivery = a_full_delivery("e")

    assert delivery_of(delivery_row(delivery)) == delivery


def test_a_row_has_the_beginning_of_the_last_attempt() -> None:
    attempts = tuple(an_attempt(number, begun=NOW + number) for number in (1, 2, 7))

    assert delivery_row(a_delivery("e", attempts=attempts))[7] == NOW + 7


def test_a_delivery_without_attempts_has_no_beginning() -> None:
    assert delivery_row(a_delivery("e"))[7] == 0


def test_attempts_come_back_from_a_log_in_their_order() -> None:
    delivery = a_full_delivery("e")

    assert attempts_of(delivery_row(delivery)[13]) == delivery.attempts


def test_a_queue_holds_what_decides_the_turn_of_a_delivery() -> None:
    row = ("e", 7, "evt", "DiagnosticReport/1", 1, 2, 3, 4)

    assert waiting_of(row) == QueuedDelivery(
        endpoint="e",
        sequence=7,
        event_id="evt",
        resource="DiagnosticReport/1",
        created=1,
        due=2,
        number=3,
        leased=4,
    )


@pytest.mark.parametrize(
    ("state", "ended"),
    [("delivered", NOW + 40), ("dead", NOW + 40), ("retrying", None), ("pending", None)],
)
def test_an_outcome_ends_a_delivery_that_is_not_tried_again(
    state: DeliveryState, ended: int | None
) -> None:
    attempt = an_attempt(3, dialled=("192.0.2.1",), answer=b"\xff")
    outcome = AttemptResult(key=("e", "evt"), attempt=attempt, state=state, due=NOW + 90)

    *row, log = outcome_row(outcome)

    assert row == ["e", "evt", 3, NOW, state, NOW + 90, ended]
    assert attempts_of(json.dumps([json.loads(log)])) == (attempt,)
