"""The key sets that clients publish: fetched when they are needed, and kept for a while."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlsplit

from fhirpub.auth.assertions.key_set import PublicKey, read_key_set
from fhirpub.errors import Throttled
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.logging import logger

MAX_KEPT_SECONDS = 3_600
_KEPT_SECONDS = 300
_AGAIN_SECONDS = 30
"""So long a key that is not in a set does not cause another fetch of it."""
_FAILED_SECONDS = 10
_PATIENCE_SECONDS = 5
_MAX_SETS = 1_000
_MAX_FETCHES = 32
_MAX_FETCHES_OF_TENANT = 4
_MAX_AGE = re.compile(r"max-age *= *\"?([0-9]{1,9})\"?")

_log = logger()


class Published(Protocol):
    """What came of a request for a key set: ``problem`` is empty, or why there is no body."""

    @property
    def problem(self) -> str:
        """Why there is no body, for the log."""

    @property
    def body(self) -> bytes:
        """The whole body."""

    @property
    def cache_control(self) -> str:
        """The header of this name."""


Fetch = Callable[[str, str], Awaitable[Published]]
"""Gets what is published at a URL that a client of a tenant has; raises nothing."""


class KeysNotFetched(Exception):
    """The URL of a client leads to no key set at the moment."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a URL: None in place of keys if it led to none.

    After ``until`` it is asked again. Until ``usable`` the keys are used if that fails.
    """

    keys: tuple[PublicKey, ...] | None
    asked: int
    until: int
    usable: int
    fails: bool = False
    """Whether the last question failed, and these keys are older."""

    def serves(self, kid: str, now: int) -> bool:
        """Return whether there is no need to ask again for a key."""
        if not self.asked <= now < self.until:
            return False
        is_recent = now < self.asked + _AGAIN_SECONDS * 1000
        return self.keys is None or is_recent or self.has(kid)

    def outlives_failure(self, kid: str, now: int) -> bool:
        """Return whether a key may be used at once although the URL has led to none since."""
        return self.fails and self.asked <= now < self.usable and self.has(kid)

    def has(self, kid: str) -> bool:
        """Return whether there is a key of a name."""
        return any(key.kid == kid for key in self.keys or ())


class PublishedKeys:
    """Key sets by their URLs, in this process.

    A set is kept for as long as ``Cache-Control`` allows (SMART App Launch 2), at most an hour,
    and five minutes without it. All calls that need a set wait for one fetch of it. Few fetches
    run at a time, and fewer for one tenant.

    If a set cannot be fetched again, what is known of it is used for ``stale_seconds`` more. The
    first fetch that fails is waited for; further ones run in the background until one succeeds.
    """

    def __init__(self, fetch: Fetch, *, clock: Clock, stale_seconds: int = 0) -> None:
        self._fetch = fetch
        self._clock = clock
        self._stale_ms = stale_seconds * 1000
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._fetching: dict[tuple[str, str], asyncio.Task[_Known]] = {}

    async def stop(self) -> None:
        """Cancel the fetches in progress."""
        fetches = list(self._fetching.values())
        for task in fetches:
            task.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)

    async def at(self, url: str, *, tenant: str, kid: str) -> Sequence[PublicKey]:
        """Return the keys at a URL that a client of a tenant has.

        A set without the key ``kid`` is fetched again, since it may be new. Raises
        KeysNotFetched, Throttled.
        """
        place = (tenant, url)
        known, now = self._known.get(place), self._clock()
        if known is None or not known.serves(kid, now):
            if known is not None and known.outlives_failure(kid, now):
                with suppress(Throttled):
                    self._begin(place)
            else:
                known = await asyncio.shield(self._begin(place))
        if known.keys is None:
            raise KeysNotFetched
        return known.keys

    def _begin(self, place: tuple[str, str]) -> asyncio.Task[_Known]:
        """Return the fetch of a set, which may have begun already. Raises Throttled."""
        task = self._fetching.get(place)
        if task is None:
            of_tenants = Counter(tenant for tenant, _url in self._fetching)
            is_full = len(self._fetching) >= _MAX_FETCHES
            if is_full or of_tenants[place[0]] >= _MAX_FETCHES_OF_TENANT:
                raise Throttled(retry_after=1)
            task = asyncio.create_task(self._look(place))
            self._fetching[place] = task
            task.add_done_callback(lambda _task: self._fetching.pop(place))
        return task

    async def _look(self, place: tuple[str, str]) -> _Known:
        tenant, url = place
        asked = self._clock()
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                answer = await self._fetch(url, tenant)
        except TimeoutError:
            keys, seconds, problem = None, _FAILED_SECONDS, "timeout"
        else:
            keys, problem = _keys_in(answer)
            seconds = _FAILED_SECONDS if keys is None else kept_seconds(answer.cache_control)
        until = asked + seconds * 1000
        found = _Known(keys, asked, until, until + self._stale_ms)
        if keys is None:
            host = urlsplit(url).netloc
            _log.warning("keys not fetched", tenant=tenant, host=host, reason=problem)
            found = self._kept_instead(place, found)
        self._known[place] = found
        self._known.move_to_end(place)
        if len(self._known) > _MAX_SETS:
            self._known.popitem(last=False)
        return found

    def _kept_instead(self, place: tuple[str, str], failed: _Known) -> _Known:
        """Return the set that may still be used although asking again for it failed."""
        known = self._known.get(place)
        if known is None or known.keys is None or failed.asked >= known.usable:
            return failed
        until = min(known.usable, max(known.until, failed.until))
        return replace(known, asked=failed.asked, until=until, fails=True)


def _keys_in(answer: Published) -> tuple[tuple[PublicKey, ...] | None, str]:
    """Return the keys that were published, or the problem."""
    if answer.problem:
        return None, answer.problem
    try:
        return read_key_set(answer.body), ""
    except ValueError as problem:
        return None, str(problem)


def kept_seconds(cache_control: str) -> int:
    """Return how long a key set may be kept; 0 if it must not be."""
    directives = [part.strip() for part in cache_control.lower().split(",")]
    if "no-store" in directives or any(part.startswith("no-cache") for part in directives):
        return 0
    ages = [int(found[1]) for part in directives if (found := _MAX_AGE.fullmatch(part))]
    return min([*ages, MAX_KEPT_SECONDS]) if ages else _KEPT_SECONDS
