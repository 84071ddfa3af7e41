"""A timeout for request bodies that are still being received."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.web.message.request import Request

_log = logger()


class BodyReadTimeout:
    """Refuses a body that has not arrived completely after ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[Request, tuple[float, Callable[[], None]]] = {}

    def begin(self, request: Request, too_slow: Callable[[], None]) -> None:
        """Start the timeout of a request's body; ``too_slow`` is called when it expires."""
        self._since[request] = (asyncio.get_running_loop().time(), too_slow)

    def end(self, request: Request) -> None:
        """Stop the timeout: the body is complete or will never be."""
        self._since.pop(request, None)

    async def run(self) -> None:
        """Check the timeouts until cancelled."""
        while True:
            await asyncio.sleep(min(1.0, self._seconds / 4))
            try:
                self._look(asyncio.get_running_loop().time())
            except Exception as problem:  # noqa: BLE001 - the others are still to be watched
                _log.error("bodies not watched", **where(problem))

    def _look(self, now: float) -> None:
        for request, (since, too_slow) in list(self._since.items()):
            if since + self._seconds < now:
                self.end(request)
                too_slow()
