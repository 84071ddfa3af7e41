"""What was sent to an endpoint, what came back, and having it sent again."""

from __future__ import annotations

import asyncio
import math
import typing
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fhirpub.runtime.clock import Clock
from fhirpub.storage.webhook_contract import (
    Delivery,
    DeliveryQuery,
    DeliveryState,
    Endpoint,
    Endpoints,
)
from fhirpub.webhooks.management.endpoint_states import refuse_unsent

ShownState = Literal["pending", "delivering", "retrying", "delivered", "dead", "held", "cancelled"]
"""What becomes of a delivery, with its endpoint taken into account."""

SHOWN_STATES: tuple[ShownState, ...] = typing.get_args(ShownState)
OPEN: frozenset[DeliveryState] = frozenset({"pending", "retrying"})

_STORED: Mapping[ShownState, frozenset[DeliveryState]] = {
    "pending": frozenset({"pending"}),
    "retrying": frozenset({"retrying"}),
    "delivered": frozenset({"delivered"}),
    "dead": frozenset({"dead"}),
    "delivering": OPEN,
    "held": OPEN,
    "cancelled": OPEN,
}
_MAX_PAGES = 10
_REPLAY_BATCH_SIZE = 200
_JUDGED_DELIVERIES = 1_000
_VALIDATION_BATCH_SIZE = 25
_MAX_READERS = 4
"""Pages that are read at a time: 100 deliveries may have 12 MB of answers."""
STATS_SECONDS = 86_400
_HOUR_MS = 3_600_000
_HOURS, _DAYS = 24, 7
"""Of so many hours, and of so many days, attempts are counted apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which deliveries are meant; None: any. ``until`` itself is not, ``to_sequence`` is."""

    states: frozenset[DeliveryState] = frozenset()
    event_type: str | None = None
    event_ids: frozenset[str] | None = None
    from_sequence: int | None = None
    to_sequence: int | None = None
    since: int | None = None
    until: int | None = None

    def query(self, endpoint: Endpoint, *, limit: int) -> DeliveryQuery:
        """Return the first page of these, oldest first."""
        return DeliveryQuery(
            endpoint=endpoint.id,
            states=self.states,
            event_type=self.event_type,
            event_ids=self.event_ids,
            since=self.since,
            until=self.until,
            after=(self.from_sequence or 1) - 1,
            limit=limit,
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Deliveries, and the sequence with which to ask for the next ones; None: these are all."""

    deliveries: Sequence[Delivery]
    following: int | None


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many deliveries are sent again, and the sequence from which to go on; None: all."""

    reopened: int
    following: int | None


@dataclass(frozen=True, slots=True)
class Count:
    """How many attempts ended from a moment on, in an hour or in a day."""

    since: int
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True)
class _Ended:
    """An attempt that ended; the text of its answer may be large, and is left out."""

    at: int
    duration: int
    status: int

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """How an endpoint does. Durations are milliseconds of attempts that ended in the last day.

    They are looked for in the 1,000 newest deliveries. ``oldest_open`` is when the oldest
    delivery that is still open was made. ``by_hour`` are the hours of the last day and
    ``by_day`` the days of the last week, the earliest first.
    """

    counts: Mapping[str, int]
    last_sequence: int
    oldest_open: int | None
    attempts: int
    succeeded: int
    p50: int | None
    p95: int | None
    by_hour: Sequence[Count]
    by_day: Sequence[Count]


def effective_state(delivery: Delivery, endpoint: Endpoint, *, now: int) -> ShownState:
    """Return what becomes of a delivery."""
    if delivery.state not in OPEN:
        return delivery.state
    if endpoint.state == "deleted":
        return "cancelled"
    if delivery.leased > now:
        return "delivering"
    return delivery.state if endpoint.state == "active" else "held"


class DeliveryLog:
    """Looks deliveries up, and has them sent again. It takes endpoints that the caller may see."""

    def __init__(self, store: Endpoints, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._readers = asyncio.Semaphore(_MAX_READERS)

    async def latest(
        self,
        endpoint: Endpoint,
        wanted: Wanted,
        *,
        state: ShownState | None = None,
        resource: str = "",
        before: int | None = None,
        limit: int,
    ) -> Page:
        """Return deliveries, newest first; a page may be short of its limit.

        Of events of one ``resource``, such as ``Type/id``, if it is given.
        """
        if state is not None:
            wanted = replace(wanted, states=_STORED[state])
        found: list[Delivery] = []
        for _page in range(_MAX_PAGES):
            query = replace(
                wanted.query(endpoint, limit=limit - len(found)), newest_first=True, before=before
            )
            page = await self._page(endpoint, query)
            now = self._clock()
            found += [
                delivery
                for delivery in page
                if (state is None or effective_state(delivery, endpoint, now=now) == state)
                and resource in ("", delivery.resource)
            ]
            if len(page) < query.limit:
                return Page(found, None)
            before = page[-1].sequence
            if len(found) == limit:
                break
        return Page(found, before)

    async def one(self, endpoint: Endpoint, event_id: str) -> Delivery | None:
        """Return the delivery of an event, with its attempts."""
        wanted = Wanted(event_ids=frozenset({event_id}))
        found = await self._store.deliveries(endpoint.tenant, wanted.query(endpoint, limit=1))
        return next(iter(found), None)

    async def events(
        self, endpoint: Endpoint, *, after: int, since: int | None = None, limit: int
    ) -> Page:
        """Return the deliveries of an endpoint after a sequence number, in order.

        ``since`` leaves out those that were queued earlier.
        """
        wanted = Wanted(from_sequence=after + 1, since=since)
        page = await self._page(endpoint, wanted.query(endpoint, limit=limit))
        return Page(page, page[-1].sequence if len(page) == limit else None)

    async def last_sequence(self, endpoint: Endpoint) -> int:
        """Return the number of the latest event for an endpoint, 0 before the first."""
        query = replace(Wanted().query(endpoint, limit=1), newest_first=True)
        found = await self._store.deliveries(endpoint.tenant, query)
        return found[0].sequence if found else 0

    async def replay(self, endpoint: Endpoint, wanted: Wanted) -> Replayed:
        """Reopen some deliveries, earliest first, each with a fresh set of attempts.

        Those that still wait for a later attempt get it at once. To be repeated from the
        sequence that is returned, until that is None. Raises BrokenRule for an endpoint to which
        nothing is sent.
        """
        refuse_unsent(endpoint)
        query = wanted.query(endpoint, limit=_REPLAY_BATCH_SIZE)
        page = await self._page(endpoint, query)
        last = wanted.to_sequence
        chosen = [delivery for delivery in page if last is None or delivery.sequence <= last]
        # Also for none: this publishes those that an interrupted call before this one reopened.
        reopened = await self._store.reopen(
            endpoint.tenant,
            endpoint.id,
            [delivery.event_id for delivery in chosen],
            now=self._clock(),
        )
        ended = len(page) < query.limit or len(chosen) < len(page)
        return Replayed(reopened, None if ended else page[-1].sequence + 1)

    async def stats(self, endpoint: Endpoint) -> Stats:
        """Return how an endpoint does."""
        counts = await self._store.count_deliveries(endpoint.tenant, endpoint.id)
        now = self._clock()
        week = await self._ended_since(endpoint, now - _DAYS * STATS_SECONDS * 1000)
        day = [one for one in week if one.at >= now - STATS_SECONDS * 1000]
        durations = sorted(one.duration for one in day)
        return Stats(
            counts=_effective_counts(counts, endpoint),
            last_sequence=await self.last_sequence(endpoint),
            oldest_open=await self._oldest_open(endpoint),
            attempts=len(day),
            succeeded=sum(one.succeeded for one in day),
            p50=_percentile(durations, 0.5),
            p95=_percentile(durations, 0.95),
            by_hour=_counts(day, now=now, step=_HOUR_MS, number=_HOURS),
            by_day=_counts(week, now=now, step=STATS_SECONDS * 1000, number=_DAYS),
        )

    async def _page(self, endpoint: Endpoint, query: DeliveryQuery) -> Sequence[Delivery]:
        """Return deliveries without the response bodies of their attempts, which lists omit.

        Few are read at a time, so that memory stays bounded however many ask.
        """
        async with self._readers:
            page = await self._store.deliveries(endpoint.tenant, query)
            return [_without_answers(delivery) for delivery in page]

    async def _ended_since(self, endpoint: Endpoint, since: int) -> list[_Ended]:
        """Return the attempts that ended from a moment on."""
        attempts: list[_Ended] = []
        before: int | None = None
        for _page in range(_JUDGED_DELIVERIES // _VALIDATION_BATCH_SIZE):
            page = await self.latest(
                endpoint, Wanted(), before=before, limit=_VALIDATION_BATCH_SIZE
            )
            attempts += _ended_in(page.deliveries, since)
            before = page.following
            if before is None:
                break
        return attempts

    async def _oldest_open(self, endpoint: Endpoint) -> int | None:
        query = Wanted(states=OPEN).query(endpoint, limit=1)
        found = await self._store.deliveries(endpoint.tenant, query)
        return found[0].created if found else None


def _ended_in(deliveries: Sequence[Delivery], since: int) -> list[_Ended]:
    return [
        _Ended(attempt.ended, attempt.duration, attempt.status)
        for delivery in deliveries
        for attempt in delivery.attempts
        if attempt.ended is not None and attempt.ended >= since
    ]


def _without_answers(delivery: Delivery) -> Delivery:
    attempts = tuple(replace(attempt, answer=b"") for attempt in delivery.attempts)
    return replace(delivery, attempts=attempts)


def _effective_counts(counts: Mapping[DeliveryState, int], endpoint: Endpoint) -> dict[str, int]:
    """Return counts by displayed state; deliveries in flight count under their previous state."""
    if endpoint.state == "active":
        return {str(name): number for name, number in counts.items()}
    waiting = sum(number for state, number in counts.items() if state in OPEN)
    ended: dict[str, int] = {name: count for name, count in counts.items() if name not in OPEN}
    shown = "cancelled" if endpoint.state == "deleted" else "held"
    return {**ended, shown: waiting} if waiting else ended


def _counts(ended: Sequence[_Ended], *, now: int, step: int, number: int) -> list[Count]:
    """Return how many attempts ended in each of the last steps of time."""
    first = now - number * step
    places = [min((one.at - first) // step, number - 1) for one in ended]
    good = Counter(at for at, one in zip(places, ended, strict=True) if one.succeeded)
    every = Counter(places)
    return [Count(first + at * step, good[at], every[at] - good[at]) for at in range(number)]


def _percentile(ordered: Sequence[int], share: float) -> int | None:
    """Return the smallest value that at least this share does not exceed (nearest rank)."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None
