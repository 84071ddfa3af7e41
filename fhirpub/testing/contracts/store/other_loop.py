"""Tests of a store that is used on a second event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import Version
from fhirpub.storage.store import Store
from fhirpub.testing.samples import LAB, a_version

T = TypeVar("T")


class OtherLoopContract:
    """A store for another event loop holds the same data, and may be used at the same time."""

    async def test_a_store_for_another_loop_holds_the_same_data(self, store: Store) -> None:
        ours, theirs = a_version(), a_version()
        await store.add(LAB, ours)

        async def work(other: Store) -> Version | None:
            await other.add(LAB, theirs)
            return await other.latest(LAB, ours.id)

        assert await _on_another_loop(store, work) == ours
        assert await store.latest(LAB, theirs.id) == theirs

    async def test_two_loops_write_at_the_same_time(self, store: Store) -> None:
        ours, theirs = ([a_version() for _ in range(50)] for _ in range(2))

        async def work(other: Store) -> list[bool]:
            return await asyncio.gather(*(other.add(LAB, version) for version in theirs))

        added, there = await asyncio.gather(
            asyncio.gather(*(store.add(LAB, version) for version in ours)),
            _on_another_loop(store, work),
        )

        assert all([*added, *there])
        for version in (*ours, *theirs):
            assert await store.latest(LAB, version.id) == version

    async def test_a_key_is_added_once_by_two_loops(self, store: Store) -> None:
        versions = [a_version() for _ in range(30)]

        async def work(other: Store) -> list[bool]:
            return await asyncio.gather(*(other.add(LAB, version) for version in versions))

        added, there = await asyncio.gather(
            asyncio.gather(*(store.add(LAB, version) for version in versions)),
            _on_another_loop(store, work),
        )

        assert all(here is not elsewhere for here, elsewhere in zip(added, there, strict=True))

    async def test_a_stopped_store_of_another_loop_leaves_this_one_open(
        self, store: Store
    ) -> None:
        async def work(other: Store) -> bool:
            await other.stop()
            with pytest.raises(StoreUnavailable):
                await other.latest(LAB, "none")
            return True

        assert await _on_another_loop(store, work)
        assert await store.add(LAB, a_version())


async def _on_another_loop(store: Store, work: Callable[[Store], Awaitable[T]]) -> T:
    """Run work on a store for another event loop, in a thread; skip if the engine has none."""
    other = store.for_other_loop()
    if other is None:
        pytest.skip("the engine has no store for another event loop")

    async def run() -> T:
        await other.start()
        try:
            return await work(other)
        finally:
            await other.stop()

    return await asyncio.to_thread(lambda: asyncio.run(run()))
