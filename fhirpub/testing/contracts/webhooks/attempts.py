"""Tests of beginning attempts and storing their outcomes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import (
    MAX_ATTEMPTS_KEPT,
    Attempt,
    AttemptResult,
    DeliveryState,
)
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    UNTIL,
    begin,
    end,
    queue,
    stored_deliveries,
)
from fhirpub.testing.samples import LAB, new_id


class AttemptContract:
    """An attempt has its delivery exclusively until it ends or its lease expires."""

    async def test_open_deliveries_wait_in_their_order(self, store: Store) -> None:
        deliveries = await queue(store, 5)
        await end(store, deliveries[1], "retrying")
        await end(store, deliveries[2], "delivered")
        await end(store, deliveries[3], "dead")

        waiting = await store.waiting(deliveries[0].endpoint)

        assert [delivery.sequence for delivery in waiting] == [1, 2, 5]

    async def test_who_waits_is_shown_with_all_that_decides_its_turn(self, store: Store) -> None:
        (delivery,) = await queue(store, 1, due=NOW + 5, resource="DiagnosticReport/x")
        await store.begin([delivery.key], now=NOW + 5, until=UNTIL)

        (shown,) = await store.waiting(delivery.endpoint)

        assert (shown.endpoint, shown.event_id) == delivery.key
        assert (shown.resource, shown.due) == ("DiagnosticReport/x", NOW + 5)
        assert shown.created == delivery.created
        assert (shown.number, shown.leased) == (1, UNTIL)

    async def test_those_who_wait_are_shown_behind_a_place_and_up_to_a_limit(
        self, store: Store
    ) -> None:
        deliveries = await queue(store, 6)
        await end(store, deliveries[3], "retrying")

        waiting = await store.waiting(deliveries[0].endpoint, after=2, limit=3)

        assert [delivery.sequence for delivery in waiting] == [3, 4, 5]

    async def test_a_delivery_that_is_begun_comes_with_its_attempt(self, store: Store) -> None:
        (delivery,) = await queue(store, 1)

        taken = await store.begin([delivery.key], now=NOW, until=UNTIL)

        attempts = (Attempt(number=1, begun=NOW),)
        assert taken == [replace(delivery, number=1, leased=UNTIL, attempts=attempts)]
        assert await stored_deliveries(store, delivery.endpoint) == taken

    async def test_deliveries_of_many_endpoints_are_begun_together(self, store: Store) -> None:
        deliveries = [*await queue(store, 2), *await queue(store, 1)]
        keys = [delivery.key for delivery in deliveries]

        taken = await store.begin([*keys, (new_id(), "evt_1")], now=NOW, until=UNTIL)

        assert sorted(delivery.key for delivery in taken) == sorted(keys)

    async def test_a_delivery_that_is_leased_is_not_begun(self, store: Store) -> None:
        (delivery,) = await queue(store, 1)
        await store.begin([delivery.key], now=NOW, until=UNTIL)

        assert await store.begin([delivery.key], now=UNTIL - 1, until=UNTIL + 9) == []

    async def test_a_delivery_is_not_begun_before_it_is_due(self, store: Store) -> None:
        (delivery,) = await queue(store, 1, due=NOW + 5)

        early = await store.begin([delivery.key], now=NOW + 4, until=UNTIL)
        in_time = await store.begin([delivery.key], now=NOW + 5, until=UNTIL)

        assert (early, [item.key for item in in_time]) == ([], [delivery.key])

    async def test_a_delivery_is_begun_again_once_its_lease_has_run_out(
        self, store: Store
    ) -> None:
        (delivery,) = await queue(store, 1)
        await store.begin([delivery.key], now=NOW, until=UNTIL)

        (taken,) = await store.begin([delivery.key], now=UNTIL, until=UNTIL + 9)

        attempts = (Attempt(number=1, begun=NOW), Attempt(number=2, begun=UNTIL))
        assert (taken.number, taken.attempts) == (2, attempts)

    @pytest.mark.parametrize("state", ["delivered", "dead"])
    async def test_a_delivery_that_is_ended_is_not_begun(
        self, store: Store, state: DeliveryState
    ) -> None:
        (delivery,) = await queue(store, 1)
        await end(store, delivery, state)

        assert await store.begin([delivery.key], now=UNTIL, until=UNTIL + 9) == []

    async def test_of_those_who_begin_a_delivery_at_once_one_takes_it(
        self, store: Store, other_store: Store
    ) -> None:
        deliveries = await queue(store, 20)
        keys = [delivery.key for delivery in deliveries]

        taken = await asyncio.gather(
            *(item.begin(keys, now=NOW, until=UNTIL) for item in (store, other_store) * 4)
        )

        assert sorted(delivery.key for one in taken for delivery in one) == sorted(keys)

    async def test_the_log_holds_the_latest_attempts(self, store: Store) -> None:
        (delivery,) = await queue(store, 1)
        for number in range(MAX_ATTEMPTS_KEPT + 2):
            await end(store, delivery, "retrying", now=NOW + number)

        (found,) = await stored_deliveries(store, delivery.endpoint)

        numbers = [attempt.number for attempt in found.attempts]
        assert numbers == list(range(3, MAX_ATTEMPTS_KEPT + 3))
        assert found.attempts[-1] == Attempt(
            number=MAX_ATTEMPTS_KEPT + 2,
            begun=NOW + MAX_ATTEMPTS_KEPT + 1,
            ended=NOW + MAX_ATTEMPTS_KEPT + 41,
        )

    @pytest.mark.parametrize("state", ["delivered", "dead"])
    async def test_what_came_of_the_last_attempt_ends_a_delivery(
        self, store: Store, reader: Store, state: DeliveryState
    ) -> None:
        (delivery,) = await queue(store, 1)
        attempt = replace(
            await begin(store, delivery),
            ended=NOW + 40,
            status=503,
            reason="x",
            duration=40,
            dialled=("192.0.2.1",),
            answer=bytes(range(256)),
        )

        await store.finish([AttemptResult(key=delivery.key, attempt=attempt, state=state)])

        assert await stored_deliveries(reader, delivery.endpoint) == [
            replace(delivery, state=state, number=1, ended=NOW + 40, attempts=(attempt,))
        ]

    async def test_a_delivery_that_is_tried_again_waits_until_it_is_due(
        self, store: Store
    ) -> None:
        (delivery,) = await queue(store, 1)
        attempt = replace(await begin(store, delivery), ended=NOW + 40, status=503)

        await store.finish(
            [AttemptResult(key=delivery.key, attempt=attempt, state="retrying", due=UNTIL)]
        )

        assert await stored_deliveries(store, delivery.endpoint) == [
            replace(delivery, state="retrying", number=1, due=UNTIL, attempts=(attempt,))
        ]

    async def test_outcomes_of_many_endpoints_are_noted_together(self, store: Store) -> None:
        deliveries = [*await queue(store, 2), *await queue(store, 2)]
        outcomes = [
            AttemptResult(
                key=delivery.key, attempt=await begin(store, delivery), state="delivered"
            )
            for delivery in deliveries
        ]

        await store.finish(outcomes)

        for endpoint in {delivery.endpoint for delivery in deliveries}:
            assert await store.count_deliveries(LAB, endpoint) == {"delivered": 2}

    async def test_outcomes_that_are_all_noted_are_reported_so(self, store: Store) -> None:
        deliveries = await queue(store, 3)
        states: tuple[DeliveryState, ...] = ("delivered", "dead", "retrying")
        outcomes = [
            AttemptResult(key=delivery.key, attempt=await begin(store, delivery), state=state)
            for delivery, state in zip(deliveries, states, strict=True)
        ]

        assert await store.finish(outcomes[:2]) == [True, True]
        assert await store.finish(outcomes[2:]) == [True]
        assert await store.count_deliveries(LAB, deliveries[0].endpoint) == {
            "delivered": 1,
            "dead": 1,
            "retrying": 1,
        }

    async def test_an_outcome_that_a_later_attempt_has_overtaken_is_dropped(
        self, store: Store
    ) -> None:
        (delivery,) = await queue(store, 1)
        slow = await begin(store, delivery)
        await begin(store, delivery, now=UNTIL)
        (before,) = await stored_deliveries(store, delivery.endpoint)

        await store.finish([AttemptResult(key=delivery.key, attempt=slow, state="dead")])

        assert await stored_deliveries(store, delivery.endpoint) == [before]

    async def test_an_outcome_of_a_delivery_that_is_ended_is_dropped(self, store: Store) -> None:
        (delivery,) = await queue(store, 1)
        attempt = replace(await begin(store, delivery), ended=NOW + 40)
        await store.finish([AttemptResult(key=delivery.key, attempt=attempt, state="delivered")])
        (before,) = await stored_deliveries(store, delivery.endpoint)

        await store.finish([AttemptResult(key=delivery.key, attempt=attempt, state="dead")])

        assert await stored_deliveries(store, delivery.endpoint) == [before]

    async def test_an_outcome_from_before_a_delivery_was_reopened_is_dropped(
        self, store: Store
    ) -> None:
        (delivery,) = await queue(store, 1)
        attempt = replace(await begin(store, delivery), ended=NOW + 40)
        await store.finish([AttemptResult(key=delivery.key, attempt=attempt, state="delivered")])
        await store.reopen(LAB, delivery.endpoint, [delivery.event_id], now=UNTIL)
        await begin(store, delivery, now=UNTIL)
        (before,) = await stored_deliveries(store, delivery.endpoint)

        await store.finish([AttemptResult(key=delivery.key, attempt=attempt, state="dead")])

        assert before.number == 1
        assert await stored_deliveries(store, delivery.endpoint) == [before]

    async def test_a_repeat_returns_too_whether_an_outcome_was_noted(self, store: Store) -> None:
        overtaken, delivery = await queue(store, 2)
        slow = replace(await begin(store, overtaken), ended=NOW + 40)
        await begin(store, overtaken, now=UNTIL)
        dialled, answer = ("192.0.2.1", "192.0.2.2"), bytes(range(256))
        attempt = replace(
            await begin(store, delivery), ended=NOW + 40, dialled=dialled, answer=answer
        )
        outcomes = [
            AttemptResult(key=overtaken.key, attempt=slow, state="delivered"),
            AttemptResult(key=delivery.key, attempt=attempt, state="retrying", due=UNTIL),
        ]

        assert await store.finish(outcomes) == [False, True]
        await begin(store, delivery, now=UNTIL)
        assert await store.finish(outcomes) == [False, True]
        assert await store.finish(outcomes[1:]) == [True]

    async def test_an_outcome_of_a_delivery_that_is_not_stored_is_not_noted(
        self, store: Store
    ) -> None:
        (delivery,) = await queue(store, 1)
        attempt = replace(await begin(store, delivery), ended=NOW + 40)
        outcomes = [
            AttemptResult(key=key, attempt=attempt, state="delivered")
            for key in ((delivery.endpoint, "evt_2"), delivery.key, (new_id(), "evt_1"))
        ]

        assert await store.finish(outcomes) == [False, True, False]
        assert await store.finish([]) == []
