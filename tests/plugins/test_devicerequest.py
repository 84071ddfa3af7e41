from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fhirpub.testing.service import Integrator
from fhirpub_devicerequest import DEVICE_REQUEST
from tests.compositions import device_request, register_body
from tests.plugins.composition_contract import CompositionContract
from tests.plugins.declared_details import paths_of


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


def test_each_parameter_compares_the_elements_that_r4_names() -> None:
    assert paths_of(DEVICE_REQUEST.search) == {
        "instantiates-uri": "uri instantiatesUri",
        "intent": "token intent",
        "code": "token codeCodeableConcept",
        "authored-on": "date authoredOn",
        "event-date": "date occurrenceDateTime occurrencePeriod",
        "subject": "reference subject",
        "requester": "reference requester",
    }


def test_the_short_form_has_what_tells_one_resource_from_another() -> None:
    assert " ".join(DEVICE_REQUEST.summary) == (
        "intent priority code[x] subject occurrence[x] authoredOn requester performer"
    )


def test_a_resource_is_registered_with_any_status_but_that_of_an_error() -> None:
    assert DEVICE_REQUEST.create_statuses == {
        *"active completed draft on-hold revoked unknown".split()
    }
    assert DEVICE_REQUEST.update_statuses - DEVICE_REQUEST.create_statuses == {"entered-in-error"}
