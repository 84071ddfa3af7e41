"""Whether the process is alive, and whether it can serve."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.testing.service import RunningService
from tests.unit.web.handlers.asking import REPORTS


@pytest.mark.parametrize(("name", "status"), [("live", "alive"), ("ready", "ready")])
@pytest.mark.parametrize("accept", ["*/*", "image/png", "application/fhir+xml"])
def test_a_probe_needs_no_token_and_gets_json(
    service: RunningService, name: str, status: str, accept: str
) -> None:
    answer = service.request("GET", f"/health/{name}", headers={"Accept": accept})

    assert (answer.status, answer.json) == (200, {"status": status})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"


def test_without_its_store_a_service_is_alive_and_not_ready(service: RunningService) -> None:
    readiness: Any = service.services.readiness
    before = readiness._check, readiness._good_until

    async def away() -> None:
        raise StoreUnavailable("away")

    readiness._check, readiness._good_until = away, 0.0
    try:
        found = [service.request("GET", f"/health/{name}") for name in ("live", "ready")]
    finally:
        readiness._check, readiness._good_until = before

    assert [answer.status for answer in found] == [200, 503]
    assert found[1].headers["retry-after"] == "1"
    assert service.request("GET", REPORTS).status == 401
