"""Published key sets, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fhirpub.auth.assertions.published_keys import Fetch, PublishedKeys
from tests.unit.auth.assertions.publishing import Site
from tests.unit.auth.conftest import HandClock


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def keys(site: Site, clock: HandClock) -> AsyncIterator[PublishedKeys]:
    fetch: Fetch = site.fetch
    made = PublishedKeys(fetch, clock=clock)
    yield made
    await made.stop()
