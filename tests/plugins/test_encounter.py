from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fhirpub.testing.service import Integrator
from fhirpub_encounter import ENCOUNTER
from tests.bodies import organization, patient
from tests.compositions import UCUM, encounter, practitioner, register_body
from tests.plugins.composition_contract import CompositionContract
from tests.plugins.declared_details import paths_of


class TestEncounter(CompositionContract):
    resource_type = ENCOUNTER
    referring_to_others = ("participant", "serviceProvider")
    new_values: ClassVar[Mapping[str, Any]] = {
        "status": "finished",
        "statusHistory": [{"status": "in-progress", "period": {"start": "2026-11-20T12:00:00Z"}}],
        "period": {"start": "2026-11-20T12:00:00Z", "end": "2026-11-20T12:40:00Z"},
        "length": {"value": 40, "unit": "min", "system": UCUM, "code": "min"},
        "reasonCode": [{"text": "Chest pain"}],
        "diagnosis": [{"condition": {"display": "Costochondritis"}}],
    }

    def composition(self, value: str, **changes: Any) -> dict[str, Any]:
        return encounter(value, **changes)

    def test_the_class_is_looked_up_although_it_is_no_concept(self, lab: Integrator) -> None:
        answer = self.register(lab, self.body(self.fresh_value()))

        issues = answer.json["parameter"][1]["resource"]["issue"]
        places = {place for issue in issues for place in issue.get("expression", ())}
        assert "Parameters.parameter[3].resource.class.system" in places

    def test_the_author_may_be_any_participant(self, lab: Integrator) -> None:
        participants = [
            {"individual": {"display": "Somebody else"}},
            {"individual": {"reference": "Practitioner/d1"}},
        ]
        body = register_body(encounter(self.fresh_value(), participant=participants))

        resource = self.resource_of(self.register(lab, body))

        assert resource["participant"][1]["individual"]["display"] == "Marta Sol Ferreyra"

    def test_a_summary_leaves_out_participants_that_have_nothing_for_it(
        self, lab: Integrator
    ) -> None:
        author = {"individual": {"reference": "Practitioner/d1"}}
        unnamed = {"period": {"start": "2026-11-20"}}
        value = self.fresh_value()
        self.register(lab, register_body(encounter(value, participant=[unnamed, author])))
        found = f"/fhir/r4/Encounter?identifier={value}&_summary=true"

        participants = lab.get(found).json["entry"][0]["resource"]["participant"]

        assert [item["individual"]["display"] for item in participants] == ["Marta Sol Ferreyra"]
        assert lab.get(found, Accept="application/fhir+xml").status == 200

    def test_a_merge_patch_takes_away_what_is_null_in_an_object(self, lab: Integrator) -> None:
        path = self.path_of(self.register(lab, self.body(self.fresh_value())))
        start = lab.get(path).json["period"]["start"]
        kind = {"Content-Type": "application/merge-patch+json"}

        answer = lab.request("PATCH", path, {"period": {"end": None}}, kind)

        assert answer.status == 204, answer.body
        assert lab.get(path).json["period"] == {"start": start}

    def test_of_several_contained_practitioners_the_first_participant_is_the_author(
        self, lab: Integrator
    ) -> None:
        nurse = practitioner(id="n1", name=[{"text": "A nurse"}])
        involved = [{"individual": {"reference": f"#{name}"}} for name in ("d1", "n1")]
        resource = encounter(
            self.fresh_value(),
            contained=[patient(), nurse, practitioner(), organization()],
            subject={"reference": "#p1"},
            participant=involved,
            serviceProvider={"reference": "#o1"},
        )

        created = lab.request("POST", "/fhir/r4/Encounter", resource).json

        shown = [item["individual"]["reference"] for item in created["participant"]]
        assert shown[0].startswith("Practitioner/")
        assert shown[1] == "#n1"

    def test_an_update_keeps_the_offset_of_a_time_beside_a_date(self, lab: Integrator) -> None:
        period = {"start": "2023-06-21T23:00:00-05:00", "end": "2023-06-21"}
        path = self.path_of(self.register(lab, self.body(self.fresh_value())))

        answer = lab.patch(path, {"resourceType": "Encounter", "period": period})

        assert answer.status == 204, answer.body
        assert lab.get(path).json["period"] == period

    def test_an_update_refuses_a_period_that_begins_after_it_ends(self, lab: Integrator) -> None:
        period = {"start": "2023-06-22T01:00:00-05:00", "end": "2023-06-21"}
        path = self.path_of(self.register(lab, self.body(self.fresh_value())))

        answer = lab.patch(path, {"resourceType": "Encounter", "period": period})

        assert (answer.status, answer.issue_expressions) == (400, {"Encounter.period"})


def test_each_parameter_compares_the_elements_that_r4_names() -> None:
    assert paths_of(ENCOUNTER.search) == {
        "class": "token class",
        "type": "token type",
        "date": "date period",
        "length": "quantity length",
        "subject": "reference subject",
        "participant": "reference participant.individual",
        "service-provider": "reference serviceProvider",
    }


def test_the_short_form_has_what_tells_one_resource_from_another() -> None:
    assert " ".join(ENCOUNTER.summary) == (
        "class type serviceType subject participant period serviceProvider"
    )


def test_a_resource_is_registered_with_any_status_but_that_of_an_error() -> None:
    assert ENCOUNTER.create_statuses == {
        *"arrived cancelled finished in-progress onleave planned triaged unknown".split()
    }
    assert ENCOUNTER.update_statuses - ENCOUNTER.create_statuses == {"entered-in-error"}
