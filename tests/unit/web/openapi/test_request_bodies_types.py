"""The bodies of requests to a service whose plugins add no resource type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.testing.service import RunningService
from fhirpub.web.openapi.document import document as made


def test_the_example_of_a_batch_asks_for_what_every_service_has(tmp_path: Path) -> None:
    with RunningService(tmp_path, config=Config(plugins=PluginsConfig(enabled=[]))) as service:
        found: Any = made(service.services)
        auditor = service.integrator(scopes=("system/AuditEvent.rs",))
        answer = auditor.get("/fhir/r4/AuditEvent?_count=1")

    batch = found["paths"]["/fhir/r4"]["post"]["requestBody"]["content"]
    (entry,) = batch["application/fhir+json"]["example"]["entry"]
    assert entry["request"] == {"method": "GET", "url": "AuditEvent?_count=1"}
    assert answer.status == 200
