"""The promises of what a store keeps of webhooks, as tests; part of `StoreContract`."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from fhirpub.storage.contract import Version
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import (
    MAX_ATTEMPTS_KEPT,
    Attempt,
    AttemptResult,
    Delivery,
    DeliveryQuery,
    DeliveryState,
    Endpoint,
    EndpointSecret,
    OutboxEntry,
)
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id, successor

NOW, UNTIL = 1_700_000_000_000, 1_700_000_030_000
EVENTS = b'[{"id":"1"}]'


def an_endpoint(**changes: Any) -> Endpoint:
    """Return a new endpoint."""
    usual = Endpoint(id=new_id(), tenant=LAB, url="https://lab.example/hook", created=NOW)
    return replace(usual, **changes)


def a_delivery(endpoint: str, sequence: int = 1, **changes: Any) -> Delivery:
    """Return a delivery that was never tried."""
    usual = Delivery(
        endpoint=endpoint,
        tenant=LAB,
        sequence=sequence,
        event_id=f"evt_{sequence}",
        event_type="diagnosticreport.created",
        resource="DiagnosticReport/1",
        created=NOW,
        body=b'{"sequence":%d}' % sequence,
    )
    return replace(usual, **changes)


def an_attempt(number: int = 1, **changes: Any) -> Attempt:
    """Return an attempt that was answered."""
    usual = Attempt(number=number, begun=NOW, ended=NOW + 40, status=200, duration=40)
    return replace(usual, **changes)


def a_full_endpoint() -> Endpoint:
    """Return an endpoint in which no field has its default."""
    return an_endpoint(
        url="https://größe.example/?a=1&b=測試",
        events=("diagnosticreport.*", "*"),
        payload="id-only",
        ordering="strict",
        description="Süd 🩺\n'\"",
        state="disabled",
        why="gone",
        secrets=(EndpointSecret(bytes(range(256))), EndpointSecret(b"old", UNTIL)),
        token=bytes(range(256)),
    )


def a_full_delivery(endpoint: str) -> Delivery:
    """Return a delivery in which no field has its default."""
    attempts = (
        an_attempt(4, ended=None, status=0, duration=0),
        an_attempt(
            5,
            status=503,
            reason="Größe",
            dialled=("192.0.2.1", "2001:db8::1"),
            answer=bytes(range(256)),
        ),
    )
    return a_delivery(
        endpoint,
        7,
        resource="",
        body=bytes(range(256)),
        state="dead",
        due=NOW + 1,
        number=5,
        leased=NOW + 2,
        ended=NOW + 3,
        attempts=attempts,
    )


async def queue(
    store: Store, count: int, *, endpoint: str | None = None, **changes: Any
) -> list[Delivery]:
    """Append so many deliveries to a new queue; return them."""
    endpoint = endpoint or new_id()
    deliveries = [a_delivery(endpoint, number, **changes) for number in range(1, count + 1)]
    assert await store.append(deliveries) == count
    return deliveries


async def stored_deliveries(store: Store, endpoint: str, **changes: Any) -> list[Delivery]:
    """Return the deliveries of an endpoint that a query finds."""
    return list(await store.deliveries(LAB, DeliveryQuery(endpoint=endpoint, **changes)))


async def begin(store: Store, delivery: Delivery, *, now: int = NOW) -> Attempt:
    """Begin an attempt, which must be possible."""
    (taken,) = await store.begin([delivery.key], now=now, until=now + 30_000)
    return taken.attempts[-1]


async def end(
    store: Store, delivery: Delivery, state: DeliveryState = "delivered", *, now: int = NOW
) -> None:
    """Have an attempt of a delivery end so."""
    attempt = replace(await begin(store, delivery, now=now), ended=now + 40)
    await store.finish([AttemptResult(key=delivery.key, attempt=attempt, state=state)])


async def sequences(store: Store, endpoint: str, **changes: Any) -> list[int]:
    """Return the places of the deliveries that a query finds."""
    return [delivery.sequence for delivery in await stored_deliveries(store, endpoint, **changes)]


async def events_added(store: Store, versions: Sequence[Version], tenant: str = LAB) -> None:
    """Add versions, each with events."""
    for version in versions:
        assert await store.add(tenant, replace(version, events=EVENTS))


async def pending_keys(store: Store, *, limit: int = 100) -> list[tuple[str, int]]:
    """Return what is unrelayed."""
    return [
        (entry.id, entry.version) for _tenant, entry in await store.pending_outbox(limit=limit)
    ]


class _EndpointContract:
    """Endpoints, of which each change names the one it follows."""

    async def test_an_endpoint_comes_back_as_it_was_put(self, store: Store, reader: Store) -> None:
        endpoint = a_full_endpoint()

        assert await store.put_endpoint(LAB, endpoint) is True

        assert await reader.endpoint(LAB, endpoint.id) == endpoint
        assert await reader.endpoints(LAB) == [endpoint]

    async def test_an_endpoint_of_the_next_revision_replaces_the_one_before(
        self, store: Store
    ) -> None:
        before = an_endpoint()
        await store.put_endpoint(LAB, before)
        after = replace(a_full_endpoint(), id=before.id, revision=2)

        assert await store.put_endpoint(LAB, after) is True
        assert await store.endpoints(LAB) == [after]

    @pytest.mark.parametrize("revision", [1, 2, 4])
    async def test_an_endpoint_of_any_other_revision_changes_nothing(
        self, store: Store, revision: int
    ) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)
        await store.put_endpoint(LAB, replace(endpoint, revision=2))

        other = replace(endpoint, revision=revision, why="other")

        assert await store.put_endpoint(LAB, other) is False
        assert await store.endpoint(LAB, endpoint.id) == replace(endpoint, revision=2)

    @pytest.mark.parametrize("revision", [1, 2])
    async def test_another_tenants_endpoint_is_not_replaced(
        self, store: Store, revision: int
    ) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)

        theirs = replace(endpoint, tenant=OTHER, revision=revision)

        assert await store.put_endpoint(OTHER, theirs) is False
        assert await store.endpoint(LAB, endpoint.id) == endpoint

    async def test_an_endpoint_that_is_not_there_is_not_replaced(self, store: Store) -> None:
        assert await store.put_endpoint(LAB, an_endpoint(revision=2)) is False
        assert await store.endpoints(LAB) == []

    async def test_of_racing_changes_of_an_endpoint_one_succeeds(
        self, store: Store, other_store: Store
    ) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)
        changes = [replace(endpoint, revision=2, why=str(number)) for number in range(10)]

        put = await asyncio.gather(
            *(
                item.put_endpoint(LAB, change)
                for item, change in zip([store, other_store] * 5, changes, strict=True)
            )
        )

        assert put.count(True) == 1
        assert await store.endpoint(LAB, endpoint.id) == changes[put.index(True)]

    async def test_a_changed_endpoint_keeps_its_condition_and_how_often_it_was_reopened(
        self, store: Store
    ) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)
        (delivery,) = await queue(store, 1, endpoint=endpoint.id)
        await end(store, delivery)
        await store.reopen(LAB, endpoint.id, [delivery.event_id], now=NOW)
        await store.save_health(endpoint.id, b'{"failing":1}')

        await store.put_endpoint(LAB, replace(endpoint, revision=2))

        found = await store.endpoint(LAB, endpoint.id)
        assert found == replace(endpoint, revision=2, condition=b'{"failing":1}', reopened=1)

    async def test_endpoints_are_listed_oldest_first_deleted_ones_too(self, store: Store) -> None:
        for created, tenant in ((3, LAB), (1, OTHER), (2, LAB)):
            await store.put_endpoint(
                tenant, an_endpoint(created=created, tenant=tenant, state="deleted")
            )

        assert [endpoint.created for endpoint in await store.endpoints(LAB)] == [2, 3]

    async def test_another_tenants_endpoint_is_not_seen(self, store: Store) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)

        assert await store.endpoint(OTHER, endpoint.id) is None
        assert await store.endpoints(OTHER) == []

    async def test_those_who_send_see_all_endpoints_but_deleted_ones(self, store: Store) -> None:
        shown = [an_endpoint(created=2), an_endpoint(created=1, tenant=OTHER, state="disabled")]
        for endpoint in (*shown, an_endpoint(state="deleted")):
            await store.put_endpoint(endpoint.tenant, endpoint)

        assert await store.all_endpoints() == shown[::-1]

    async def test_or_those_of_some_tenants(self, store: Store) -> None:
        ours, theirs = an_endpoint(created=2), an_endpoint(created=1, tenant=OTHER)
        somebodys = an_endpoint(tenant="5f0c5f7a-0000-4000-8000-000000000000")
        for endpoint in (ours, theirs, somebodys, an_endpoint(state="deleted")):
            await store.put_endpoint(endpoint.tenant, endpoint)

        assert await store.all_endpoints(of={LAB, OTHER}) == [theirs, ours]
        assert await store.all_endpoints(of=[LAB, somebodys.id]) == [ours]
        assert await store.all_endpoints(of=[]) == []

    async def test_a_condition_is_kept_and_is_no_change_of_the_endpoint(
        self, store: Store, reader: Store
    ) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)

        await store.save_health(endpoint.id, bytes(range(256)))

        found = await reader.endpoint(LAB, endpoint.id)
        assert found == replace(endpoint, condition=bytes(range(256)))

    async def test_the_condition_of_an_unknown_endpoint_is_dropped(self, store: Store) -> None:
        await store.save_health(new_id(), b"{}")

        assert await store.all_endpoints() == []

    async def test_a_copied_endpoint_is_there_as_it_is(self, store: Store) -> None:
        endpoint = replace(a_full_endpoint(), revision=7, condition=b"{1}", reopened=3)
        before = replace(endpoint, revision=2, reopened=1)

        assert await store.copy_endpoint(before, over=None)
        assert await store.copy_endpoint(endpoint, over=before)

        assert await store.endpoints(LAB) == [endpoint]

    async def test_an_endpoint_is_not_copied_over_what_it_has_become(self, store: Store) -> None:
        endpoint = an_endpoint()
        copy = replace(endpoint, description="copy")
        await store.put_endpoint(LAB, endpoint)
        await store.save_health(endpoint.id, b"{1}")

        copied = [await store.copy_endpoint(copy, over=item) for item in (None, endpoint)]

        assert copied == [False, False]
        assert await store.endpoints(LAB) == [replace(endpoint, condition=b"{1}")]


class _AppendingContract:
    """A queue without gaps, in which no event stands twice."""

    async def test_deliveries_come_back_as_they_were_appended(
        self, store: Store, reader: Store
    ) -> None:
        delivery = a_full_delivery(new_id())

        assert await store.append([delivery]) == 1

        (read,) = await stored_deliveries(reader, delivery.endpoint)
        for field in fields(Delivery):
            assert getattr(read, field.name) == getattr(delivery, field.name), field.name

    async def test_many_deliveries_are_appended_in_their_order(self, store: Store) -> None:
        deliveries = await queue(store, 300)

        assert await stored_deliveries(store, deliveries[0].endpoint, limit=1000) == deliveries

    async def test_appending_nothing_adds_nothing(self, store: Store) -> None:
        assert await store.append([]) == 0

    @pytest.mark.parametrize("changes", [{"sequence": 9}, {"event_id": "evt_new"}])
    async def test_appending_stops_where_the_event_or_its_place_is_taken(
        self, store: Store, changes: dict[str, Any]
    ) -> None:
        endpoint = new_id()
        taken = a_delivery(endpoint, 3)
        await store.append([taken])
        new = [a_delivery(endpoint, number) for number in (1, 2, 3, 4)]
        new[2] = replace(taken, body=b"other", **changes)

        assert await store.append(new) == 2

        assert await stored_deliveries(store, endpoint) == [*new[:2], taken]

    async def test_appending_again_adds_nothing(self, store: Store) -> None:
        deliveries = await queue(store, 3)

        assert await store.append(deliveries) == 0
        assert await stored_deliveries(store, deliveries[0].endpoint) == deliveries

    async def test_each_endpoint_has_a_queue_of_its_own(self, store: Store) -> None:
        first, second = await queue(store, 2), await queue(store, 2)

        assert await stored_deliveries(store, first[0].endpoint) == first
        assert await stored_deliveries(store, second[0].endpoint) == second

    async def test_those_who_append_at_once_leave_no_gap_and_tell_nobody_twice(
        self, store: Store, other_store: Store
    ) -> None:
        endpoint, events = new_id(), [f"evt_{number}" for number in range(60)]

        async def relay(own: Store, ordered: Sequence[str]) -> None:
            while left := _without(ordered, await own.existing_deliveries(endpoint, ordered)):
                last = (await own.last_sequences([endpoint])).get(endpoint, 0)
                places = enumerate(left[:7], start=last + 1)
                await own.append([a_delivery(endpoint, n, event_id=place) for n, place in places])

        await asyncio.gather(
            relay(store, events), relay(other_store, events[::-1]), relay(store, events[30:])
        )

        found = await stored_deliveries(store, endpoint)
        assert [delivery.sequence for delivery in found] == list(range(1, 61))
        assert sorted(delivery.event_id for delivery in found) == sorted(events)

    async def test_the_ends_of_queues_are_their_highest_places(self, store: Store) -> None:
        first, second = await queue(store, 12), await queue(store, 1)
        wanted = [first[0].endpoint, second[0].endpoint, new_id()]

        assert await store.last_sequences(wanted) == {wanted[0]: 12, wanted[1]: 1}

    async def test_told_are_the_events_for_which_there_is_a_delivery(self, store: Store) -> None:
        (delivery,) = await queue(store, 1)
        await queue(store, 2)

        assert await store.existing_deliveries(delivery.endpoint, ["evt_1", "evt_2"]) == {"evt_1"}

    async def test_what_was_appended_is_there_after_a_restart(
        self, store: Store, reopen: Any
    ) -> None:
        deliveries = await queue(store, 3)
        await store.stop()

        assert await stored_deliveries(await reopen(), deliveries[0].endpoint) == deliveries


def _without(events: Sequence[str], told: Collection[str]) -> list[str]:
    return [event for event in events if event not in told]


class _SendingContract:
    """Who begins an attempt has the delivery until it ends or the lease does."""

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

    async def test_whether_an_outcome_was_noted_is_told_to_a_repeat_too(
        self, store: Store
    ) -> None:
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


class _ReopeningContract:
    """What was ended is sent again, and what waits is sent at once."""

    @pytest.mark.parametrize("state", ["delivered", "dead"])
    async def test_a_reopened_delivery_is_pending_in_its_place_and_with_its_log(
        self, store: Store, state: DeliveryState
    ) -> None:
        delivery = (await queue(store, 3))[1]
        await end(store, delivery, state)
        (ended,) = await stored_deliveries(
            store, delivery.endpoint, event_ids=frozenset(["evt_2"])
        )

        assert await store.reopen(LAB, delivery.endpoint, ["evt_2"], now=UNTIL) == 1

        reopened = replace(ended, state="pending", number=0, due=UNTIL, ended=None)
        assert (await stored_deliveries(store, delivery.endpoint))[1] == reopened

    async def test_a_delivery_that_waits_for_its_next_attempt_becomes_due(
        self, store: Store
    ) -> None:
        (delivery,) = await queue(store, 1)
        attempt = await begin(store, delivery)
        await store.finish(
            [AttemptResult(key=delivery.key, attempt=attempt, state="retrying", due=UNTIL)]
        )
        (waiting,) = await stored_deliveries(store, delivery.endpoint)

        assert await store.reopen(LAB, delivery.endpoint, ["evt_1"], now=NOW + 1) == 1
        assert await stored_deliveries(store, delivery.endpoint) == [replace(waiting, due=NOW + 1)]

    async def test_a_delivery_that_is_due_or_being_sent_is_left_alone(self, store: Store) -> None:
        deliveries = await queue(store, 2)
        await begin(store, deliveries[0])
        before = await stored_deliveries(store, deliveries[0].endpoint)

        events = [delivery.event_id for delivery in deliveries]

        assert await store.reopen(LAB, deliveries[0].endpoint, events, now=NOW + 1) == 0
        assert await stored_deliveries(store, deliveries[0].endpoint) == before

    async def test_other_tenants_and_unknown_deliveries_are_not_reopened(
        self, store: Store
    ) -> None:
        (delivery,) = await queue(store, 1)
        await end(store, delivery)

        assert await store.reopen(OTHER, delivery.endpoint, ["evt_1"], now=NOW) == 0
        assert await store.reopen(LAB, new_id(), ["evt_1"], now=NOW) == 0
        assert await store.reopen(LAB, delivery.endpoint, ["evt_2"], now=NOW) == 0
        assert await store.count_deliveries(LAB, delivery.endpoint) == {"delivered": 1}

    async def test_an_endpoint_counts_that_something_was_reopened(self, store: Store) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)
        deliveries = await queue(store, 2, endpoint=endpoint.id)
        for delivery in deliveries:
            await end(store, delivery)

        await store.reopen(LAB, endpoint.id, ["evt_1", "evt_2"], now=UNTIL)

        assert await store.endpoint(LAB, endpoint.id) == replace(endpoint, reopened=1)


class _ListingContract:
    """What was sent, and what is still to be sent, as its tenant asks for it."""

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, [1, 2, 3, 4, 5, 6]),
            ({"after": 2, "limit": 3}, [3, 4, 5]),
            ({"newest_first": True, "limit": 2}, [6, 5]),
            ({"newest_first": True, "before": 3}, [2, 1]),
            ({"before": 3}, [1, 2]),
            ({"states": ["delivered"]}, [1, 3]),
            ({"states": ["delivered", "retrying"]}, [1, 2, 3]),
            ({"states": ["delivered", "pending"], "limit": 3}, [1, 3, 4]),
            (
                {"states": ["delivered", "pending"], "newest_first": True, "before": 6},
                [5, 4, 3, 1],
            ),
            ({"states": ["dead"]}, []),
            ({"event_type": "diagnosticreport.updated"}, [4]),
            ({"event_ids": ["evt_2", "evt_5", "evt_9"]}, [2, 5]),
            ({"event_ids": ["evt_2", "evt_3"], "states": ["delivered"]}, [3]),
            ({"event_ids": []}, []),
            ({"since": NOW + 2, "until": NOW + 4}, [2, 3]),
            ({"limit": 0}, []),
        ],
        ids=str,
    )
    async def test_deliveries_are_listed_as_asked_for(
        self, store: Store, changes: dict[str, Any], expected: list[int]
    ) -> None:
        endpoint = new_id()
        deliveries = [a_delivery(endpoint, n, created=NOW + n) for n in range(1, 7)]
        deliveries[3] = replace(deliveries[3], event_type="diagnosticreport.updated")
        await store.append(deliveries)
        await queue(store, 6)
        for number, state in ((0, "delivered"), (1, "retrying"), (2, "delivered")):
            await end(store, deliveries[number], state)  # type: ignore[arg-type]

        wanted = {
            name: frozenset(value) if isinstance(value, list) else value
            for name, value in changes.items()
        }
        assert await sequences(store, endpoint, **wanted) == expected

    async def test_another_tenants_deliveries_are_not_seen(self, store: Store) -> None:
        (delivery,) = await queue(store, 1)

        assert await store.deliveries(OTHER, DeliveryQuery(endpoint=delivery.endpoint)) == []
        assert await store.count_deliveries(OTHER, delivery.endpoint) == {}

    async def test_deliveries_are_counted_by_their_states(self, store: Store) -> None:
        deliveries = await queue(store, 5)
        await end(store, deliveries[0])
        await end(store, deliveries[1], "dead")
        await end(store, deliveries[2], "retrying")

        counts = await store.count_deliveries(LAB, deliveries[0].endpoint)

        assert counts == {"delivered": 1, "dead": 1, "retrying": 1, "pending": 2}


class _LeaseContract:
    """A name belongs to one owner at a time."""

    async def test_a_free_name_is_ours(self, store: Store) -> None:
        ours = await store.lease(["a", "b"], owner="we", now=NOW, until=UNTIL)

        assert ours == {"a", "b"}

    async def test_a_name_of_another_is_not_ours(self, store: Store, other_store: Store) -> None:
        await store.lease(["a"], owner="they", now=NOW, until=UNTIL)

        ours = await other_store.lease(["a", "b"], owner="we", now=UNTIL - 1, until=UNTIL + 9)

        assert ours == {"b"}

    async def test_a_lease_of_ours_is_prolonged(self, store: Store) -> None:
        await store.lease(["a"], owner="we", now=NOW, until=UNTIL)

        assert await store.lease(["a"], owner="we", now=NOW, until=UNTIL + 9) == {"a"}
        assert await store.lease(["a"], owner="they", now=UNTIL, until=UNTIL + 9) == frozenset()

    async def test_a_lease_that_has_run_out_can_be_taken(self, store: Store) -> None:
        await store.lease(["a"], owner="they", now=NOW, until=UNTIL)

        assert await store.lease(["a"], owner="we", now=UNTIL, until=UNTIL + 9) == {"a"}

    async def test_a_lease_by_a_clock_that_was_wrong_can_be_taken(self, store: Store) -> None:
        await store.lease(["far", "near"], owner="they", now=NOW + 90, until=NOW + 100)
        await store.lease(["far"], owner="they", now=NOW + 91, until=NOW + 101)

        assert await store.lease(["far", "near"], owner="we", now=NOW, until=NOW + 10) == {"far"}

    async def test_a_lease_that_was_released_can_be_taken(self, store: Store) -> None:
        await store.lease(["a"], owner="they", now=NOW, until=UNTIL)
        await store.release(["a", "unknown"], owner="they")

        assert await store.lease(["a"], owner="we", now=NOW, until=UNTIL) == {"a"}

    async def test_a_lease_of_another_is_not_released(self, store: Store) -> None:
        await store.lease(["a"], owner="they", now=NOW, until=UNTIL)
        await store.release(["a"], owner="we")

        assert await store.lease(["a"], owner="we", now=NOW, until=UNTIL) == frozenset()

    async def test_of_those_who_want_a_name_at_once_one_gets_it(
        self, store: Store, other_store: Store
    ) -> None:
        names = [f"name{number}" for number in range(5)]
        await store.lease(names[:2], owner="before", now=NOW - 10, until=NOW)

        ours = await asyncio.gather(
            *(
                item.lease(names, owner=str(number), now=NOW, until=UNTIL)
                for number, item in enumerate([store, other_store] * 4)
            )
        )

        assert sorted(name for our in ours for name in our) == names


class _RelayContract:
    """No version with events is skipped, and none is published again."""

    async def test_a_version_with_events_is_unrelayed(self, store: Store, reader: Store) -> None:
        version = a_version(events=EVENTS, body=bytes(range(256)))
        await store.add(OTHER, version)

        assert await reader.pending_outbox(limit=10) == [(OTHER, OutboxEntry.of(version))]

    async def test_a_version_without_events_is_not(self, store: Store) -> None:
        await store.add(LAB, a_version())

        assert await store.pending_outbox(limit=10) == []

    async def test_a_version_that_was_refused_is_not(self, store: Store) -> None:
        version = a_version()
        await store.add(LAB, version)
        await store.add(LAB, replace(version, events=EVENTS))

        assert await store.pending_outbox(limit=10) == []

    async def test_a_version_that_is_marked_is_not_seen_again(
        self, store: Store, reader: Store
    ) -> None:
        versions = [a_version() for _ in range(3)]
        versions.append(successor(versions[0]))
        await events_added(store, versions)

        await store.mark_published([(versions[0].id, 1), (versions[2].id, 1), (new_id(), 1)])

        left = {(versions[1].id, 1), (versions[0].id, 2)}
        assert set(await pending_keys(reader)) == left

    async def test_of_versions_it_can_be_asked_which_are_unrelayed(
        self, store: Store, reader: Store
    ) -> None:
        first, silent, marked = a_version(), a_version(), a_version()
        await events_added(store, [first, successor(first), marked])
        await store.add(LAB, silent)
        await store.mark_published([(marked.id, 1), (first.id, 1)])

        keys = [(first.id, 1), (first.id, 2), (silent.id, 1), (marked.id, 1), (new_id(), 1)]

        assert await reader.outbox_contains(keys) == {(first.id, 2)}
        assert await reader.outbox_contains([]) == frozenset()

    async def test_marking_again_changes_nothing(self, store: Store) -> None:
        version = a_version()
        await events_added(store, [version])
        await store.mark_published([(version.id, 1)])

        await store.mark_published([(version.id, 1)])

        assert await store.pending_outbox(limit=10) == []

    @pytest.mark.parametrize("limit", [1, 5, 100])
    async def test_the_earlier_version_of_a_resource_stands_first_and_none_is_passed_over(
        self, store: Store, limit: int
    ) -> None:
        resources = [a_version(updated=NOW + 3 * number) for number in range(4)]
        versions = list(resources)
        for _ in range(3):
            resources = [successor(version) for version in resources]
            versions += resources
        await events_added(store, versions)

        met: list[tuple[str, int]] = []
        while page := await pending_keys(store, limit=limit):
            assert len(page) <= limit
            met += page
            await store.mark_published(page)

        assert sorted(met) == sorted((version.id, version.version) for version in versions)
        for resource in resources:
            assert [number for name, number in met if name == resource.id] == [1, 2, 3, 4]


class _SweepingContract:
    """Old deliveries are swept, and the queue continues from where it was."""

    async def test_what_ended_long_ago_is_swept(self, store: Store) -> None:
        deliveries = await queue(store, 4)
        await end(store, deliveries[0], "delivered", now=NOW)
        await end(store, deliveries[1], "dead", now=NOW)

        swept = await store.sweep_deliveries(delivered=NOW + 41, dead=NOW + 41, open_=UNTIL)

        assert swept == 2
        assert await sequences(store, deliveries[0].endpoint) == [3, 4]

    async def test_what_ended_lately_stays(self, store: Store) -> None:
        deliveries = await queue(store, 4)
        await end(store, deliveries[0], "delivered")
        await end(store, deliveries[1], "dead")

        assert await store.sweep_deliveries(delivered=NOW + 40, dead=NOW + 40, open_=0) == 0

    async def test_what_was_delivered_and_what_was_given_up_have_terms_of_their_own(
        self, store: Store
    ) -> None:
        deliveries = await queue(store, 4)
        await end(store, deliveries[0], "delivered")
        await end(store, deliveries[1], "dead")

        assert await store.sweep_deliveries(delivered=0, dead=UNTIL, open_=0) == 1
        assert await sequences(store, deliveries[0].endpoint) == [1, 3, 4]

    async def test_the_newest_delivery_of_an_endpoint_stays(self, store: Store) -> None:
        deliveries = await queue(store, 3)
        for delivery in deliveries:
            await end(store, delivery)

        assert await store.sweep_deliveries(delivered=UNTIL, dead=UNTIL, open_=UNTIL) == 2
        assert await store.last_sequences([deliveries[0].endpoint]) == {deliveries[0].endpoint: 3}

    @pytest.mark.parametrize(
        ("state", "left"),
        [
            ("unverified", [3, 4]),
            ("active", [1, 2, 3, 4]),
            ("paused", [3, 4]),
            ("disabled", [3, 4]),
            ("deleted", [3, 4]),
        ],
    )
    async def test_what_was_left_open_goes_if_its_endpoint_is_not_active(
        self, store: Store, state: Any, left: list[int]
    ) -> None:
        endpoint = an_endpoint(state=state)
        await store.put_endpoint(LAB, endpoint)
        deliveries = [a_delivery(endpoint.id, n, created=NOW + n) for n in range(1, 5)]
        await store.append(deliveries)
        await end(store, deliveries[1], "retrying")

        swept = await store.sweep_deliveries(delivered=0, dead=0, open_=NOW + 3)

        assert swept == 4 - len(left)
        assert await sequences(store, endpoint.id) == left

    async def test_of_a_deleted_endpoint_nothing_stays(self, store: Store) -> None:
        endpoint = an_endpoint(state="deleted")
        await store.put_endpoint(LAB, endpoint)
        for delivery in await queue(store, 2, endpoint=endpoint.id):
            await end(store, delivery)

        assert await store.sweep_deliveries(delivered=UNTIL, dead=0, open_=0) == 2
        assert await sequences(store, endpoint.id) == []

    async def test_what_was_reopened_lately_is_not_left_open_long_ago(self, store: Store) -> None:
        endpoint = an_endpoint(state="paused")
        await store.put_endpoint(LAB, endpoint)
        delivery, _other, _newest = await queue(store, 3, endpoint=endpoint.id)
        await end(store, delivery, "dead")
        await store.reopen(LAB, endpoint.id, [delivery.event_id], now=NOW + 50)

        assert await store.sweep_deliveries(delivered=0, dead=0, open_=NOW + 50) == 1
        assert await sequences(store, endpoint.id) == [1, 3]
        assert await store.sweep_deliveries(delivered=0, dead=0, open_=NOW + 51) == 1

    async def test_thousands_are_swept(self, store: Store) -> None:
        endpoint = new_id()
        ended = [
            a_delivery(endpoint, number, state="delivered", ended=NOW) for number in range(1, 1202)
        ]
        await store.put_deliveries(ended)

        assert await store.sweep_deliveries(delivered=UNTIL, dead=0, open_=0) == 1200


class _MovingContract:
    """Deliveries are moved as they are."""

    async def test_deliveries_are_walked_in_the_order_of_endpoint_and_sequence(
        self, store: Store
    ) -> None:
        deliveries = [*await queue(store, 12), *await queue(store, 2)]
        ordered = sorted(deliveries, key=lambda each: (each.endpoint, each.sequence))

        walked: list[Delivery] = []
        while page := await store.scan_deliveries(
            after=(walked[-1].endpoint, walked[-1].sequence) if walked else ("", 0), limit=5
        ):
            walked += page

        assert walked == ordered

    async def test_deliveries_that_are_put_are_there_as_they_are(
        self, store: Store, reader: Store
    ) -> None:
        endpoint = new_id()
        deliveries = [a_delivery(endpoint, 2), a_full_delivery(endpoint)]

        await store.put_deliveries(deliveries)

        assert await stored_deliveries(reader, endpoint) == deliveries

    async def test_deliveries_that_are_put_again_are_replaced(self, store: Store) -> None:
        endpoint = new_id()
        full = a_full_delivery(endpoint)
        await store.put_deliveries([full])

        await store.put_deliveries([a_delivery(endpoint, 7)])

        assert await stored_deliveries(store, endpoint) == [a_delivery(endpoint, 7)]

    async def test_an_attempt_of_a_moved_delivery_can_end(self, store: Store) -> None:
        (delivery,) = await queue(store, 1)
        attempt = await begin(store, delivery)
        (moved,) = [replace(item, endpoint=new_id()) for item in await store.scan_deliveries()]
        await store.put_deliveries([moved])

        await store.finish([AttemptResult(key=moved.key, attempt=attempt, state="delivered")])

        assert await store.count_deliveries(LAB, moved.endpoint) == {"delivered": 1}


class WebhookContract(
    _EndpointContract,
    _AppendingContract,
    _SendingContract,
    _ReopeningContract,
    _ListingContract,
    _LeaseContract,
    _RelayContract,
    _SweepingContract,
    _MovingContract,
):
    """Every promise of `fhirpub.storage.webhook_contract`, with the fixtures of StoreContract."""
