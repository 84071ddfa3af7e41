from __future__ import annotations

from typing import Any

from fhirpub.testing.contracts.resource_type.harness import SYSTEM
from fhirpub.testing.resource_type_contract import ResourceTypeContract
from fhirpub.testing.service import Integrator
from fhirpub_vaccination import IMMUNIZATION
from tests.clinical import immunization, with_author
from tests.plugins.declared_details import paths_of


class TestImmunization(ResourceTypeContract):
    resource_type = IMMUNIZATION

    def body(self, value: str, *, system: str = SYSTEM) -> dict[str, Any]:
        return with_author(immunization(value, system=system))

    def test_the_official_identifier_is_its_key_wherever_it_stands(self, lab: Integrator) -> None:
        value = self.fresh_value()
        first = self.register(lab, self.body(value))
        body = self.body(value)
        self.resource_in(body)["identifier"].reverse()

        again = self.register(lab, body)

        assert self.resource_of(again)["id"] == self.resource_of(first)["id"]

    def test_without_any_use_two_identifiers_are_too_many(self, lab: Integrator) -> None:
        body = self.body(self.fresh_value())
        self.key_in(body).pop("use")

        answer = self.register(lab, body)

        assert answer.status == 400
        assert "identifier[1]" in answer.issues[0]["diagnostics"]


def test_each_parameter_compares_the_elements_that_r4_names() -> None:
    assert paths_of(IMMUNIZATION.search) == {
        "date": "date occurrenceDateTime",
        "vaccine-code": "token vaccineCode",
        "lot-number": "string lotNumber",
        "performer": "reference performer.actor",
    }


def test_the_short_form_has_what_tells_one_resource_from_another() -> None:
    assert " ".join(IMMUNIZATION.summary) == (
        "vaccineCode patient occurrence[x] performer lotNumber"
    )


def test_a_resource_is_registered_with_any_status_but_that_of_an_error() -> None:
    assert IMMUNIZATION.create_statuses == {*"completed not-done".split()}
    assert IMMUNIZATION.update_statuses - IMMUNIZATION.create_statuses == {"entered-in-error"}
