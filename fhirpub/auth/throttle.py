"""Guessing slowed down: so many failures a minute for one client_id from one address (D-144)."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fhirpub.errors import Throttled, TokenRefused
from fhirpub.runtime.clock import Clock

_WINDOW_MS = 60_000
_MAX_PAIRS = 10_000
_MAX_NAME_LENGTH = 64  # longer ones exist nowhere and may share a count


@dataclass(slots=True)
class _Pair:
    """The recent and current attempts of one client_id from one address."""

    failures: deque[int] = field(default_factory=deque)
    under_way: int = 0
    one_ended: asyncio.Event = field(default_factory=asyncio.Event)


class Throttle:
    """Counts failures, in this process; of ``limit`` 0 there is no limit.

    Attempts of one pair that arrive together cannot outrun the count: as many run at once as
    may still fail, the others wait for them.
    """

    def __init__(self, limit: int, *, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._pairs: OrderedDict[tuple[str, str], _Pair] = OrderedDict()

    @asynccontextmanager
    async def attempt(self, client_id: str, address: str) -> AsyncGenerator[None, None]:
        """Run the block, which raises TokenRefused if the credentials are wrong.

        Raises Throttled instead of running it when too many failed in the last minute.
        """
        if not self._limit:
            yield
            return
        name = (client_id[:_MAX_NAME_LENGTH], address[:_MAX_NAME_LENGTH])
        pair = await self._turn(name)
        pair.under_way += 1
        try:
            yield
        except TokenRefused:
            pair.failures.append(self._clock())
            raise
        finally:
            pair.under_way -= 1
            pair.one_ended.set()
            pair.one_ended = asyncio.Event()
            if not pair.failures and not pair.under_way:
                self._pairs.pop(name, None)

    def _pair(self, name: tuple[str, str]) -> _Pair:
        pair = self._pairs.setdefault(name, _Pair())
        self._pairs.move_to_end(name)
        if len(self._pairs) > _MAX_PAIRS:
            self._pairs.popitem(last=False)
        return pair

    async def _turn(self, name: tuple[str, str]) -> _Pair:
        while True:
            pair = self._pair(name)  # read again: it may have been forgotten in between
            self._forget_old(pair)
            if len(pair.failures) >= self._limit:
                wait = pair.failures[0] + _WINDOW_MS - self._clock()
                raise Throttled(retry_after=max(1, math.ceil(wait / 1000)))
            if len(pair.failures) + pair.under_way < self._limit:
                return pair
            await pair.one_ended.wait()

    def _forget_old(self, pair: _Pair) -> None:
        now = self._clock()
        while pair.failures and not 0 <= now - pair.failures[0] < _WINDOW_MS:
            pair.failures.popleft()
