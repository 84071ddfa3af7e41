"""Batches by third-party clients: fhirpy, fhirclient, fhir-kit-client and @medplum/core."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fhirclient.models.bundle import Bundle
from fhirclient.models.diagnosticreport import DiagnosticReport
from fhirpy import SyncFHIRClient

from fhirpub.testing.service import Integrator, RunningService
from tests.api.test_fhirclient import server_for
from tests.batches import TYPE, UNKNOWN, bundle, entry, problems, registering, statuses
from tests.node.packages import Scripts

ENTRIES = (registering("R-1"), registering("R-2", status=None), entry("GET", f"{TYPE}/{UNKNOWN}"))


def test_fhirpy_sends_a_batch(service: RunningService, lab: Integrator) -> None:
    fhir = SyncFHIRClient(f"{service.base_url}/fhir/r4", authorization=f"Bearer {lab.token}")

    answer = fhir.execute("", method="post", data=bundle(*ENTRIES))

    assert statuses(answer["entry"]) == [201, 400, 404]
    assert fhir.resources(TYPE).count() == 1


def test_fhirclient_reads_the_response_to_a_batch(
    service: RunningService, lab: Integrator
) -> None:
    with server_for(service, lab.token) as server:
        (made,) = Bundle(server.post_json("", bundle(ENTRIES[0])).json()).entry
        path = made.response.location.partition("/fhir/r4/")[2]
        asked = Bundle(bundle(entry("GET", path), entry("GET", f"{TYPE}/{UNKNOWN}"))).as_json()

        found, absent = Bundle(server.post_json("", asked).json()).entry

    assert isinstance(found.resource, DiagnosticReport)
    assert found.response.status == "200 OK"
    assert absent.response.outcome.issue[0].code == "not-found"


@pytest.mark.parametrize("client", ["fhir-kit-client", "@medplum/core"])
def test_clients_in_javascript_send_a_batch(node: Scripts, lab: Integrator, client: str) -> None:
    given = {
        "client": client,
        "base": lab.service.base_url,
        "token": lab.token,
        "batch": bundle(*ENTRIES),
    }

    answer: dict[str, Any] = json.loads(node.run("batch.mjs", given=given))

    assert answer["type"] == "batch-response"
    assert statuses(answer["entry"]) == [201, 400, 404]
    assert problems(answer["entry"][2]) == ["resource-unknown"]
