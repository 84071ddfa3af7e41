"""Changes of endpoints over a real store: secrets, revisions and health."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fhirpub.errors import VersionConflict
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.testing.clock import HandClock
from fhirpub.webhooks.policy.endpoint_health import NEW_HEALTH
from tests.webhooks.harness import TENANT, WebhookHarness, open_harness

URL = "http://127.0.0.1:9/hook"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def harness(tmp_path: Path, clock: HandClock) -> AsyncIterator[WebhookHarness]:
    url = f"sqlite:///{tmp_path}/fhirpub.db"
    async with open_harness(url, clock=clock, sends=False) as harness:
        yield harness


async def test_a_secret_that_was_replaced_ends_after_so_many_seconds(
    harness: WebhookHarness, clock: HandClock
) -> None:
    added = (await harness.endpoint(URL)).endpoint

    rotated = await harness.administration.rotate_secret(TENANT, added.id, {"grace_seconds": 5})

    ends = [secret.expires for secret in rotated.endpoint.secrets]
    assert ends == [None, clock() + 5_000]


async def test_of_two_changes_of_one_revision_one_is_made(harness: WebhookHarness) -> None:
    added = (await harness.endpoint(URL)).endpoint

    def check(revision: int) -> None:
        if revision != added.revision:
            raise VersionConflict(target=str(added.revision), current=revision)

    change = harness.administration.change
    outcomes = await asyncio.gather(
        *(change(TENANT, added.id, {"description": text}, check=check) for text in "ab"),
        return_exceptions=True,
    )

    assert {type(outcome) for outcome in outcomes} == {Endpoint, VersionConflict}


async def test_an_endpoint_that_moved_leaves_its_failures_behind(harness: WebhookHarness) -> None:
    added = (await harness.endpoint(URL)).endpoint
    await harness.store.save_health(added.id, b'{"warned":1}')

    await harness.administration.change(TENANT, added.id, {"url": f"{URL}/new"}, trusted=True)

    stored = await harness.store.endpoint(TENANT, added.id)
    assert stored is not None
    assert stored.condition == NEW_HEALTH
