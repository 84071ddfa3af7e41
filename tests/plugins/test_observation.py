from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from fhirpub.testing.service import Integrator, RunningService
from fhirpub_observation import OBSERVATION
from tests.compositions import UCUM, observation, register_body
from tests.plugins.composition_contract import CompositionContract
from tests.plugins.declared_details import paths_of

CODE = {"coding": [{"system": "http://loinc.org", "code": "85354-9"}]}


class TestObservation(CompositionContract):
    resource_type = OBSERVATION
    referring_to_others = ("performer",)
    new_values: ClassVar[Mapping[str, Any]] = {
        "status": "corrected",
        "interpretation": [{"text": "Normal"}],
        "component": [{"code": {"text": "Systolic"}, "valueInteger": 118}],
        "issued": "2026-11-20T13:00:00Z",
        "note": [{"text": "Measured again"}],
        "dataAbsentReason": {"text": "See the components"},
    }

    def composition(self, value: str, **changes: Any) -> dict[str, Any]:
        return observation(value, **changes)

    def test_its_value_is_in_no_event(self, service: RunningService, lab: Integrator) -> None:
        weight = {"value": 81.5, "unit": "kg", "system": UCUM, "code": "kg"}
        body = register_body(observation(self.fresh_value(), component=None, valueQuantity=weight))

        event = self.event_of(service, lab, self.path_of(self.register(lab, body)), 1)

        assert "81.5" not in str(event)

    def test_without_its_value_it_is_no_vital_sign(self, lab: Integrator) -> None:
        vital_signs = "http://hl7.org/fhir/StructureDefinition/vitalsigns"
        sent = observation(self.fresh_value(), meta={"profile": [vital_signs]})
        answer = self.register(lab, register_body(sent))

        path = self.path_of(answer)

        assert "profile" not in self.resource_of(answer)["meta"]
        assert "profile" not in lab.get(f"{path}?_summary=text").json["meta"]
        assert lab.get(path).json["meta"]["profile"] == [vital_signs]

    def test_a_value_may_take_the_place_of_the_reason_for_its_absence(
        self, lab: Integrator
    ) -> None:
        absent: dict[str, Any] = {
            "component": None,
            "dataAbsentReason": {"text": "Not measured yet"},
        }
        path = self.path_of(
            self.register(lab, register_body(observation(self.fresh_value(), **absent)))
        )

        answer = lab.request(
            "PATCH",
            path,
            {"dataAbsentReason": None, "valueInteger": 3},
            {"Content-Type": "application/merge-patch+json"},
        )

        assert answer.status == 204, answer.body
        assert "dataAbsentReason" not in lab.get(path).json

    def test_a_category_that_its_system_does_not_have_is_warned_of(self, lab: Integrator) -> None:
        system = "http://terminology.hl7.org/CodeSystem/observation-category"
        category = [{"coding": [{"system": system, "code": "vital-sings"}]}]
        body = register_body(observation(self.fresh_value(), category=category))

        issues = self.register(lab, body).json["parameter"][1]["resource"]["issue"]

        place = "Parameters.parameter[3].resource.category[0].coding[0].code"
        (found,) = (issue for issue in issues if issue.get("expression") == [place])
        assert found["severity"] == "warning"

    def test_a_value_of_another_type_replaces_the_one_before(self, lab: Integrator) -> None:
        body = register_body(observation(self.fresh_value(), component=None, valueString="low"))
        path = self.path_of(self.register(lab, body))

        answer = lab.patch(path, {"resourceType": "Observation", "valueInteger": 3})

        assert answer.status == 204, answer.body
        read = lab.get(path).json
        assert (read["valueInteger"], "valueString" in read) == (3, False)

    @pytest.mark.parametrize(
        ("changes", "place"),
        [
            ({"referenceRange": [{"type": {"text": "normal"}}]}, "referenceRange[0]"),
            (
                {"component": [{"code": {"text": "x"}, "referenceRange": [{"id": "r"}]}]},
                "component[0].referenceRange[0]",
            ),
            ({"valueString": "x", "dataAbsentReason": {"text": "y"}}, "dataAbsentReason"),
            ({"valueString": "x", "component": [{"code": CODE}]}, "value"),
        ],
    )
    def test_what_fhir_rules_out_is_refused_at_its_place(
        self, lab: Integrator, changes: dict[str, Any], place: str
    ) -> None:
        answer = self.register(lab, register_body(observation("obs", **changes)))

        assert answer.status == 400
        assert answer.issue_expressions == {f"Parameters.parameter[3].resource.{place}"}

    @pytest.mark.parametrize(
        ("before", "update", "place"),
        [
            (
                {"component": None, "dataAbsentReason": {"text": "lost"}},
                {"valueInteger": 3},
                "dataAbsentReason",
            ),
            ({"component": [{"code": CODE}], "code": CODE}, {"valueInteger": 3}, "value"),
        ],
    )
    def test_what_fhir_rules_out_is_refused_of_what_an_update_makes(
        self, lab: Integrator, before: dict[str, Any], update: dict[str, Any], place: str
    ) -> None:
        body = register_body(observation(self.fresh_value(), **before))
        path = self.path_of(self.register(lab, body))

        answer = lab.patch(path, {"resourceType": "Observation", **update})

        assert (answer.status, answer.issue_expressions) == (400, {f"Observation.{place}"})


def test_each_parameter_compares_the_elements_that_r4_names() -> None:
    assert paths_of(OBSERVATION.search) == {
        "category": "token category",
        "code": "token code",
        "date": "date effectiveDateTime effectiveInstant effectivePeriod effectiveTiming",
        "subject": "reference subject",
        "performer": "reference performer",
        "value-concept": "token valueCodeableConcept",
        "value-date": "date valueDateTime valuePeriod",
        "value-quantity": "quantity valueQuantity",
        "value-string": "string valueString valueCodeableConcept.text",
        "code-value-concept": "composite code value-concept",
        "code-value-date": "composite code value-date",
        "code-value-quantity": "composite code value-quantity",
        "code-value-string": "composite code value-string",
        "component-code": "token component.code",
        "component-value-concept": "token component.valueCodeableConcept",
        "component-value-quantity": "quantity component.valueQuantity",
        "component-code-value-concept": "composite component-code component-value-concept",
        "component-code-value-quantity": "composite component-code component-value-quantity",
        "combo-code": "token code component.code",
        "combo-value-concept": "token valueCodeableConcept component.valueCodeableConcept",
        "combo-value-quantity": "quantity valueQuantity component.valueQuantity",
        "combo-code-value-concept": "composite combo-code combo-value-concept",
        "combo-code-value-quantity": "composite combo-code combo-value-quantity",
    }


def test_the_short_form_has_what_tells_one_resource_from_another() -> None:
    assert " ".join(OBSERVATION.summary) == ("category code subject effective[x] issued performer")


def test_a_resource_is_registered_with_any_status_but_that_of_an_error() -> None:
    assert OBSERVATION.create_statuses == {
        *"amended cancelled corrected final preliminary registered unknown".split()
    }
    assert OBSERVATION.update_statuses - OBSERVATION.create_statuses == {"entered-in-error"}
