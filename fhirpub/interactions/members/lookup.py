"""Looks many members up, without holding the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from fhirpub.storage.contract import Version

_TOGETHER = 50
"""So many are looked up together: small ones are read on the event loop, which then goes on."""


async def look_up_all(
    look_up: Callable[[str], Awaitable[Version | None]], ids: Sequence[str]
) -> list[Version]:
    """Return what is found under ids, in their order, by a look-up of one."""
    found: list[Version | None] = []
    for start in range(0, len(ids), _TOGETHER):
        found += await asyncio.gather(*map(look_up, ids[start : start + _TOGETHER]))
        await asyncio.sleep(0)
    return [version for version in found if version is not None]
