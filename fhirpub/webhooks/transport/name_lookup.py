"""Looks up the addresses of hosts, in threads of its own."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_MAX_ADDRESSES = 8
_RESOLVING_THREADS = 32
_MAX_HANGING_LOOKUPS = 1_000

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]
"""Family, type, protocol, canonical name and address, as :func:`socket.getaddrinfo` has them."""
LookUp = Callable[..., Sequence[AddressInfo]]
"""Finds the addresses of a host as :func:`socket.getaddrinfo` does; raises OSError."""
Name = tuple[str, int, int]
"""A host, a port and a family."""


class NameLookup:
    """Resolves names in threads of its own: a lookup that hangs must not block anything else.

    A name that is being looked up has one thread, however many wait for it. One that took longer
    than any caller waits is resolved in a separate pool until it is found in time.
    """

    def __init__(self, look_up: LookUp, *, patience_seconds: float) -> None:
        self._look_up = look_up
        self._patience_seconds = patience_seconds
        self._threads = ThreadPoolExecutor(_RESOLVING_THREADS, "webhook-names")
        self._apart = ThreadPoolExecutor(_RESOLVING_THREADS, "webhook-names-apart")
        self._under_way: dict[Name, asyncio.Future[Sequence[AddressInfo]]] = {}
        self._begun: dict[Name, float] = {}
        self._hung: dict[Name, None] = {}

    async def resolve(self, name: Name) -> Sequence[AddressInfo]:
        """Resolve a name."""
        known = name not in self._hung
        return await self._resolve(name, self._threads if known else self._apart)

    async def resolve_unknown(self, host: str, port: int) -> Sequence[AddressInfo]:
        """Resolve a name in the separate pool, since it may hang."""
        return await self._resolve((host, port, socket.AF_UNSPEC), self._apart)

    async def _resolve(self, key: Name, threads: ThreadPoolExecutor) -> Sequence[AddressInfo]:
        search = self._under_way.get(key)
        if search is None:
            search = asyncio.get_running_loop().run_in_executor(threads, self._search, key)
            self._under_way[key] = search
            search.add_done_callback(lambda done: self._forget(key, done))
        found = await asyncio.shield(search)
        return found[:_MAX_ADDRESSES]

    def _search(self, key: Name) -> Sequence[AddressInfo]:
        self._begun[key] = time.monotonic()
        return self._look_up(*key, socket.SOCK_STREAM)

    def _forget(self, key: Name, done: asyncio.Future[Sequence[AddressInfo]]) -> None:
        del self._under_way[key]
        if done.cancelled():
            return
        done.exception()  # all waiters may be gone: retrieve it
        self._hung.pop(key, None)
        if time.monotonic() - self._begun.pop(key) > self._patience_seconds:
            self._hung[key] = None
        if len(self._hung) > _MAX_HANGING_LOOKUPS:
            del self._hung[next(iter(self._hung))]

    def stop(self) -> None:
        """Release the threads; their pending lookups are abandoned."""
        for threads in (self._threads, self._apart):
            threads.shutdown(wait=False, cancel_futures=True)


def address_in(info: AddressInfo) -> str:
    """Return the address itself."""
    return str(info[-1][0])
