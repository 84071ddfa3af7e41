"""How many reads of a tenant are in progress, of each kind, while the server takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import BlobInfo, Page, SearchQuery
from fhirpub.storage.mongodb.documents import PIECE_BYTES
from fhirpub.storage.mongodb.reads import READS_PER_TENANT, Reads
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.queries import query
from fhirpub.testing.samples import LAB, OTHER, new_id
from tests.unit.storage.mongodb.answers import Found

_NAME = "ab" * 32
_TURNS = 20
"""So many turns of the event loop are enough for everything that need not wait."""


class Slow:
    """A database that answers nothing until it is released, and counts what waits for it."""

    def __init__(self) -> None:
        self.asked = 0
        self.let_go = asyncio.Event()

    def __getitem__(self, _name: str) -> Slow:
        return self

    def with_options(self, **_options: object) -> Slow:
        return self

    def find(self, *_arguments: object, **_options: object) -> Found:
        return Found([])

    def aggregate(self, *_arguments: object, **_options: object) -> Found:
        return Found([])

    async def of(self, _tenant: str) -> bool:
        return False

    async def answer(self, look: Callable[[], Awaitable[Any]]) -> Any:
        self.asked += 1
        await self.let_go.wait()
        return await look()

    def reads(self) -> Reads:
        this: Any = self
        return Reads(this, primary=this, one_moment=this, reuse=this, seconds=120)

    async def asked_by(self, several: list[asyncio.Task[Any]]) -> int:
        """Return how many calls have come to the database, and let all end."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        asked = self.asked
        self.let_go.set()
        for task in several:
            with suppress(StoreUnavailable):
                await task
        return asked


async def history(reads: Reads, tenant: str) -> Any:
    return await reads.history(tenant, new_id(), below=None, limit=5)


async def history_of_a_member(reads: Reads, tenant: str) -> Any:
    return await reads.history(tenant, a_result().id, below=None, limit=5)


async def many_documents(reads: Reads, tenant: str) -> Any:
    return await reads.blobs(tenant, [f"{number:064x}" for number in range(5)])


async def search(reads: Reads, tenant: str) -> Any:
    return await reads.search(tenant, query())


async def piece(reads: Reads, tenant: str) -> Any:
    blob = BlobInfo(_NAME, "", 3 * PIECE_BYTES, None)
    return [each async for each in reads.blob_pieces(tenant, blob, slice(0, 5))]


@pytest.mark.parametrize(
    "read",
    [history, history_of_a_member, many_documents, search, piece],
    ids=lambda it: it.__name__,
)
async def test_reads_beyond_those_of_a_tenant_wait_and_another_tenant_does_not(
    read: Callable[[Reads, str], Awaitable[Any]],
) -> None:
    slow = Slow()
    reads = slow.reads()
    mine = [asyncio.ensure_future(read(reads, LAB)) for _ in range(READS_PER_TENANT + 3)]
    theirs = asyncio.ensure_future(read(reads, OTHER))

    assert await slow.asked_by([*mine, theirs]) == READS_PER_TENANT + 1


class Searches:
    """Pages that are found once they are released."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.let_go = asyncio.Event()

    async def search(self, tenant: str, _query: SearchQuery) -> Page:
        self.begun.append(tenant)
        await self.let_go.wait()
        return Page((), 0, more=False)


@pytest.mark.parametrize(
    ("limit", "begun"),
    [(200, [LAB, LAB, OTHER, "third"]), (201, [LAB, OTHER])],
)
async def test_pages_of_more_than_200_are_searched_one_for_a_tenant_and_two_in_all(
    monkeypatch: pytest.MonkeyPatch, limit: int, begun: list[str]
) -> None:
    reads, searches = Slow().reads(), Searches()
    monkeypatch.setattr(reads, "_pages", searches)
    running = [
        asyncio.ensure_future(reads.search(tenant, query(limit=limit)))
        for tenant in (LAB, LAB, OTHER, "third")
    ]
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    found = [*searches.begun]
    searches.let_go.set()

    await asyncio.gather(*running)

    assert found == begun
    assert len(searches.begun) == 4
