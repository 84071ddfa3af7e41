from __future__ import annotations

from typing import Any

from fhirpub.testing.resource_type_contract import ResourceTypeContract
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT
from tests.bodies import register_body


class TestDiagnosticReport(ResourceTypeContract):
    resource_type = DIAGNOSTIC_REPORT

    def body(
        self, value: str, *, system: str = "https://contract.example/identifiers"
    ) -> dict[str, Any]:
        return register_body(value, system=system)
