from __future__ import annotations

from typing import Any

from fhirpub.testing.contracts.resource_type.harness import SYSTEM
from fhirpub.testing.resource_type_contract import ResourceTypeContract
from fhirpub.testing.service import Integrator
from fhirpub_vaccination import IMMUNIZATION
from tests.clinical import immunization, with_author


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
