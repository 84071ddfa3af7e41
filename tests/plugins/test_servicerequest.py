from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fhirpub.testing.service import Integrator
from fhirpub_servicerequest import SERVICE_REQUEST
from tests.compositions import register_body, service_request
from tests.plugins.composition_contract import CompositionContract
from tests.plugins.declared_details import paths_of


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


def test_each_parameter_compares_the_elements_that_r4_names() -> None:
    assert paths_of(SERVICE_REQUEST.search) == {
        "instantiates-uri": "uri instantiatesUri",
        "intent": "token intent",
        "priority": "token priority",
        "category": "token category",
        "code": "token code",
        "authored": "date authoredOn",
        "occurrence": "date occurrenceDateTime occurrencePeriod occurrenceTiming",
        "subject": "reference subject",
        "requester": "reference requester",
        "performer": "reference performer",
    }


def test_the_short_form_has_what_tells_one_resource_from_another() -> None:
    assert " ".join(SERVICE_REQUEST.summary) == (
        "intent category priority doNotPerform code subject occurrence[x] authoredOn requester"
        " performer"
    )


def test_a_resource_is_registered_with_any_status_but_that_of_an_error() -> None:
    assert SERVICE_REQUEST.create_statuses == {
        *"active completed draft on-hold revoked unknown".split()
    }
    assert SERVICE_REQUEST.update_statuses - SERVICE_REQUEST.create_statuses == {
        "entered-in-error"
    }
