"""The clients' histories reveal a store that breaks one promise."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fhirpub.config.settings import Config
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator, RunningService
from tests.faults import broken_stores
from tests.faults.histories import everything_wrong, of_lab, record

pytestmark = pytest.mark.slow

_BUGS = {
    broken_stores.LetsTwoUpdatesWin: "No order explains",
    broken_stores.ReadsFromACache: "No order explains",
    broken_stores.DropsAnEvent: "Version 3 has the events []",
    broken_stores.DropsADocument: "without its document",
    broken_stores.RepeatsInOtherWords: "different answers",
    broken_stores.LosesAnUpdate: "was reported as",
    broken_stores.RegistersTwice: "reports instead of",
    broken_stores.AnswersEachRegistration: "No order explains",
}
"""Each store with words of a complaint that it must cause."""


async def wrong_after_a_while(lab: Integrator, *, seed: int, config: Config) -> str:
    """Return all complaints, in one text."""
    histories = await of_lab(lab, seed=seed)

    async def enough() -> None:
        while len(histories) < _ENOUGH:
            await asyncio.sleep(0.01)

    await record([lab.service.base_url], lab, histories, nemesis=enough, calls_each=20)
    wrong = await everything_wrong(histories, config)
    return "\n".join(name for every in wrong.values() for name in every)


async def test_a_store_that_keeps_its_promises_is_not_complained_of(
    store_url: str, seed: int, tmp_path: Path
) -> None:
    open_store = broken_stores.opening(broken_stores.StoreWrapper)
    with RunningService(tmp_path, store_url=store_url, open_store=open_store) as service:
        lab = service.integrator()
        assert await wrong_after_a_while(lab, seed=seed, config=service.config) == ""


@pytest.mark.parametrize("bug", _BUGS)
async def test_a_broken_promise_is_found_out(
    bug: type[broken_stores.StoreWrapper], seed: int, tmp_path: Path
) -> None:
    with RunningService(tmp_path, open_store=broken_stores.opening(bug)) as service:
        lab = service.integrator()
        wrong = await wrong_after_a_while(lab, seed=seed, config=service.config)

    assert _BUGS[bug] in wrong


_ENOUGH = 600
_BEFORE_THE_KILL = 200
"""The number of answered calls, so that some were acknowledged shortly before."""


async def test_what_was_acknowledged_too_early_is_missed_after_a_kill(
    seed: int, tmp_path: Path
) -> None:
    with ServiceProcess(tmp_path, module="tests.faults.early_acknowledgement") as process:
        lab = process.integrator()
        histories = await of_lab(lab, seed=seed)

        async def nemesis() -> None:
            while len(histories) < _BEFORE_THE_KILL:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(process.kill)
            await asyncio.to_thread(process.start)

        await record([process.base_url], lab, histories, nemesis=nemesis)
        wrong = await everything_wrong(histories, process.config)

    found = "\n".join(name for every in wrong.values() for name in every)
    assert "No order explains" in found
    assert "was reported as" in found
