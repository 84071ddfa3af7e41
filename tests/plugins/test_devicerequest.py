from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fhirpub.testing.service import Integrator
from fhirpub_devicerequest import DEVICE_REQUEST
from tests.compositions import device_request, register_body
from tests.plugins.composition_contract import CompositionContract


class TestDeviceRequest(CompositionContract):
    resource_type = DEVICE_REQUEST
    referring_to_others = ("requester", "performer")
    new_values: ClassVar[Mapping[str, Any]] = {
        "status": "completed",
        "priority": "asap",
        "occurrenceDateTime": "2026-11-30",
        "note": [{"text": "Handed over"}],
    }

    def composition(self, value: str, **changes: Any) -> dict[str, Any]:
        return device_request(value, **changes)

    def test_it_needs_a_status(self, lab: Integrator) -> None:
        answer = self.register(lab, register_body(device_request("status", status=None)))

        assert answer.status == 400
        assert answer.issue_expressions == {"Parameters.parameter[3].resource.status"}
