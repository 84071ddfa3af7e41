"""How many pages are read at the same time, each of which may be large."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fhirpub.testing.contracts.store.queries import wanting
from fhirpub.testing.samples import LAB, OTHER
from tests.unit.storage.mongodb.answers import Found
from tests.unit.storage.mongodb.search.found import Versions, newest, places


class Held(Found):
    """A cursor whose documents come once they are released."""

    def __init__(self, found: list[dict[str, Any]], gate: asyncio.Event) -> None:
        super().__init__(found)
        self._gate = gate

    async def to_list(self, _most: None) -> list[dict[str, Any]]:
        await self._gate.wait()
        return await super().to_list(None)


class SlowVersions(Versions):
    """Versions that are found at once and read slowly."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    def find(self, wanted: Any, shown: Any, **options: Any) -> Found:
        super().find(wanted, shown, **options)
        return Held(self.stored, self.gate)


@pytest.mark.parametrize(
    ("tenants", "read"),
    [
        ([LAB] * 6, 4),
        ([LAB] * 6 + [OTHER], 5),
        ([LAB] * 6 + [OTHER] * 6, 6),
    ],
)
async def test_four_pages_of_a_tenant_and_six_in_all_are_read_at_the_same_time(
    tenants: list[str], read: int
) -> None:
    versions, (one,) = SlowVersions(), newest(1)
    versions.store(one)
    versions.answers = [places([one], total=1) for _ in tenants]
    pages = versions.pages(seconds=300)
    searches = [asyncio.ensure_future(pages.search(tenant, wanting())) for tenant in tenants]
    for _ in range(20):
        await asyncio.sleep(0)
    at_once = len(versions.read)
    versions.gate.set()

    found = await asyncio.gather(*searches)

    assert at_once == read
    assert [page.versions for page in found] == [(one,)] * len(tenants)
