"""A request and its response."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.cli.http_client import Call, http_client, json_of, send


@pytest.mark.parametrize(("body", "parsed"), [({"a": 1}, {"a": 1}), ([1], {}), ("text", {})])
async def test_a_body_that_is_no_object_reads_as_an_empty_one(
    stub: Any, body: Any, parsed: dict[str, Any]
) -> None:
    stub.answers = [(200, {}, body)]

    async with http_client() as client:
        answer = await send(client, Call.form(stub.address, {}))

    assert json_of(answer) == parsed
