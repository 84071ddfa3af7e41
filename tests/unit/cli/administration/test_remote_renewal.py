"""A token of administration is renewed within a long command, before it ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from fhirpub.administration import tenants
from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.cli.administration.remote import open_remote
from tests.unit.cli.bureau import KEY, Bureau
from tests.unit.cli.prepared import Reply


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """The file of a private key."""
    private, _ = new_key_pair()
    file = tmp_path / "ana.key.json"
    file.write_text(json.dumps({"name": "ana", **private}))
    return file


def call_twice(bureau: Bureau, key: Path) -> None:
    async def twice() -> None:
        async with open_remote(bureau.url, key) as call:
            await call(tenants.LIST)
            bureau.token = Reply(200, {"access_token": "d.e.f", "expires_in": 3_600})
            await call(tenants.LIST)

    asyncio.run(twice())


def sent(bureau: Bureau) -> list[str]:
    """Return the tokens of the requests."""
    return [one.headers["Authorization"].removeprefix("Bearer ") for one in bureau.asked]


def test_a_token_that_ends_is_renewed(bureau: Bureau, key: Path) -> None:
    bureau.token = Reply(200, {"access_token": "a.b.c", "expires_in": 0})

    call_twice(bureau, key)

    assert sent(bureau) == ["a.b.c", "d.e.f"]
    first, second = (one.arguments["client_assertion"] for one in bureau.tokens)
    assert first != second  # an assertion is used once


@pytest.mark.parametrize("seconds", [3_600, None, "soon"])
def test_a_token_is_not_renewed_before_it_must_be(
    bureau: Bureau, key: Path, seconds: object
) -> None:
    bureau.token = Reply(200, {"access_token": "a.b.c", "expires_in": seconds})

    call_twice(bureau, key)

    assert sent(bureau) == ["a.b.c", "a.b.c"]


def test_the_bootstrap_key_is_not_exchanged_however_often(bureau: Bureau, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)

    call_twice(bureau, file)

    assert sent(bureau) == [KEY, KEY]
    assert bureau.tokens == []
