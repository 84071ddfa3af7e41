"""What every engine inherits from its contract, and the limits that engines share."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from fhirpub.storage import contract
from fhirpub.storage.contract import Blob, BlobInfo, Resources, StoreAdmin
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.storage.upgrades.versions import SchemaVersion

_PROMISED: list[tuple[str, Any]] = [
    (name, getattr(Store, name))
    for name in sorted(dir(Store))
    if not name.startswith("_") and inspect.isfunction(getattr(Store, name))
]


class _Asked:
    """A store that yields pieces, and records what it was asked for."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.asked: list[tuple[str, BlobInfo, slice]] = []

    async def blob_pieces(
        self, tenant: str, blob: BlobInfo, part: slice
    ) -> AsyncGenerator[bytes, None]:
        self.asked.append((tenant, blob, part))
        for piece in self._pieces:
            yield piece

    def whole(self, blob: BlobInfo) -> Any:
        return Resources.whole_blob(self, "lab", blob)  # type: ignore[arg-type]


async def test_a_large_document_is_put_together_from_all_of_its_pieces() -> None:
    store = _Asked(b"ab", b"cd", b"e")
    known = BlobInfo("name", "image/png", 5, None)

    assert await store.whole(known) == Blob("name", "image/png", b"abcde")
    assert store.asked == [("lab", known, slice(0, 5))]


@pytest.mark.parametrize("data", [b"", b"abc"])
async def test_a_document_whose_bytes_are_known_is_not_read(data: bytes) -> None:
    store = _Asked(b"other")

    whole = await store.whole(BlobInfo("name", "image/png", len(data), data))

    assert whole == Blob("name", "image/png", data)
    assert store.asked == []


async def test_an_engine_without_an_identity_has_an_empty_one() -> None:
    assert await StoreAdmin.identity(object()) == ""  # type: ignore[arg-type]


async def test_an_engine_without_versions_is_of_version_0() -> None:
    version = await StoreAdmin.schema_version(object())  # type: ignore[arg-type]

    assert version == SchemaVersion(0, 0)


def test_documents_of_64_kib_come_with_what_is_known_of_them() -> None:
    assert contract.SMALL_BYTES == 64 * 1024


def test_a_piece_of_a_document_has_half_a_mebibyte_at_most() -> None:
    assert contract.MAX_CHUNK_BYTES == 512 * 1024


def test_a_page_ends_at_about_16_mebibytes() -> None:
    assert contract.MAX_PAGE_BYTES == 16 * 1024 * 1024


def test_a_search_may_take_two_fifths_of_the_deadline() -> None:
    assert contract.MAX_SEARCH_SHARE == 0.4


def _defaults(function: Callable[..., object]) -> dict[str, object]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not each.empty}


@pytest.mark.parametrize("engine", [SqliteStore, MongoStore])
@pytest.mark.parametrize(("name", "promised"), _PROMISED, ids=[name for name, _ in _PROMISED])
def test_an_engine_has_the_defaults_that_are_promised(
    engine: type[Store], name: str, promised: Callable[..., object]
) -> None:
    assert _defaults(getattr(engine, name)) == _defaults(promised)


def test_defaults_are_those_that_are_documented() -> None:
    found = {name: defaults for name, promised in _PROMISED if (defaults := _defaults(promised))}

    assert found == {
        "add": {"blobs": ()},
        "all_endpoints": {"of": None},
        "audit_chain": {"after": 0, "limit": 100},
        "audit_checkpoints": {"after": 0, "limit": 1_000},
        "change_tenant": {"name": None, "disabled": None},
        "clients": {"tenant": None},
        "erasures": {"tenant": None, "unfinished": False, "after": ("", ""), "limit": 100},
        "history": {"below": None, "limit": 20},
        "quota_counts": {"besides": ""},
        "scan": {"after": ("", 0), "limit": 100},
        "scan_deliveries": {"after": ("", 0), "limit": 100},
        "unsealed_audit": {"tenants": ()},
        "used_assertions": {"after": ("", ""), "limit": 1_000},
        "waiting": {"after": 0, "limit": 1_000},
    }
