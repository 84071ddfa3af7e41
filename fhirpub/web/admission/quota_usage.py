"""What a tenant or a client has used of its quotas, as far as this process knows.

A process counts its own use at once, and learns that of the others about once a second
(`quota_exchange.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from fhirpub.errors import QuotaExceeded, StorageQuotaExceeded
from fhirpub.storage.quota_contract import QuotaCount, QuotaUse
from fhirpub.web.admission.quota_policy import (
    DAY,
    MINUTE,
    Kind,
    Limits,
    Policy,
    is_exceeded,
    period_start,
    quota_names,
    seconds_left,
)

_SHOWN_MS = 5_000
"""How long others consider the requests in flight of a process: it may have been killed."""
_REPEAT_MS = 2_000
"""How often a process repeats an unchanged number of requests in flight."""
_RECENT_MS = 60_000


class Window:
    """A count within a period: this process's own, and that of the others."""

    __slots__ = ("begun", "length", "others", "own", "sent")

    def __init__(self, length: int) -> None:
        self.length = length
        self.begun = self.own = self.others = self.sent = 0

    def used(self, now: int) -> int:
        """Return the use in the current period, which may begin with this call."""
        begun = period_start(now, self.length)
        if begun != self.begun:
            self.begun, self.own, self.others, self.sent = begun, 0, 0, 0
        return self.own + self.others

    def add(self, amount: int, now: int) -> None:
        """Count; negative for what was counted and did not happen."""
        self.used(now)
        self.own = max(0, self.own + amount)

    def unsent(self, now: int) -> tuple[int, int] | None:
        """Return the period and its end if others do not know the count."""
        self.used(now)
        return (self.begun, self.begun + self.length) if self.own != self.sent else None

    def mark_sent(self, count: QuotaCount) -> None:
        """Remember what others can know."""
        if count.period == self.begun:
            self.sent = count.used


class InFlight:
    """A number of requests in flight: this process's own, and that of the others."""

    __slots__ = ("begun", "others", "own", "sent", "shown_until")

    def __init__(self) -> None:
        self.begun = self.own = self.others = self.sent = self.shown_until = 0

    def used(self, _now: int) -> int:
        """Return the requests that are in flight."""
        return self.own + self.others

    def add(self, amount: int, _now: int) -> None:
        """Count a request that begins, or with -1 one that ends."""
        self.own += amount

    def unsent(self, now: int) -> tuple[int, int] | None:
        """Return until when the number is valid, if others do not know it."""
        is_old = self.own and self.shown_until - _SHOWN_MS + _REPEAT_MS <= now
        return (0, now + _SHOWN_MS) if is_old or self.own != self.sent else None

    def mark_sent(self, count: QuotaCount) -> None:
        """Remember what others can know."""
        self.sent, self.shown_until = count.used, count.until


Counter = Window | InFlight


class Usage:
    """The use of one tenant or client. Its checks raise QuotaExceeded and change nothing."""

    def __init__(self, kind: Kind, owner: str, limits: Limits) -> None:
        self.owner = owner
        self.limits = limits
        self.names = quota_names(kind)
        self.requests, self.in_flight = Window(MINUTE), InFlight()
        self.bytes, self.registrations = Window(DAY), Window(DAY)
        self.stored = 0
        """What the store returned, and what this process has added since."""
        self.counters: dict[str, Counter] = {
            "requests_per_minute": self.requests,
            "requests_at_a_time": self.in_flight,
            "bytes_per_day": self.bytes,
            "registrations_per_day": self.registrations,
        }
        self.seen = 0
        self._uncounted = self._reserved = 0

    def is_recent(self, now: int) -> bool:
        """Return whether its quotas may be asked for soon."""
        return now - self.seen < _RECENT_MS or self.in_flight.own > 0

    def is_idle(self, now: int) -> bool:
        """Return whether it can be forgotten: a count of today must not begin at 0 again."""
        counted = any(counter.used(now) - counter.others for counter in self.counters.values())
        return not counted and not self.is_recent(now)

    def check_in_flight(self, now: int) -> None:
        """Check whether another request may be in flight."""
        if is_exceeded(self.limits.requests_at_a_time, self.in_flight.used(now)):
            raise QuotaExceeded(self.names["requests_at_a_time"], retry_after=1)

    def check_request(self, now: int) -> None:
        """Check whether another request may begin in this minute."""
        self._check(self.requests, "requests_per_minute", self.limits.requests_per_minute, now)

    def check_bytes(self, size: int, now: int) -> None:
        """Check whether so many bytes of a body may be received, and count nothing."""
        self._check(self.bytes, "bytes_per_day", self.limits.bytes_per_day, now, size)

    def check_registration(self, now: int) -> None:
        """Check whether a resource may be registered."""
        limit = self.limits.registrations_per_day
        self._check(self.registrations, "registrations_per_day", limit, now)

    def check_stored(self, size: int) -> None:
        """Check whether so many bytes may be stored. Raises StorageQuotaExceeded."""
        if is_exceeded(self.limits.stored_bytes, self.stored, size):
            raise StorageQuotaExceeded(self.names["stored_bytes"])

    def add_stored(self, size: int) -> None:
        """Count bytes that were stored."""
        self.stored += size
        self._uncounted += size

    def reserve_stored(self, size: int) -> None:
        """Count bytes that are being stored."""
        self.add_stored(size)
        self._reserved += size

    def finish_stored(self, size: int, *, created: bool) -> None:
        """Count reserved bytes no more if they were not stored."""
        self._reserved -= size
        if not created:
            self.add_stored(-size)

    def policies(self, now: int) -> list[Policy]:
        """Return its quota of requests per minute, if it has one."""
        limit = self.limits.requests_per_minute
        if not limit:
            return []
        return [Policy(self.names["requests_per_minute"], limit, self.requests.used(now))]

    def unsent(self, now: int) -> list[tuple[Counter, QuotaCount]]:
        """Return the counts that others do not know, of the quotas that are limited."""
        found: list[tuple[Counter, QuotaCount]] = []
        for limit, counter in self.counters.items():
            period = counter.unsent(now) if getattr(self.limits, limit) else None
            if period is not None:
                begun, until = period
                count = QuotaCount(
                    owner=self.owner,
                    quota=self.names[limit],
                    period=begun,
                    until=until,
                    used=counter.own,
                )
                found.append((counter, count))
        return found

    def learn(self, uses: Mapping[QuotaUse, int], now: int) -> None:
        """Take over what others have counted."""
        for limit, counter in self.counters.items():
            counter.used(now)
            use = QuotaUse(self.owner, self.names[limit], counter.begun)
            counter.others = uses.get(use, 0)

    def begin_learning_stored(self) -> None:
        """Remember what the store may not count: what is being stored, and what is added."""
        self._uncounted = self._reserved

    def learn_stored(self, stored: int) -> None:
        """Take over what the store counted."""
        self.stored = stored + self._uncounted

    def _check(self, window: Window, limit: str, most: int, now: int, more: int = 1) -> None:
        if is_exceeded(most, window.used(now), more):
            left = seconds_left(now, window.length)
            raise QuotaExceeded(self.names[limit], retry_after=left)
