from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fhirpub.testing.service import Integrator, RunningService
from fhirpub_medicationrequest import MEDICATION_REQUEST
from tests.compositions import medication_request, register_body
from tests.plugins.composition_contract import CompositionContract


class TestMedicationRequest(CompositionContract):
    resource_type = MEDICATION_REQUEST
    referring_to_others = ("requester", "dispenseRequest")
    new_values: ClassVar[Mapping[str, Any]] = {
        "status": "stopped",
        "statusReason": {"text": "Cough"},
        "note": [{"text": "Replaced by another"}],
    }

    def composition(self, value: str, **changes: Any) -> dict[str, Any]:
        return medication_request(value, **changes)

    def test_what_must_not_be_given_is_told_so(
        self, service: RunningService, lab: Integrator
    ) -> None:
        body = register_body(medication_request(self.fresh_value(), doNotPerform=True))
        registered = self.register(lab, body)

        told = self.told(service, lab, self.path_of(registered), 1)

        assert self.resource_of(registered)["doNotPerform"] is True
        assert told["data"]["doNotPerform"] is True
