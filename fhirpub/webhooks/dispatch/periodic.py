"""Work that is done again and again until it is told to stop, whatever goes wrong meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.logging import logger, where

_FIRST_WAIT = 0.1
_MAX_WAIT = 2.0

_log = logger()

T = TypeVar("T")


class PeriodicTask:
    """Does ``step`` in rounds; each answers after how many seconds the next is due.

    :meth:`wake` makes it due at once. After a failure the next comes a little later each time.
    """

    def __init__(self, name: str, step: Callable[[], Awaitable[float]]) -> None:
        self._name = name
        self._step = step
        self._bell = asyncio.Event()
        self._stopping = False

    def wake(self) -> None:
        """Have the next round at once."""
        self._bell.set()

    def stop(self) -> None:
        """End after the round that is under way."""
        self._stopping = True
        self._bell.set()

    async def run(self) -> None:
        """Work until :meth:`stop`."""
        failures = 0
        while not self._stopping:
            self._bell.clear()
            try:
                pause = await self._step()
                failures = 0
            except Exception as problem:  # noqa: BLE001 - the next round may be better
                log_failure(self._name, problem, failures)
                pause = back_off(failures)
                failures += 1
                await self._sleep(pause)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._bell.wait()

    async def _sleep(self, seconds: float) -> None:
        """Sleep in spite of the bell, but not beyond the end."""
        until = asyncio.get_running_loop().time() + seconds
        while not self._stopping and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(min(seconds, 0.1))


async def gather_all(*work: Awaitable[None]) -> None:
    """Do all at once, and wait for all also if one fails: none may run on beside the next round.

    Raises what the first of them raised, in the order in which they stand.
    """
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


async def retry_until_stored(name: str, write: Callable[[], Awaitable[T]]) -> T:
    """Repeat a write until the store takes it."""
    failures = 0
    while True:
        try:
            return await write()
        except StoreUnavailable as problem:
            log_failure(name, problem, failures)
            await asyncio.sleep(back_off(failures))
            failures += 1


def back_off(failures: int) -> float:
    """Return how many seconds to wait after so many failures before this one."""
    return float(min(_MAX_WAIT, _FIRST_WAIT * 2 ** min(failures, 10)))


def log_failure(name: str, problem: Exception, failures: int) -> None:
    """Log a failure, if it is the first in a row."""
    if failures:
        return
    if isinstance(problem, StoreUnavailable):
        _log.warning("webhooks wait for the store", work=name, reason=problem.reason)
    else:
        _log.error("webhooks failed", work=name, **where(problem))
