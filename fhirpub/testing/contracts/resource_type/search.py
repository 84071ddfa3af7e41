"""Tests of searching resources of a type, and of what the service declares about it."""

from __future__ import annotations

import pytest

from fhirpub.plugin_api import items_of
from fhirpub.testing.contracts.resource_type.harness import (
    ResourceTypeHarness,
    escape,
)
from fhirpub.testing.service import Integrator, RunningService


class ResourceSearchContract(ResourceTypeHarness):
    """Resources are found by every parameter of their type, and only by their tenant."""

    @pytest.mark.parametrize("form", ["{system}|{value}", "{value}", "{system}%7C{value}"])
    def test_it_is_found_by_its_identifier(self, lab: Integrator, form: str) -> None:
        value = self.fresh_value()
        resource = self.resource_of(self.register(lab, self.body(value)))
        token = form.format(system=self.system, value=value)

        bundle = lab.get(f"/fhir/r4/{self.resource_type.name}?identifier={token}").json

        assert [entry["resource"]["id"] for entry in bundle["entry"]] == [resource["id"]]

    def test_it_is_found_by_what_every_type_is_searched_by(self, lab: Integrator) -> None:
        answer = self.register(lab, self.body(self.fresh_value()))
        path = self.path_of(answer)
        resource = lab.get(path).json
        resource_id, status = resource["id"], resource["status"]
        queries = [f"_id={resource_id}", f"status={status}", "_lastUpdated=gt2020"]
        for part in self.resource_type.parts:
            for _at, reference in items_of(resource, part.referred_by):
                literal = reference.get("reference", "")
                if part.type != "Patient" or not literal.startswith("Patient/"):
                    continue
                queries.append(f"patient={literal}")
                identifier = lab.get(f"/fhir/r4/{literal}").json["identifier"][0]["value"]
                queries.append(f"patient.identifier={identifier}")

        for query in queries:
            bundle = lab.get(f"/fhir/r4/{self.resource_type.name}?{query}").json
            assert [entry["resource"]["id"] for entry in bundle["entry"]] == [resource_id], query
            assert bundle["total"] == 1, query

        changed = max(self.resource_type.update_statuses - {status})
        self.update_status(lab, path, status=changed)
        for wanted, total in ((status, 0), (changed, 1)):
            bundle = lab.get(f"/fhir/r4/{self.resource_type.name}?status={wanted}").json
            assert bundle["total"] == total, wanted

    def test_it_is_found_by_what_it_says_of_what_its_type_declares(self, lab: Integrator) -> None:
        answer = self.register(lab, self.body(self.fresh_value()))
        resource = lab.get(self.path_of(answer)).json

        for parameter in self.resource_type.search:
            if parameter.type == "composite":  # R4 has no modifiers of it
                continue
            query = f"_id={resource['id']}&{parameter.name}:missing"
            values = [one for path in parameter.paths for _at, one in items_of(resource, path)]
            said = bool(values)
            found = lab.get(f"/fhir/r4/{self.resource_type.name}?{query}=false").json
            lacking = lab.get(f"/fhir/r4/{self.resource_type.name}?{query}=true").json
            assert (found["total"], lacking["total"]) == (int(said), int(not said)), query

    def test_it_is_found_by_how_its_texts_begin(self, lab: Integrator) -> None:
        answer = self.register(lab, self.body(self.fresh_value()))
        resource = lab.get(self.path_of(answer)).json

        for parameter in self.resource_type.search:
            for beginning in self.beginnings_in(resource, parameter):
                query = f"{self.resource_type.name}?{parameter.name}={escape(beginning)}"
                assert self.ids_found(lab, query) == {resource["id"]}, query
                assert not self.ids_found(lab, f"{query}~"), query

    def test_another_tenant_does_not_find_it(
        self, service: RunningService, lab: Integrator
    ) -> None:
        value = self.fresh_value()
        self.register(lab, self.body(value))

        bundle = (
            service.integrator()
            .get(f"/fhir/r4/{self.resource_type.name}?identifier={self.system}%7C{value}")
            .json
        )

        assert (bundle["total"], "entry" in bundle) == (0, False)

    def test_the_capability_statement_declares_it(self, lab: Integrator) -> None:
        statement = lab.get("/metadata").json

        declared = {
            resource_entry["type"]: resource_entry
            for resource_entry in statement["rest"][0]["resource"]
        }
        mine = declared[self.resource_type.name]
        assert {item["code"] for item in mine["interaction"]} == {
            *("read", "vread", "patch", "create"),
            *("search-type", "history-instance", "history-type"),
        }
        assert {part.type for part in self.resource_type.parts} <= set(declared)
