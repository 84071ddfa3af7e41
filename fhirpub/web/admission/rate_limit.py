"""A limit on the requests of one client per minute (D-144)."""

from __future__ import annotations

from fhirpub.errors import Throttled
from fhirpub.runtime.clock import Clock

_MINUTE = 60_000


class RateLimit:
    """Counts requests by client in the current minute, in this process; 0: no limit."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._most = per_minute
        self._clock = clock
        self._minute = 0
        self._counts: dict[str, int] = {}

    def count(self, client_id: str) -> None:
        """Count a request; raises Throttled when it is one too many."""
        if not self._most:
            return
        now = self._clock()
        if now // _MINUTE != self._minute:
            self._minute = now // _MINUTE
            self._counts.clear()
        counted = self._counts.get(client_id, 0) + 1
        self._counts[client_id] = counted
        if counted > self._most:
            raise Throttled(retry_after=1 + (_MINUTE - now % _MINUTE) // 1000)
