"""Large answers take turns, as large bodies do: what is read of the store takes memory, too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fhirpub.storage.contract import Version
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.placement import LARGE

T = TypeVar("T")
V = TypeVar("V", bound=Version)


async def with_memory_budget(
    handler: BaseHandler, look: Callable[[], Awaitable[T]], size: Callable[[T], int]
) -> T:
    """Return what is read of the store, if it is large as soon as there is room for it (D-280).

    Its size is known only then: a request that has to wait drops it and reads it again. They are
    released when the response has left. Raises Busy if there is none for too long.
    """
    found, memory_budget = await look(), handler.services.response_memory
    needed = size(found)
    if needed <= LARGE or handler.request in memory_budget:
        return found
    turn = memory_budget.acquire(handler.request, needed, owner=handler.caller.tenant.id)
    if turn is None:
        return found
    del found
    await turn
    if handler.request not in memory_budget:  # the client has disconnected
        handler.request.connection.close()
        handler.cancel()
        raise asyncio.CancelledError
    return await look()


async def read_version_within_budget(handler: BaseHandler, look: Callable[[], Awaitable[V]]) -> V:
    """Return a version, as :func:`with_memory_budget` does."""
    return await with_memory_budget(handler, look, lambda found: len(found.body))
