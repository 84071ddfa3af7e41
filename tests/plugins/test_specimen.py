from __future__ import annotations

from typing import Any

from fhirpub.testing.contracts.resource_type.harness import SYSTEM
from fhirpub.testing.resource_type_contract import ResourceTypeContract
from fhirpub.testing.service import Integrator
from fhirpub_specimen import SPECIMEN
from tests.clinical import TUBES, specimen, with_patient
from tests.panels import panel, result
from tests.panels import specimen as specimen_of_report
from tests.plugins.declared_details import paths_of


class TestSpecimen(ResourceTypeContract):
    resource_type = SPECIMEN

    def body(self, value: str, *, system: str = SYSTEM) -> dict[str, Any]:
        return with_patient(specimen(value, system=system))

    def test_without_an_accession_its_first_container_identifies_it(self, lab: Integrator) -> None:
        tube = self.fresh_value()
        container = [{"identifier": [{"system": TUBES, "value": tube}]}]
        body = with_patient(specimen("", system="", accessionIdentifier=None, container=container))
        first = self.register(lab, body)
        self.resource_in(body)["container"][0]["identifier"][0]["value"] = tube.upper()

        again = self.register(lab, body)

        assert (first.status, again.body) == (201, first.body)

    def test_a_condition_on_a_tube_means_the_specimen_that_was_registered(
        self, lab: Integrator
    ) -> None:
        value = self.fresh_value()
        first = self.register(lab, self.body(value))
        own = self.resource_in(self.body(self.fresh_value()))
        own = {**own, "contained": [{"resourceType": "Patient", "id": "p1"}]}
        own["subject"] = {"reference": "#p1"}
        condition = {"If-None-Exist": f"identifier={TUBES}|T{value}"}

        answer = lab.request("POST", "/fhir/r4/Specimen", own, condition)

        assert answer.status == 200, answer.body
        assert self.resource_of(first)["id"] in answer.headers["location"]

    def test_create_in_another_spelling_repeats_a_registration(self, lab: Integrator) -> None:
        value = self.fresh_value()
        first = self.register(lab, self.body(value))
        own = self.resource_in(self.body(value))
        own["accessionIdentifier"]["value"] = f" {value.upper()} "
        patient = self.body(value)["parameter"][0]["resource"]
        own = {**own, "contained": [patient], "subject": {"reference": "#p1"}}

        answer = lab.request("POST", "/fhir/r4/Specimen", own)
        tried = lab.request("POST", "/fhir/r4/Specimen/$validate", own)

        assert answer.headers["location"] == first.headers["location"]
        assert "with the same content" in tried.issues[0]["diagnostics"]

    def test_two_values_that_are_spelled_alike_are_one_key_with_other_content(
        self, lab: Integrator
    ) -> None:
        value = self.fresh_value()
        first = self.register(lab, self.body(value))
        body = self.body(f" {value}")
        self.resource_in(body)["type"] = {"text": "Urine"}

        again = self.register(lab, body)
        tried = lab.request("POST", "/fhir/r4/Specimen/$validate", body)

        assert again.body == first.body
        assert "with other content" in tried.issues[0]["diagnostics"]

    def test_a_condition_does_not_mean_the_specimen_of_a_report(self, lab: Integrator) -> None:
        value = self.fresh_value()
        accession = {"system": SYSTEM, "value": value}
        report = panel(
            value, result("hb"), {**specimen_of_report(), "accessionIdentifier": accession}
        )
        assert lab.register(report).status == 201
        found = self.ids_found(lab, f"Specimen?identifier={SYSTEM}%7C{value}")
        assert len(found) == 1
        own = self.resource_in(self.body(value))
        own = {**own, "contained": [{"resourceType": "Patient", "id": "p1"}]}
        own["subject"] = {"reference": "#p1"}

        answer = lab.request(
            "POST", "/fhir/r4/Specimen", own, {"If-None-Exist": f"identifier={SYSTEM}|{value}"}
        )

        assert answer.status == 201, answer.body
        assert answer.headers["location"].split("/")[-3] not in found


def test_each_parameter_compares_the_elements_that_r4_names() -> None:
    assert paths_of(SPECIMEN.search) == {
        "type": "token type",
        "accession": "token accessionIdentifier",
        "container-id": "token container.identifier",
        "collected": "date collection.collectedDateTime collection.collectedPeriod",
        "subject": "reference subject",
        "parent": "reference parent",
    }


def test_the_short_form_has_what_tells_one_resource_from_another() -> None:
    assert " ".join(SPECIMEN.summary) == ("type subject receivedTime collection")


def test_a_resource_is_registered_with_any_status_but_that_of_an_error() -> None:
    assert SPECIMEN.create_statuses == {*"available unavailable unsatisfactory".split()}
    assert SPECIMEN.update_statuses - SPECIMEN.create_statuses == {"entered-in-error"}
