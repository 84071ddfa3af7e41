"""Many clients want the same at the same time, from several processes: one of them gets it.

With FHIRPUB_TEST_FULL set, they want 200 reports instead of 25.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from tests.faults.histories import Client, Histories, assert_right, of_lab
from tests.faults.linearizability import (
    Call,
    Conflict,
    Outcome,
    Patch,
    Register,
    Registered,
    Updated,
)
from tests.faults.stores import mostly_on
from tests.faults.wire import Connection

pytestmark = pytest.mark.slow

_REPORTS = 200 if variable("FHIRPUB_TEST_FULL") else 25
_CLIENTS = 64
_UPDATES = 20
_UPDATERS = 32


@dataclass(frozen=True, slots=True)
class Crowd:
    """Clients that are already connected, so that their calls arrive together."""

    process: ServiceProcess
    histories: Histories
    clients: list[Client]

    async def all_call(self, value: str, calls: list[Call]) -> list[Outcome | None]:
        """Let each client make one call, all at once."""
        chosen = zip(self.clients, calls, strict=False)
        return await asyncio.gather(*(client.call(value, call) for client, call in chosen))

    def markers(self, how_many: int) -> list[str]:
        """Return a content for each of this number of clients."""
        return [client.marker() for client in self.clients[:how_many]]


@pytest.fixture
async def crowd(tmp_path: Path, store_url: str, seed: int) -> AsyncGenerator[Crowd]:
    settings = {"storage": {"url": store_url}}
    with ServiceProcess(tmp_path, workers=2, settings=settings) as process:
        lab = process.integrator()
        histories = await of_lab(lab, seed=seed)
        async with AsyncExitStack() as stack:
            clients = []
            for number in range(_CLIENTS):
                one = Connection(process.base_url, token=lab.token)
                connection = await stack.enter_async_context(one)
                await connection.open()
                clients.append(Client(histories, connection, number))
            yield Crowd(process, histories, clients)


@mostly_on("mongodb")
async def test_however_many_register_at_once_there_is_one_report_and_one_answer(
    crowd: Crowd, tmp_path: Path
) -> None:
    for number in range(_REPORTS):
        calls: list[Call] = [Register(marker) for marker in crowd.markers(_CLIENTS)]
        outcomes = await crowd.all_call(f"race-{number}", calls)

        answers = {
            (outcome.first, outcome.answer)
            for outcome in outcomes
            if isinstance(outcome, Registered)
        }
        assert (len(answers), len(outcomes)) == (1, _CLIENTS)
        assert None not in outcomes

    await assert_right(crowd.histories, crowd.process.config, tmp_path)


async def test_of_concurrent_updates_of_one_version_exactly_one_succeeds(
    crowd: Crowd, tmp_path: Path
) -> None:
    await crowd.clients[0].call("race", Register("first"))

    for version in range(1, 1 + _UPDATES):
        calls: list[Call] = [Patch(marker, version) for marker in crowd.markers(_UPDATERS)]
        outcomes = await crowd.all_call("race", calls)

        assert outcomes.count(Updated(version + 1)) == 1
        assert outcomes.count(Conflict(version + 1)) == _UPDATERS - 1

    await assert_right(crowd.histories, crowd.process.config, tmp_path)
