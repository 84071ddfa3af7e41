"""A harness over each store, and receivers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fhirpub.runtime.clock import now_ms
from fhirpub.testing.clock import HandClock
from fhirpub.testing.receiver import Receiver
from fhirpub.webhooks.dispatch import dispatcher
from tests.webhooks.harness import WebhookHarness, open_harness


@pytest.fixture(autouse=True)
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let dispatchers look after endpoints often, although their leases are long."""
    monkeypatch.setattr(dispatcher, "_LOOK_SECONDS", 0.25)


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store, of the engine that ``--store`` names."""
    url: str = request.getfixturevalue(f"{request.config.getoption('--store')}_url")
    return url


@pytest.fixture(params=["sqlite", "mongodb"])
def each_store_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store, of each engine."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A file that does not exist yet."""
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
async def harness(store_url: str) -> AsyncIterator[WebhookHarness]:
    """A harness that sends, by the machine's clock."""
    async with open_harness(store_url, clock=now_ms) as harness:
        yield harness


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands still."""
    return HandClock()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that accepts everything."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def another() -> Iterator[Receiver]:
    """Another receiver."""
    with Receiver() as receiver:
        yield receiver
