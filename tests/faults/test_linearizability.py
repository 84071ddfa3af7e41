"""The history of a service that is killed again and again is linearizable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from fhirpub.testing.process import ServiceProcess
from tests.faults.histories import assert_right, of_lab, record
from tests.faults.nemesis import kills

pytestmark = pytest.mark.slow


@pytest.fixture
def two_workers(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    settings = {"storage": {"url": store_url}}
    with ServiceProcess(tmp_path, workers=2, settings=settings) as process:
        yield process


async def test_every_history_under_kills_is_linearizable(
    two_workers: ServiceProcess, seed: int, tmp_path: Path
) -> None:
    lab = two_workers.integrator()
    histories = await of_lab(lab, seed=seed)
    nemesis = kills(two_workers, Random(seed), workers=6, services=4)

    await record([two_workers.base_url], lab, histories, nemesis=nemesis)

    await assert_right(histories, two_workers.config, tmp_path)
    unknown = [
        operation
        for every in histories.of.values()
        for operation in every
        if operation.outcome is None
    ]
    assert unknown, "the kills came when nothing was under way"
    assert len(histories) > 300
