"""Periodic background tasks that survive failures, with exponential backoff."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger

_FIRST_WAIT = 0.1
_MAX_WAIT = 2.0

_log = logger()

T = TypeVar("T")


class PeriodicTask:
    """Runs ``step`` repeatedly; each run returns the seconds until the next one.

    :meth:`wake` starts the next run at once. Consecutive failures back off exponentially.
    """

    def __init__(self, name: str, step: Callable[[], Awaitable[float]]) -> None:
        self._name = name
        self._step = step
        self._bell = asyncio.Event()
        self._stopping = False

    def wake(self) -> None:
        """Start the next run at once."""
        self._bell.set()

    def stop(self) -> None:
        """Stop after the current run."""
        self._stopping = True
        self._bell.set()

    async def run(self) -> None:
        """Run until :meth:`stop`."""
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
        """Sleep for the full backoff, ignoring wake-ups but not a stop."""
        until = asyncio.get_running_loop().time() + seconds
        while not self._stopping and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(min(seconds, 0.1))


async def gather_all(*work: Awaitable[None]) -> None:
    """Await all concurrently, also if one fails: none may overlap with the next run.

    Raises the exception of the first argument that failed.
    """
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


async def retry_until_stored(name: str, write: Callable[[], Awaitable[T]]) -> T:
    """Repeat a write with backoff until the store accepts it."""
    failures = 0
    while True:
        try:
            return await write()
        except StoreUnavailable as problem:
            log_failure(name, problem, failures)
            await asyncio.sleep(back_off(failures))
            failures += 1


def back_off(failures: int) -> float:
    """Return the seconds to wait after a failure that had ``failures`` before it."""
    return float(min(_MAX_WAIT, _FIRST_WAIT * 2 ** min(failures, 10)))


def log_failure(name: str, problem: Exception, failures: int) -> None:
    """Log the first failure of a row."""
    if failures:
        return
    if isinstance(problem, StoreUnavailable):
        _log.warning("webhooks wait for the store", work=name, reason=problem.reason)
    else:
        _log.error("webhooks failed", work=name, **where(problem))
