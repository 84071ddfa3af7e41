"""Tests of registering resources of a type, and of reading them."""

from __future__ import annotations

import copy
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fhirpub.fhir.elements import objects_in
from fhirpub.fhir.strict_json import loads_stored
from fhirpub.fhir.xml.reader import read_xml
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.testing.contracts.resource_type.harness import ResourceTypeHarness
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.message.content_negotiation import FHIR_XML


class ResourceRegistrationContract(ResourceTypeHarness):
    """Registration is idempotent and validated, and registered resources can be read."""

    def test_a_registration_answers_201_with_the_first_version(self, registered: Answer) -> None:
        resource = self.resource_of(registered)

        assert registered.headers["etag"] == 'W/"1"'
        assert resource["meta"]["versionId"] == "1"
        location = f"/fhir/r4/{self.resource_type.name}/{resource['id']}/_history/1"
        assert registered.headers["location"].endswith(location)

    def test_its_example_can_be_registered_without_a_word_of_complaint(
        self, lab: Integrator
    ) -> None:
        named = [(part.name, part.example) for part in self.resource_type.parts]
        named.append((self.resource_type.entry_name, self.resource_type.example))
        entries = [{"name": name, "resource": record} for name, record in named if record]
        if not self.resource_type.example:
            pytest.skip("the type declares no example")

        answer = self.register(lab, {"resourceType": "Parameters", "parameter": entries})

        issues = answer.json["parameter"][-1]["resource"]["issue"]
        assert {issue["severity"] for issue in issues} == {"information"}

    def test_each_problem_of_an_empty_resource_has_a_code_that_is_published(
        self, lab: Integrator
    ) -> None:
        name = self.resource_type.name
        entry = {"name": self.resource_type.entry_name, "resource": {"resourceType": name}}

        refused = self.register(lab, {"resourceType": "Parameters", "parameter": [entry]})

        concepts = lab.get("/fhir/r4/CodeSystem/problem").json["concept"]
        assert refused.status == 400
        assert set(refused.problems) <= {concept["code"] for concept in concepts}

    def test_every_event_of_a_resource_has_a_declared_type(
        self, service: RunningService, lab: Integrator
    ) -> None:
        path = self.path_of(self.register(lab, self.body(self.fresh_value())))
        self.update_status(lab, path)

        resources, resource_id = service.services.context.resources, path.rpartition("/")[2]
        versions = service.call(resources.history(lab.tenant.id, resource_id))

        types = {item["type"] for one in versions for item in loads_stored(one.events)}
        assert types <= set(service.services.endpoints.event_types.names)

    def test_the_location_of_a_registration_can_be_read(
        self, lab: Integrator, registered: Answer
    ) -> None:
        read = lab.get(registered.headers["location"])

        assert read.status == 200
        assert read.json["id"] == self.resource_of(registered)["id"]

    def test_a_resubmission_gets_the_first_answer_byte_for_byte(self, lab: Integrator) -> None:
        body = self.body(self.fresh_value())
        first = self.register(lab, body)

        again = self.register(lab, body)

        assert (again.status, again.body) == (first.status, first.body)
        for name in ("location", "etag", "last-modified", "content-type"):
            assert again.headers[name] == first.headers[name]

    def test_a_resubmission_after_an_update_still_gets_the_first_answer(
        self, lab: Integrator
    ) -> None:
        body = self.body(self.fresh_value())
        first = self.register(lab, body)
        self.update_status(lab, self.path_of(first))

        again = self.register(lab, body)

        assert again.body == first.body

    def test_racing_registrations_make_one_resource(self, lab: Integrator) -> None:
        body = self.body(self.fresh_value())

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _n: self.register(lab, body), range(16)))

        assert {answer.status for answer in answers} == {201}
        assert len({answer.body for answer in answers}) == 1

    def test_two_tenants_have_two_resources_under_one_identifier(
        self, service: RunningService, lab: Integrator
    ) -> None:
        body = self.body(self.fresh_value())
        other = service.integrator()

        ids = {
            self.resource_of(self.register(integrator, body))["id"] for integrator in (lab, other)
        }

        assert len(ids) == 2

    def test_another_tenants_resource_looks_like_one_that_never_was(
        self, service: RunningService, registered: Answer
    ) -> None:
        other = service.integrator()
        path = self.path_of(registered)
        unknown = path[:-12] + "0" * 12

        there, absent = other.get(path), other.get(unknown)

        assert there.status == absent.status == 404
        assert _without(path[-36:], there) == _without(unknown[-36:], absent)

    def test_what_was_registered_reads_back(self, lab: Integrator) -> None:
        body = self.body(self.fresh_value())
        sent = self.resource_in(copy.deepcopy(body))

        read = lab.get(self.path_of(self.register(lab, body))).json

        changed = {"id", "meta"} | {path.partition(".")[0] for path in self.resource_type.times}
        for name, value in sent.items():
            if name not in changed:
                assert _without_references(read[name]) == _without_references(value), name

    def test_what_was_registered_in_xml_reads_back_in_both_forms(
        self, service: RunningService, lab: Integrator
    ) -> None:
        body = self.body(self.fresh_value())
        path = f"/fhir/r4/{self.resource_type.name}/$register"
        in_json = self.register(service.integrator(), body)

        in_xml = lab.request("POST", path, write_xml(body), {"Content-Type": FHIR_XML})

        here = self.path_of(in_xml)
        read = lab.get(here).json
        assert read_xml(lab.get(here, Accept=FHIR_XML).body) == read
        assert read.keys() == self.resource_in(body).keys() | {"id", "meta"}
        assert self.resource_of(in_xml).keys() == self.resource_of(in_json).keys()

    def test_every_part_can_be_read_under_the_id_of_its_reference(
        self, lab: Integrator, registered: Answer
    ) -> None:
        resource = lab.get(self.path_of(registered)).json

        literals = [item["reference"] for item in objects_in(resource) if "reference" in item]
        for part in self.resource_type.parts:
            found = [item for item in literals if item.startswith(f"{part.type}/")]
            for literal in found:
                assert lab.get(f"/fhir/r4/{literal}").json["resourceType"] == part.type
            assert found or not part.referred_by or part.repeats

    def test_an_unknown_property_is_refused_by_its_name(self, lab: Integrator) -> None:
        body = self.body(self.fresh_value())
        self.resource_in(body)["notOfFhir"] = "x"

        answer = self.register(lab, body)

        assert answer.status == 400
        assert "notOfFhir" in answer.body.decode()

    def test_every_status_for_creation_is_accepted(self, lab: Integrator) -> None:
        for status in sorted(self.resource_type.create_statuses):
            body = self.body(self.fresh_value())
            self.resource_in(body)["status"] = status

            assert self.register(lab, body).status == 201, status

    def test_a_status_that_is_not_for_creation_is_refused(self, lab: Integrator) -> None:
        for status in sorted(
            self.resource_type.update_statuses - self.resource_type.create_statuses
        ):
            body = self.body(self.fresh_value())
            self.resource_in(body)["status"] = status

            assert self.register(lab, body).status == 400, status


def _without_references(value: Any) -> Any:
    """Return a value without the references in it: the service points them at the parts."""
    if isinstance(value, list):
        return [_without_references(item) for item in value]
    if isinstance(value, dict) and "reference" not in value:
        return {name: _without_references(item) for name, item in value.items()}
    return None if isinstance(value, dict) else value


def _without(resource_id: str, refusal: Answer) -> bytes:
    """Return the body without the ids of the resource and of the request."""
    return re.sub(rb"#[0-9a-f-]+", b"", refusal.body.replace(resource_id.encode(), b"ID"))
