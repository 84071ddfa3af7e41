"""Which deliveries a page of the log has, how it goes on, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import BrokenRule
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import Delivery, Endpoint, EndpointState
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import new_id
from fhirpub.testing.webhook_contract import a_delivery, an_attempt, an_endpoint
from fhirpub.webhooks.management import delivery_log
from fhirpub.webhooks.management.delivery_log import Count, DeliveryLog, Page, Replayed, Wanted

ENDPOINT = an_endpoint()
HOUR, DAY = 3_600_000, 86_400_000


@pytest.fixture
async def store(store: SqliteStore) -> SqliteStore:
    """A store with the endpoint."""
    await store.put_endpoint(ENDPOINT.tenant, ENDPOINT)
    return store


CLOCK = HandClock()
NOW = CLOCK.now


def log(store: SqliteStore) -> DeliveryLog:
    return DeliveryLog(store, clock=CLOCK)


def numbers(page: Page) -> list[int]:
    return [delivery.sequence for delivery in page.deliveries]


async def put(store: SqliteStore, *changes: dict[str, Any]) -> list[Delivery]:
    made = [a_delivery(ENDPOINT.id, at, **change) for at, change in enumerate(changes, 1)]
    await store.put_deliveries(made)
    return made


@pytest.mark.parametrize(
    ("limit", "expected", "following"),
    [(2, [5, 4], 4), (4, [5, 4, 3, 2], 2), (5, [5, 4, 3, 2, 1], 1), (6, [5, 4, 3, 2, 1], None)],
)
async def test_the_newest_come_first_and_a_full_page_names_its_last(
    store: SqliteStore, limit: int, expected: list[int], following: int | None
) -> None:
    await put(store, *[{}] * 5)

    page = await log(store).latest(ENDPOINT, Wanted(), limit=limit)

    assert (numbers(page), page.following) == (expected, following)


async def test_a_page_goes_on_before_the_number_that_is_named(store: SqliteStore) -> None:
    await put(store, *[{}] * 5)

    page = await log(store).latest(ENDPOINT, Wanted(), before=4, limit=2)

    assert numbers(page) == [3, 2]


async def test_what_is_filtered_is_made_up_for_by_later_pages(store: SqliteStore) -> None:
    await put(
        store, *({"resource": f"Patient/{at % 3}"} for at in range(9)), {"resource": "Patient/1"}
    )

    page = await log(store).latest(ENDPOINT, Wanted(), resource="Patient/0", limit=2)

    assert numbers(page) == [7, 4]
    rest = await log(store).latest(
        ENDPOINT, Wanted(), resource="Patient/0", before=page.following, limit=2
    )
    assert numbers(rest) == [1]


STATES: list[dict[str, Any]] = [
    {"state": "pending"},
    {"state": "pending", "leased": NOW + 1},
    {"state": "retrying"},
    {"state": "delivered", "ended": NOW},
    {"state": "dead", "ended": NOW},
]


@pytest.mark.parametrize(
    ("state", "of", "expected"),
    [
        ("pending", "active", [1]),
        ("delivering", "active", [2]),
        ("retrying", "active", [3]),
        ("delivered", "active", [4]),
        ("dead", "active", [5]),
        ("held", "active", []),
        ("held", "paused", [3, 1]),
        ("pending", "paused", []),
        ("cancelled", "deleted", [3, 2, 1]),
    ],
)
async def test_deliveries_are_found_by_what_becomes_of_them(
    store: SqliteStore, state: Any, of: EndpointState, expected: list[int]
) -> None:
    await put(store, *STATES)

    page = await log(store).latest(replace(ENDPOINT, state=of), Wanted(), state=state, limit=9)

    assert numbers(page) == expected


async def test_events_are_read_in_order_after_a_number(store: SqliteStore) -> None:
    await put(store, *[{}] * 4)

    full = await log(store).events(ENDPOINT, after=1, limit=2)
    short = await log(store).events(ENDPOINT, after=3, limit=2)

    assert (numbers(full), full.following) == ([2, 3], 3)
    assert (numbers(short), short.following) == ([4], None)


async def test_events_that_were_queued_earlier_are_left_out(store: SqliteStore) -> None:
    await put(store, {"created": NOW - 1}, {"created": NOW}, {"created": NOW + 1})

    page = await log(store).events(ENDPOINT, after=0, since=NOW, limit=9)

    assert numbers(page) == [2, 3]


async def test_the_last_sequence_is_zero_before_the_first_event(store: SqliteStore) -> None:
    assert await log(store).last_sequence(ENDPOINT) == 0
    await put(store, {}, {})
    assert await log(store).last_sequence(ENDPOINT) == 2


async def test_one_delivery_is_shown_with_its_answers(store: SqliteStore) -> None:
    await put(store, {}, {"attempts": (an_attempt(answer=b"OK"),)})

    found = await log(store).one(ENDPOINT, "evt_2")

    assert found is not None
    assert [attempt.answer for attempt in found.attempts] == [b"OK"]
    assert await log(store).one(ENDPOINT, "evt_9") is None
    assert await log(store).one(replace(ENDPOINT, tenant=new_id()), "evt_2") is None


@pytest.mark.parametrize(
    ("wanted", "reopened"),
    [
        (Wanted(), 2),
        (Wanted(from_sequence=5), 1),
        (Wanted(to_sequence=4), 1),
        (Wanted(from_sequence=4, to_sequence=4), 1),
        (Wanted(event_ids=frozenset({"evt_4", "evt_9"})), 1),
    ],
)
async def test_a_replay_opens_what_has_ended_within_its_bounds(
    store: SqliteStore, wanted: Wanted, reopened: int
) -> None:
    await put(store, *STATES)

    ended = frozenset({"delivered", "dead"})
    wanted = replace(wanted, states=ended)  # type: ignore[arg-type]

    assert await log(store).replay(ENDPOINT, wanted) == Replayed(reopened, None)


@pytest.mark.parametrize("state", ["deleted"])
async def test_nothing_is_replayed_for_an_endpoint_to_which_nothing_is_sent(
    store: SqliteStore, state: EndpointState
) -> None:
    await put(store, *STATES)

    with pytest.raises(BrokenRule):
        await log(store).replay(replace(ENDPOINT, state=state, url="pull:a"), Wanted())


def ended(at: int, status: int = 200, duration: int = 10) -> dict[str, Any]:
    return {
        "attempts": (an_attempt(begun=at - duration, ended=at, status=status, duration=duration),)
    }


async def test_statistics_are_of_the_last_day(store: SqliteStore) -> None:
    await put(
        store,
        ended(NOW - DAY - 1, 200, 1),
        ended(NOW - DAY, 200, 2),
        ended(NOW, 299, 3),
        ended(NOW - 1, 199, 4),
        ended(NOW - 1, 300, 5),
        {"attempts": (an_attempt(ended=None),), "state": "retrying", "created": NOW - 7},
    )

    stats = await log(store).stats(ENDPOINT)

    assert (stats.attempts, stats.succeeded) == (4, 2)
    assert (stats.p50, stats.p95) == (3, 5)
    assert stats.last_sequence == 6


async def test_hours_and_days_are_counted_apart(store: SqliteStore) -> None:
    await put(
        store,
        ended(NOW),
        ended(NOW - HOUR, 500),
        ended(NOW - HOUR - 1),
        ended(NOW - DAY),
        ended(NOW - 7 * DAY),
        ended(NOW - 7 * DAY - 1),
    )

    stats = await log(store).stats(ENDPOINT)

    assert (len(stats.by_hour), len(stats.by_day)) == (24, 7)
    assert stats.by_hour[0] == Count(NOW - DAY, 1, 0)
    assert stats.by_hour[-2:] == [Count(NOW - 2 * HOUR, 1, 0), Count(NOW - HOUR, 1, 1)]
    assert stats.by_day[0] == Count(NOW - 7 * DAY, 1, 0)
    assert stats.by_day[-1] == Count(NOW - DAY, 3, 1)
    assert sum(count.succeeded + count.failed for count in stats.by_hour) == stats.attempts


@pytest.mark.parametrize(
    ("state", "counts"),
    [
        ("active", {"pending": 2, "retrying": 1, "delivered": 1, "dead": 1}),
        ("paused", {"held": 3, "delivered": 1, "dead": 1}),
        ("deleted", {"cancelled": 3, "delivered": 1, "dead": 1}),
    ],
)
async def test_what_is_open_is_counted_by_what_becomes_of_it(
    store: SqliteStore, state: EndpointState, counts: dict[str, int]
) -> None:
    await put(store, *STATES)

    stats = await log(store).stats(replace(ENDPOINT, state=state))

    assert {name: number for name, number in stats.counts.items() if number} == counts


async def test_the_oldest_open_delivery_is_the_first_that_has_not_ended(
    store: SqliteStore,
) -> None:
    await put(
        store,
        {"created": 1, "state": "dead", "ended": 2},
        {"created": 3, "state": "retrying"},
        {"created": 4},
    )

    assert (await log(store).stats(ENDPOINT)).oldest_open == 3


async def test_deliveries_of_another_endpoint_are_not_listed(store: SqliteStore) -> None:
    other: Endpoint = an_endpoint()
    await store.put_endpoint(other.tenant, other)
    await store.put_deliveries([a_delivery(other.id)])
    await put(store, {})

    stats = await log(store).stats(other)
    page = await log(store).latest(ENDPOINT, Wanted(), limit=9)

    assert len(page.deliveries) == 1
    assert stats.counts["pending"] == 1


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(event_type="patient.created"), [2]),
        (Wanted(since=NOW, until=NOW + 2), [3, 2]),
        (Wanted(until=NOW), [1]),
        (Wanted(from_sequence=3), [4, 3]),
        (Wanted(event_ids=frozenset({"evt_1", "evt_3"})), [3, 1]),
    ],
)
async def test_a_page_has_what_is_wanted_alone(
    store: SqliteStore, wanted: Wanted, expected: list[int]
) -> None:
    await put(
        store,
        {"created": NOW - 1},
        {"created": NOW, "event_type": "patient.created"},
        {"created": NOW + 1},
        {"created": NOW + 2},
    )

    assert numbers(await log(store).latest(ENDPOINT, wanted, limit=9)) == expected


async def test_a_page_of_events_goes_on_behind_its_last_one(store: SqliteStore) -> None:
    await put(store, *[{}] * 4)

    assert (await log(store).events(ENDPOINT, after=0, limit=3)).following == 3


async def test_a_step_of_a_replay_goes_on_behind_its_last_one(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "_REPLAY_BATCH_SIZE", 3)
    await put(store, *[{"state": "dead", "ended": NOW}] * 4)

    first = await log(store).replay(ENDPOINT, Wanted())
    second = await log(store).replay(ENDPOINT, Wanted(from_sequence=first.following))

    assert (first, second) == (Replayed(3, 4), Replayed(1, None))


async def test_a_page_that_is_made_up_for_has_no_more_than_its_limit(store: SqliteStore) -> None:
    wanted, other = {"resource": "Patient/1"}, {"resource": "Patient/2"}
    await put(store, wanted, wanted, wanted, wanted, other, wanted)

    page = await log(store).latest(ENDPOINT, Wanted(), resource="Patient/1", limit=2)

    assert (numbers(page), page.following) == ([6, 4], 4)


async def test_statistics_count_more_deliveries_than_are_read_at_once(store: SqliteStore) -> None:
    await put(store, *(ended(NOW - number) for number in range(60)))

    stats = await log(store).stats(ENDPOINT)

    assert (stats.attempts, stats.succeeded) == (60, 60)


async def test_statistics_are_of_the_thousand_newest_deliveries(store: SqliteStore) -> None:
    await put(store, *[ended(NOW)] * 1_030)

    assert (await log(store).stats(ENDPOINT)).attempts == 1_000


async def test_the_last_sequence_counts_deliveries_that_are_no_longer_kept(
    store: SqliteStore,
) -> None:
    await store.put_deliveries([a_delivery(ENDPOINT.id, 7)])

    assert (await log(store).stats(ENDPOINT)).last_sequence == 7


async def test_a_page_that_finds_little_ends_after_ten_reads_and_goes_on_there(
    store: SqliteStore,
) -> None:
    await put(store, {"resource": "Patient/1"}, *[{"resource": "Patient/2"}] * 10)

    first = await log(store).latest(ENDPOINT, Wanted(), resource="Patient/1", limit=1)
    second = await log(store).latest(
        ENDPOINT, Wanted(), resource="Patient/1", limit=1, before=first.following
    )

    assert (numbers(first), first.following) == ([], 2)
    assert numbers(second) == [1]
