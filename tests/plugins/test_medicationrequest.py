from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from fhirpub.testing.service import Integrator, RunningService
from fhirpub_medicationrequest import MEDICATION_REQUEST
from tests.compositions import encounter, medication_request, register_body
from tests.plugins.composition_contract import CompositionContract
from tests.plugins.declared_details import paths_of


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

    def test_the_event_marks_what_must_not_be_given(
        self, service: RunningService, lab: Integrator
    ) -> None:
        body = register_body(medication_request(self.fresh_value(), doNotPerform=True))
        registered = self.register(lab, body)

        event = self.event_of(service, lab, self.path_of(registered), 1)

        assert self.resource_of(registered)["doNotPerform"] is True
        assert event["data"]["doNotPerform"] is True

    def test_the_answer_has_what_stands_in_place_of_a_required_value(
        self, lab: Integrator
    ) -> None:
        reason = "http://hl7.org/fhir/StructureDefinition/data-absent-reason"
        masked = {"extension": [{"url": reason, "valueCode": "masked"}]}
        body = register_body(medication_request(self.fresh_value(), intent=None, _intent=masked))

        registered = self.register(lab, body)

        assert self.resource_of(registered)["_intent"] == masked

    def test_the_answer_shortens_a_medication_of_more_than_64_kib(self, lab: Integrator) -> None:
        coding = {"system": "urn:x", "code": "c", "display": "x" * 1_000}
        concept = {"coding": [coding] * 70}
        body = register_body(
            medication_request(self.fresh_value(), medicationCodeableConcept=concept)
        )

        registered = self.register(lab, body)

        assert self.resource_of(registered)["medicationCodeableConcept"] == {"coding": [coding]}

    def test_it_may_refer_to_an_encounter_that_was_registered_before(
        self, lab: Integrator
    ) -> None:
        written_in = lab.register(register_body(encounter("before")), type_name="Encounter")
        own = {"reference": "Encounter/" + written_in.json["parameter"][0]["resource"]["id"]}
        body = register_body(medication_request(self.fresh_value(), encounter=own))

        registered = self.register(lab, body)

        issues = registered.json["parameter"][1]["resource"]["issue"]
        (issue,) = (
            issue for issue in issues if "encounter" in str(issue.get("expression", "")).lower()
        )
        assert issue["severity"] == "information"
        assert lab.get(self.path_of(registered)).json["encounter"] == own

    @pytest.mark.parametrize("query", ["_elements=medication", "_summary=text", "_summary=true"])
    def test_that_something_is_not_to_be_taken_is_never_left_out(
        self, lab: Integrator, query: str
    ) -> None:
        value = self.fresh_value()
        self.register(lab, register_body(medication_request(value, doNotPerform=True)))

        found = lab.get(f"/fhir/r4/MedicationRequest?identifier={value}&{query}").json

        assert found["entry"][0]["resource"]["doNotPerform"] is True


def test_each_parameter_compares_the_elements_that_r4_names() -> None:
    assert paths_of(MEDICATION_REQUEST.search) == {
        "intent": "token intent",
        "category": "token category",
        "code": "token medicationCodeableConcept",
        "authoredon": "date authoredOn",
        "subject": "reference subject",
        "requester": "reference requester",
    }


def test_the_short_form_has_what_tells_one_resource_from_another() -> None:
    assert " ".join(MEDICATION_REQUEST.summary) == (
        "intent category priority doNotPerform medication[x] subject authoredOn requester"
        " performer"
    )


def test_a_resource_is_registered_with_any_status_but_that_of_an_error() -> None:
    assert MEDICATION_REQUEST.create_statuses == {
        *"active cancelled completed draft on-hold stopped unknown".split()
    }
    assert MEDICATION_REQUEST.update_statuses - MEDICATION_REQUEST.create_statuses == {
        "entered-in-error"
    }
