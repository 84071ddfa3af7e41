"""Tests of the parts of a type that repeat, each of which becomes a resource (ADR 24)."""

from __future__ import annotations

from typing import Any

from fhirpub.plugin_api import Part
from fhirpub.testing.contracts.resource_type.harness import ResourceTypeHarness, escape
from fhirpub.testing.service import Answer, Integrator


class ResourceMemberContract(ResourceTypeHarness):
    """Parts that repeat are registered, read and found; a type without any has nothing to show."""

    @property
    def repeating(self) -> list[Part]:
        """The parts that repeat and declare an example."""
        return [part for part in self.resource_type.parts if part.repeats and part.example]

    def body_with_members(self) -> dict[str, Any]:
        """Return a body with two resources of every part that repeats."""
        body = self.body(self.fresh_value())
        for part in self.repeating:
            for number in range(2):
                resource = self.member_of(part, number, body)
                body["parameter"].append({"name": part.name, "resource": resource})
        return body

    @staticmethod
    def member_of(part: Part, number: int, body: dict[str, Any]) -> dict[str, Any]:
        """Return the example of a part under another id, of the patient of a body."""
        resource = {**part.example, "id": f"contract-{part.name}-{number}"}
        resource.pop("identifier", None)
        patients = [
            entry["resource"]
            for entry in body["parameter"]
            if entry["resource"]["resourceType"] == "Patient"
        ]
        if part.patient and patients:
            resource[part.patient] = {"reference": f"Patient/{patients[0]['id']}"}
        return resource

    @staticmethod
    def addresses_in(answer: Answer, name: str) -> list[str]:
        """Return the addresses of what was registered as the entries of a name."""
        assert answer.status == 201, answer.body
        return [
            entry["valueReference"]["reference"]
            for entry in answer.json["parameter"]
            if entry["name"] == name
        ]

    def test_what_is_sent_several_times_can_be_read(self, lab: Integrator) -> None:
        answer = self.register(lab, self.body_with_members())

        for part in self.repeating:
            addresses = self.addresses_in(answer, part.name)
            assert len({*addresses}) >= 2, part.name
            for address in addresses:
                read = lab.get(f"/fhir/r4/{address}")
                assert (read.status, read.json["resourceType"]) == (200, part.type)
                assert lab.get(f"/fhir/r4/{address}/_history").json["total"] == 1

    def test_what_is_sent_several_times_can_be_found(self, lab: Integrator) -> None:
        answer = self.register(lab, self.body_with_members())

        for part in self.repeating:
            addresses = self.addresses_in(answer, part.name)
            found = lab.get(f"/fhir/r4/{part.type}?_count=100").json["entry"]
            shown = {f"{part.type}/{entry['resource']['id']}" for entry in found}
            assert {*addresses} <= shown, part.name
            for address in addresses if part.patient else ():
                patient = lab.get(f"/fhir/r4/{address}").json[part.patient]["reference"]
                query = f"_id={address.rpartition('/')[2]}&patient={patient}"
                assert lab.get(f"/fhir/r4/{part.type}?{query}").json["total"] == 1, part.name

    def test_what_is_sent_several_times_is_found_by_how_its_texts_begin(
        self, lab: Integrator
    ) -> None:
        answer = self.register(lab, self.body_with_members())

        for part in self.repeating:
            for address in self.addresses_in(answer, part.name):
                resource = lab.get(f"/fhir/r4/{address}").json
                for parameter in part.search:
                    for beginning in self.beginnings_in(resource, parameter):
                        query = f"{part.type}?{parameter.name}={escape(beginning)}"
                        assert resource["id"] in self.ids_found(lab, query), query
                        assert not self.ids_found(lab, f"{query}~"), query

    def test_a_resubmission_makes_nothing_again(self, lab: Integrator) -> None:
        body = self.body_with_members()

        first, again = self.register(lab, body), self.register(lab, body)

        assert again.body == first.body
        for part in self.repeating:
            addresses = self.addresses_in(first, part.name)
            assert lab.get(f"/fhir/r4/{part.type}").json["total"] == len(addresses)

    def test_the_capability_statement_declares_that_it_is_found(self, lab: Integrator) -> None:
        statement = lab.get("/metadata").json

        declared = {
            entry["type"]: {item["code"] for item in entry["interaction"]}
            for entry in statement["rest"][0]["resource"]
        }
        for part in self.repeating:
            assert {"read", "vread", "search-type", "history-type"} <= declared[part.type]
