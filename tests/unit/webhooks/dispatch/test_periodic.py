"""Several tasks in one round."""

from __future__ import annotations

import asyncio

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.webhooks.dispatch.periodic import gather_all


async def test_one_that_fails_leaves_none_to_run_on() -> None:
    done = []

    async def fail() -> None:
        raise StoreUnavailable("gone")

    async def write() -> None:
        await asyncio.sleep(0.05)  # far longer than the failure takes to arrive
        done.append("written")

    with pytest.raises(StoreUnavailable):
        await gather_all(fail(), write())

    assert done == ["written"]
