"""Records for the tests of a store, and helpers that add and read them."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from fhirpub.storage.contract import (
    Blob,
    BlobInfo,
    Client,
    SigningKey,
    Version,
)
from fhirpub.storage.store import Store
from fhirpub.testing.samples import (
    LAB,
    a_version,
    new_id,
)

Reopen = Callable[[], Awaitable[Store]]
"""Starts another store on the same data."""


@asynccontextmanager
async def reopening(make: Callable[[], Store]) -> AsyncGenerator[Reopen]:
    """Provide a function that creates and starts stores; all of them are stopped at the end.

    Args:
        make: Creates a store that is not started.

    Yields:
        The function. Each call returns another store that is started.
    """
    async with AsyncExitStack() as stack:

        async def start() -> Store:
            store = make()
            await store.start()
            stack.push_async_callback(store.stop)
            return store

        yield start


def a_blob(data: bytes | None = None, content_type: str = "application/pdf") -> Blob:
    """Return a document.

    Args:
        data: Its bytes; None for 100 random ones.
        content_type: Its media type.

    Returns:
        The document.
    """
    data = os.urandom(100) if data is None else data
    return Blob(hashlib.sha256(data).hexdigest(), content_type, data)


def a_client(**changes: Any) -> Client:
    """Return a new client without secrets.

    Args:
        **changes: The fields that differ from the sample.

    Returns:
        The client, with an id of its own.
    """
    usual = Client(
        id=new_id(), tenant=LAB, name="Lab", environment="sandbox", created=1, secrets=()
    )
    return replace(usual, **changes)


def a_key(kid: str, **changes: Any) -> SigningKey:
    """Return a signing key that cannot sign.

    Args:
        kid: Its key id.
        **changes: The fields that differ from the sample.

    Returns:
        The key.
    """
    usual = SigningKey(
        kid=kid, algorithm="ES256", environment="sandbox", created=1, private_pem=b"pem"
    )
    return replace(usual, **changes)


async def add_all(store: Store, versions: Sequence[Version], tenant: str = LAB) -> None:
    """Add versions concurrently.

    Raises:
        AssertionError: One of them was not new.
    """
    added = await asyncio.gather(*(store.add(tenant, version) for version in versions))
    assert all(added)


async def keep(store: Store, tenant: str, blobs: Collection[Blob]) -> None:
    """Store blobs to which no version refers, as a request that fails afterwards leaves them.

    Args:
        store: The store.
        tenant: The tenant of the blobs.
        blobs: The blobs, added together with a version that does not refer to them.
    """
    await store.add(tenant, a_version(), blobs)


async def whole_blobs(store: Store, tenant: str, names: Collection[str]) -> dict[str, Blob]:
    """Return blobs with all of their bytes.

    Returns:
        The blobs by name; unknown names are omitted.
    """
    known = await store.blobs(tenant, names)
    return {name: await store.whole_blob(tenant, blob) for name, blob in known.items()}


async def store_blob(store: Store, blob: Blob) -> BlobInfo:
    """Store a blob of the tenant ``LAB``, and return its metadata."""
    await keep(store, LAB, [blob])
    return (await store.blobs(LAB, [blob.sha256]))[blob.sha256]


async def pieces_of(
    store: Store, blob: BlobInfo, part: slice, *, tenant: str = LAB
) -> list[bytes]:
    """Return the pieces of a part of a blob.

    Args:
        store: The store.
        blob: The metadata of the blob.
        part: The bytes to read.
        tenant: The tenant that reads it.

    Returns:
        The pieces in order.

    Raises:
        StoreUnavailable: The tenant has no such blob.
    """
    return [piece async for piece in store.blob_pieces(tenant, blob, part)]
