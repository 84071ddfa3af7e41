from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fhirpub.testing.service import Integrator
from fhirpub_servicerequest import SERVICE_REQUEST
from tests.compositions import register_body, service_request
from tests.plugins.composition_contract import CompositionContract


class TestServiceRequest(CompositionContract):
    resource_type = SERVICE_REQUEST
    referring_to_others = ("requester", "performer")
    new_values: ClassVar[Mapping[str, Any]] = {
        "status": "on-hold",
        "priority": "stat",
        "occurrencePeriod": {"start": "2026-11-22", "end": "2026-11-24"},
        "patientInstruction": "Nothing to eat for twelve hours before",
        "note": [{"text": "Called the patient"}],
    }

    def composition(self, value: str, **changes: Any) -> dict[str, Any]:
        return service_request(value, **changes)

    def test_another_form_of_a_choice_replaces_the_one_before(self, lab: Integrator) -> None:
        path = self.path_of(self.register(lab, self.body(self.fresh_value())))

        self.update_everything(lab, path)

        assert "occurrenceDateTime" not in lab.get(path).json

    def test_details_of_nothing_are_refused(self, lab: Integrator) -> None:
        answer = self.register(lab, register_body(service_request("prr-1", code=None)))

        assert answer.status == 400
        assert answer.issue_expressions == {"Parameters.parameter[3].resource.code"}
