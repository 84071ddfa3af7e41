from __future__ import annotations

import time
from pathlib import Path

from fhirpub.testing.service import RunningService


def test_a_probe_uses_the_good_answer_of_the_last_second_and_no_older_one(
    tmp_path: Path,
) -> None:
    with RunningService(tmp_path) as service:
        before = service.request("GET", "/health/ready").status
        service.call(service.services.store.stop())
        soon = service.request("GET", "/health/ready").status
        time.sleep(1.1)
        later = [service.request("GET", "/health/ready").status for _ in range(2)]

    assert (before, soon) == (200, 200)
    assert later == [503, 503]
