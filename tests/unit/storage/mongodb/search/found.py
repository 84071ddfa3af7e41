"""A collection of versions that finds what a test wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bson

from fhirpub.storage.contract import Version
from fhirpub.storage.mongodb.documents import encode_addition
from fhirpub.storage.mongodb.member_reads import MemberReads
from fhirpub.storage.mongodb.search.pages import Pages
from fhirpub.testing.samples import LAB, a_version
from tests.unit.storage.mongodb.answers import Found

ONE_MOMENT: Any = object()


class Versions:
    """A collection that finds what a test wants, and records what it was asked for."""

    def __init__(self) -> None:
        self.answers: list[list[dict[str, Any]]] = []
        self.asked: list[tuple[list[dict[str, Any]], dict[str, Any]]] = []
        self.read: list[tuple[Any, Any, dict[str, Any]]] = []
        self.stored: list[dict[str, Any]] = []
        self.concerns: list[object] = []
        self.has_reuse = False
        self.reuse_asked: list[str] = []

    def with_options(self, *, read_concern: object) -> Versions:
        self.concerns.append(read_concern)
        return self

    def aggregate(self, pipeline: list[dict[str, Any]], **options: Any) -> Found:
        self.asked.append((pipeline, options))
        return Found(self.answers.pop(0))

    def find(self, wanted: Any, shown: Any, **options: Any) -> Found:
        self.read.append((wanted, shown, options))
        return Found(self.stored)

    async def answer(self, look: Any) -> Any:
        return await look()

    async def of(self, tenant: str) -> bool:
        self.reuse_asked.append(tenant)
        return self.has_reuse

    def pages(self, seconds: float = 10) -> Pages:
        members = MemberReads(self, self._answered, seconds=10)  # type: ignore[arg-type]
        return Pages(
            self,  # type: ignore[arg-type]
            ONE_MOMENT,
            primary=self,  # type: ignore[arg-type]
            members=members,
            reuse=self,  # type: ignore[arg-type]
            seconds=seconds,
        )

    async def _answered(self, ask: Any) -> list[dict[str, Any]]:
        return await ask().to_list(None)  # type: ignore[no-any-return]

    def store(self, *versions: Version) -> None:
        for version in versions:
            self.stored.append(bson.decode(encode_addition(LAB, version, (), now=1).document.raw))


def places(versions: Sequence[Version], total: int | None = None) -> list[dict[str, Any]]:
    """Return what a pipeline finds."""
    found: list[dict[str, Any]] = [
        {"id": each.id, "version": each.version, "updated": each.updated} for each in versions
    ]
    return found if total is None else [*found, {"total": total}]


def newest(count: int) -> list[Version]:
    """Return versions, newest first."""
    return [a_version(updated=1_000 - number) for number in range(count)]
