"""How much of the body of a provider is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.console.provider_client import _MOST_BYTES, _TIMEOUT, _pieces

CHUNK = b"x" * 1024


class Body:
    """A body that has no end; keeps how much of it was read."""

    def __init__(self, chunk: bytes) -> None:
        self.chunk, self.read = chunk, 0

    async def iter_any(self) -> AsyncIterator[bytes]:
        while True:
            self.read += len(self.chunk)
            assert self.read <= 2 * _MOST_BYTES
            yield self.chunk

    @property
    def answer(self) -> Any:
        return cast("Any", SimpleNamespace(content=self))


@pytest.mark.parametrize("size", [1024, 1000, _MOST_BYTES])
async def test_of_an_endless_body_a_piece_more_than_the_limit_is_read(size: int) -> None:
    body = Body(b"x" * size)

    pieces = [piece async for piece in _pieces(body.answer)]

    assert len(pieces) == _MOST_BYTES // size + 1
    assert body.read == sum(map(len, pieces)) > _MOST_BYTES


def test_a_provider_has_ten_seconds() -> None:
    assert _TIMEOUT.total == 10
