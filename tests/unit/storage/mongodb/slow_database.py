"""A database whose inserts wait until a test lets them go, and what is added to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from pymongo.errors import OperationFailure

from fhirpub.storage.contract import Blob, Version
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.opened import Opened
from fhirpub.storage.mongodb.server_checks import _STANDALONE
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB
from tests.waiting import until

NEVER = OperationFailure("a value", 91, {"errorLabels": ["NoWritesPerformed"]})


class Collection:
    """A collection whose inserts wait until a test lets them go."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.counted: list[Any] = []
        self.failures: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()

    def with_options(self, **_options: object) -> Collection:
        return self

    async def insert_many(self, documents: Sequence[Any], **_options: object) -> None:
        self.batches.append([*documents])
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)

    async def bulk_write(self, writes: Sequence[Any], **_options: object) -> None:
        self.counted += writes


class Database:
    """The collections of a database, which keep nothing."""

    def __init__(self) -> None:
        self.client = SimpleNamespace(delegate=None)
        self._collections: dict[str, Collection] = {}

    def __getitem__(self, name: str) -> Collection:
        return self._collections.setdefault(name, Collection())

    @property
    def versions(self) -> Collection:
        return self[schema.VERSION]

    @property
    def pieces(self) -> Collection:
        return self[schema.PIECE]

    def opened(self, seconds: float = 30) -> Opened:
        return Opened(self, _STANDALONE, seconds)  # type: ignore[arg-type]


def large() -> Blob:
    """Return a document that is stored in pieces."""
    return a_blob(bytes(5 * 1024 * 1024))


def adding(
    opened: Opened, version: Version, *blobs: Blob, tenant: str = LAB
) -> asyncio.Task[bool]:
    return asyncio.create_task(opened.add(tenant, version, blobs, now=1))


async def reach(found: Callable[[], object], wanted: object) -> None:
    """Wait until something is as it should be, and see that it stays so."""
    await until(lambda: found() == wanted)
    for _ in range(20):
        await asyncio.sleep(0)
    assert found() == wanted
