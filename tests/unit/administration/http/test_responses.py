"""Responses of administration."""

from __future__ import annotations

import asyncio
import json

import pytest

from fhirpub.administration.http.responses import respond, respond_with_list

RECORDS = [{"id": f"client-{number}", "scopes": ["system/*.rs"]} for number in range(1_000)]


@pytest.mark.parametrize("count", [0, 1, 2, 1_000])
async def test_a_list_is_encoded_as_any_value_is(count: int) -> None:
    assert await respond_with_list(RECORDS[:count], status=201) == respond(
        RECORDS[:count], status=201
    )


async def test_other_requests_have_their_turns_while_a_list_is_encoded() -> None:
    encoding = asyncio.create_task(respond_with_list(RECORDS))
    turns = 0
    while not encoding.done():
        await asyncio.sleep(0)
        turns += 1

    assert turns >= len(RECORDS) // 100
    assert json.loads((await encoding).body) == RECORDS
