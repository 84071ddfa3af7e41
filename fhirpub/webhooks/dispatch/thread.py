"""Runs a webhook worker on an event loop of its own, in a thread of the process.

Requests and deliveries then share the process's time fairly: threads take turns, whereas on one
event loop each of the many steps of a delivery would wait behind all requests that are ready
(ADR 22).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from fhirpub.webhooks.dispatch.worker import WebhookWorker

_LAG_INTERVAL_SECONDS = 0.05
_MAX_LAG_SECONDS = 0.1
_PAUSE_SHARE, _MAX_PAUSE_SECONDS = 0.1, 0.05

CreateWorker = Callable[[], AbstractAsyncContextManager[WebhookWorker]]
"""Opens a worker with a store and an HTTP client for the event loop that it is called on."""


class WorkerThread:
    """A webhook worker in a thread, with the interface of `WebhookWorker`."""

    def __init__(self, create: CreateWorker) -> None:
        self._create = create
        self._worker: WebhookWorker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._is_rung = False
        self._is_ending = False
        self._lags: dict[str, float] = {}

    def pause_for(self, tenant: str) -> float:
        """Return for how many seconds a write of a tenant waits, so that its events keep pace.

        It is 0 unless events wait for time of this process alone: never for a receiver.
        """
        lag = self._lags.get(tenant, 0.0)
        return 0.0 if lag < _MAX_LAG_SECONDS else min(_MAX_PAUSE_SECONDS, lag * _PAUSE_SHARE)

    def ring(self) -> None:
        """Report that a version was committed: its events are relayed at once."""
        worker, loop = self._worker, self._loop
        if worker is None or loop is None or self._is_rung or not worker.relays_at_once:
            return
        self._is_rung = True
        with suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(self._ring_there, worker)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Run until the block ends; then finish what is in flight, within ``drain_seconds``.

        Raises what the start raises. If the start is given up, it ends as soon as it has begun.
        """
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        thread = threading.Thread(
            target=self._run, args=(asyncio.get_running_loop(), started), name="webhooks"
        )
        thread.start()
        try:
            await started
            yield
        finally:
            self._is_ending = True  # before the look at what the thread sets before it looks here
            loop, stop = self._loop, self._stop
            if loop is not None and stop is not None:
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(stop.set)
            await asyncio.to_thread(thread.join)

    def _run(self, outer: asyncio.AbstractEventLoop, started: asyncio.Future[None]) -> None:
        try:
            asyncio.run(self._work(outer, started))
        except BaseException as problem:  # noqa: BLE001 - the start of the service reports it
            outer.call_soon_threadsafe(_fail, started, problem)
        finally:
            self._worker = self._loop = None

    async def _work(self, outer: asyncio.AbstractEventLoop, started: asyncio.Future[None]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self._is_ending:
            self._stop.set()
        async with self._create() as worker, worker.running():
            self._worker = worker
            outer.call_soon_threadsafe(_succeed, started)
            while not self._stop.is_set():
                self._lags = worker.lags()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LAG_INTERVAL_SECONDS):
                        await self._stop.wait()
            self._worker, self._lags = None, {}

    def _ring_there(self, worker: WebhookWorker) -> None:
        self._is_rung = False
        worker.ring()


def _succeed(started: asyncio.Future[None]) -> None:
    if not started.done():
        started.set_result(None)


def _fail(started: asyncio.Future[None], problem: BaseException) -> None:
    if not started.done():
        started.set_exception(problem)
