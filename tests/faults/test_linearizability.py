"""The history of a service that is killed again and again is linearizable.

With FHIRPUB_TEST_FULL set, there are more kills.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from tests.faults.histories import assert_right, of_lab, record
from tests.faults.nemesis import kills

pytestmark = pytest.mark.slow

_WORKERS, _SERVICES = (6, 4) if variable("FHIRPUB_TEST_FULL") else (3, 1)


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
    nemesis = kills(two_workers, Random(seed), workers=_WORKERS, services=_SERVICES)

    await record([two_workers.base_url], lab, histories, nemesis=nemesis)

    await assert_right(histories, two_workers.config, tmp_path)
    unknown = [
        operation
        for every in histories.of.values()
        for operation in every
        if operation.outcome is None
    ]
    assert unknown, "the kills came when nothing was under way"
    assert len(histories) > 30 * (_WORKERS + _SERVICES)
