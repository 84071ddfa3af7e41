"""Large answers take turns, as large bodies do: what is read of the store takes memory, too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fhirpub.storage.contract import Version
from fhirpub.web.handlers.base import LARGE, BaseHandler

T = TypeVar("T")


async def in_turn(
    handler: BaseHandler, look: Callable[[], Awaitable[T]], size: Callable[[T], int]
) -> T:
    """Return what is read of the store, if it is large as soon as there is room for it (D-280).

    Its size is known only then: who has to wait lets go of it, and reads again. The room is
    given back when the answer has left. Raises Busy if there is none for too long.
    """
    found, room = await look(), handler.services.answer_room
    needed = size(found)
    if needed <= LARGE or handler.request in room:
        return found
    turn = room.take(handler.request, needed, owner=handler.caller.tenant.id)
    if turn is None:
        return found
    del found
    await turn
    if handler.request not in room:  # who asked has hung up: there is nobody to answer
        handler.request.connection.close()
        handler.abandon()
        raise asyncio.CancelledError
    return await look()


async def version_in_turn(handler: BaseHandler, look: Callable[[], Awaitable[Version]]) -> Version:
    """Return a version, as :func:`in_turn` does."""
    return await in_turn(handler, look, lambda found: len(found.body))
