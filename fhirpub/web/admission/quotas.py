"""Quotas of tenants and clients, checked in memory for each request (D-292)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import get_args

from fhirpub.auth.caller import Caller
from fhirpub.config.quotas import QuotasConfig
from fhirpub.runtime.clock import Clock
from fhirpub.storage.quota_contract import QuotaOverride
from fhirpub.web.admission.quota_policy import (
    DAY,
    Kind,
    Limits,
    limits_of,
    period_start,
    rate_limit_fields,
)
from fhirpub.web.admission.quota_usage import Usage


class Quotas:
    """The use of all tenants and clients that have a limit, in this process."""

    def __init__(self, config: QuotasConfig, clock: Clock) -> None:
        self.active = False
        """Whether there is any limit at all: without one, a request asks for nothing else."""
        self.process = secrets.token_hex(8)
        """The id under which this process publishes its counts."""
        self.news = asyncio.Event()
        """Set when a caller arrives whose use by other processes is unknown."""
        self._config = config
        self._clock = clock
        self._overrides: dict[tuple[str, str], int] = {}
        self._overridden: frozenset[str] = frozenset()
        self._defaults = {kind: limits_of(kind, "", config, {}) for kind in get_args(Kind)}
        self._usages: dict[tuple[Kind, str], Usage] = {}
        self._recent: dict[tuple[Kind, str], Usage] = {}
        self._day = 0
        self.set_overrides(())

    def __len__(self) -> int:
        """Return the number of tenants and clients whose use is known."""
        return len(self._usages)

    def set_overrides(self, overrides: Iterable[QuotaOverride]) -> None:
        """Replace the limits that operators set for single tenants and clients."""
        self._overrides = {(o.owner, o.quota): o.limit for o in overrides if o.limit is not None}
        self._overridden = frozenset(owner for owner, _quota in self._overrides)
        self.active = any(map(any, self._defaults.values())) or any(self._overrides.values())
        for (kind, owner), usage in self._usages.items():
            usage.limits = self._limits(kind, owner)

    def ticket(self, caller: Caller, ticket_type: type[Ticket] | None = None) -> Ticket | None:
        """Return the quotas of a request; None if its caller has no limits."""
        now = self._clock()
        found = (
            self._find("client", caller.client_id, now),
            self._find("tenant", caller.tenant.id, now),
        )
        usages = [usage for usage in found if usage is not None]
        return (ticket_type or Ticket)(usages, self._clock) if usages else None

    def recent(self) -> list[Usage]:
        """Return the use of those that have sent requests recently, or whose counts are unsent."""
        now = self._clock()
        for key, usage in [*self._recent.items()]:
            if not usage.is_recent(now) and not usage.unsent(now):
                del self._recent[key]
        if period_start(now, DAY) != self._day:
            self._day = period_start(now, DAY)
            self._forget_idle(now)
        return [*self._recent.values()]

    def _forget_idle(self, now: int) -> None:
        for key in [key for key, usage in self._usages.items() if usage.is_idle(now)]:
            del self._usages[key]

    def _find(self, kind: Kind, owner: str, now: int) -> Usage | None:
        usage = self._usages.get((kind, owner))
        if usage is None:
            limits = self._limits(kind, owner)
            if not any(limits):
                return None
            usage = self._usages[kind, owner] = Usage(kind, owner, limits)
        if not usage.is_recent(now):
            self.news.set()
            self._recent[kind, owner] = usage
        usage.seen = now
        return usage

    def _limits(self, kind: Kind, owner: str) -> Limits:
        if owner in self._overridden:
            return limits_of(kind, owner, self._config, self._overrides)
        return self._defaults[kind]


class Ticket:
    """The quotas of one request: those of its client, then those of its tenant.

    Raises QuotaExceeded, or StorageQuotaExceeded, where the request would be beyond one of them.
    """

    __slots__ = ("_clock", "_is_inside", "_usages")

    def __init__(self, usages: Sequence[Usage], clock: Clock) -> None:
        self._usages = usages
        self._clock = clock
        self._is_inside = False

    def enter(self) -> None:
        """Count the request, until :meth:`leave` as one in flight."""
        now = self._clock()
        for usage in self._usages:
            usage.check_in_flight(now)
            usage.check_request(now)
        for usage in self._usages:
            usage.requests.add(1, now)
            usage.in_flight.add(1, now)
        self._is_inside = True

    def count_request(self) -> None:
        """Count a request that is part of another one in flight."""
        now = self._clock()
        for usage in self._usages:
            usage.check_request(now)
        for usage in self._usages:
            usage.requests.add(1, now)

    def leave(self) -> None:
        """End the request; also called for one that was not admitted, or has ended."""
        if self._is_inside:
            self._is_inside = False
            for usage in self._usages:
                usage.in_flight.add(-1, 0)

    def check_bytes(self, size: int) -> None:
        """Check whether a body of this announced size may be received."""
        now = self._clock()
        for usage in self._usages:
            usage.check_bytes(size, now)

    def receive(self, size: int) -> None:
        """Count bytes of a body that have arrived, also those with which it is too much."""
        now = self._clock()
        for usage in self._usages:
            usage.bytes.add(size, now)
        for usage in self._usages:
            usage.check_bytes(0, now)

    def reserve_registration(self, size: int) -> Callable[..., None]:
        """Count a registration of so many bytes; its end is reported by a call of the result."""
        now = self._clock()
        for usage in self._usages:
            usage.check_registration(now)
            usage.check_stored(size)
        for usage in self._usages:
            usage.registrations.add(1, now)
            usage.reserve_stored(size)
        return partial(self._finish_registration, size)

    def check_stored(self, size: int) -> None:
        """Check whether a version of so many bytes may be added."""
        for usage in self._usages:
            usage.check_stored(size)

    def add_stored(self, size: int) -> None:
        """Count a version that was added."""
        for usage in self._usages:
            usage.add_stored(size)

    def fields(self) -> dict[str, str]:
        """Return the RateLimit fields of the response (D-297)."""
        now = self._clock()
        return rate_limit_fields([p for usage in self._usages for p in usage.policies(now)], now)

    def _finish_registration(self, size: int, *, created: bool) -> None:
        now = self._clock()
        for usage in self._usages:
            usage.finish_stored(size, created=created)
            if not created:
                usage.registrations.add(-1, now)
