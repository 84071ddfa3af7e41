"""The tests that every resource type inherits, over real HTTP."""

from __future__ import annotations

import copy
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fhirpub.fhir.elements import objects_in
from fhirpub.fhir.strict_json import loads_stored
from fhirpub.fhir.xml.reader import read_xml
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.plugin_api import ResourceType, items_of
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.message.content_negotiation import FHIR_XML

_SYSTEM = "https://contract.example/identifiers"
_numbers = itertools.count()


class ResourceTypeContract:
    """Subclass it, name the type, give a ``service`` fixture and a body; inherit every promise.

    ``body`` returns a valid body of ``$register`` for one identifier value, with all the parts
    and without anything that causes a refusal.
    """

    resource_type: ResourceType

    def body(self, value: str, *, system: str = _SYSTEM) -> dict[str, Any]:
        """Return a valid body of ``$register``."""
        raise NotImplementedError

    @pytest.fixture
    def lab(self, service: RunningService) -> Integrator:
        """An integrator of an empty tenant."""
        return service.integrator()

    @pytest.fixture
    def registered(self, lab: Integrator) -> Answer:
        """The answer to a registration."""
        return self.register(lab, self.body(self.fresh_value()))

    @staticmethod
    def fresh_value() -> str:
        """Return an identifier value that no other test uses."""
        return f"contract-{next(_numbers)}"

    def register(self, lab: Integrator, body: Any) -> Answer:
        return lab.register(body, type_name=self.resource_type.name)

    def resource_in(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the resource itself out of a body."""
        entry = next(
            parameter
            for parameter in body["parameter"]
            if parameter["name"] == self.resource_type.entry_name
        )
        resource: dict[str, Any] = entry["resource"]
        return resource

    def resource_of(self, answer: Answer) -> dict[str, Any]:
        """Return the resource out of the answer to a registration."""
        assert answer.status == 201, answer.body
        return self.resource_in(answer.json)

    def path_of(self, answer: Answer) -> str:
        return f"/fhir/r4/{self.resource_type.name}/{self.resource_of(answer)['id']}"

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

        issues = answer.json["parameter"][1]["resource"]["issue"]
        assert {issue["severity"] for issue in issues} == {"information"}

    def test_what_it_tells_can_be_asked_for_by_name(
        self, service: RunningService, lab: Integrator
    ) -> None:
        path = self.path_of(self.register(lab, self.body(self.fresh_value())))
        self.update_status(lab, path)

        resources, resource_id = service.services.context.resources, path.rpartition("/")[2]
        versions = service.call(resources.history(lab.tenant.id, resource_id))

        told = {item["type"] for one in versions for item in loads_stored(one.events)}
        assert told <= set(service.services.endpoints.event_types.names)

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
        assert there.body.replace(path[-36:].encode(), b"ID") == absent.body.replace(
            unknown[-36:].encode(), b"ID"
        )

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
            assert found or not part.referred_by

    def test_the_identifier_must_be_exactly_one(self, lab: Integrator) -> None:
        bodies = [self.body(self.fresh_value()) for _ in range(3)]
        self.resource_in(bodies[0]).pop("identifier")
        self.resource_in(bodies[1])["identifier"] *= 2
        self.resource_in(bodies[2])["identifier"] = []

        answers = [self.register(lab, body) for body in bodies]

        assert [answer.status for answer in answers] == [400, 400, 400]
        assert {answer.issues[0]["code"] for answer in answers} == {"invalid"}

    @pytest.mark.parametrize("name", ["system", "value"])
    def test_the_identifier_must_have_system_and_value(self, lab: Integrator, name: str) -> None:
        body = self.body(self.fresh_value())
        del self.resource_in(body)["identifier"][0][name]

        answer = self.register(lab, body)

        assert (answer.status, answer.issues[0]["code"]) == (400, "invalid")
        assert answer.issues[0]["expression"][0].endswith(f"identifier[0].{name}")

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

    def test_an_update_makes_the_next_version(self, lab: Integrator, registered: Answer) -> None:
        path = self.path_of(registered)

        answer = self.update_status(lab, path, If_Match='W/"1"')

        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["etag"] == 'W/"2"'
        assert lab.get(path).json["meta"]["versionId"] == "2"

    def test_every_status_for_update_is_accepted(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)

        for status in sorted(self.resource_type.update_statuses):
            assert self.update_status(lab, path, status=status).status == 204, status

    def test_a_stale_update_is_refused_naming_both_versions(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)
        self.update_status(lab, path)

        answer = self.update_status(lab, path, If_Match='W/"1"')

        assert (answer.status, answer.issues[0]["code"]) == (412, "conflict")
        assert answer.issues[0]["diagnostics"] == "target version 1, current version 2"

    def test_racing_updates_under_one_tag_have_one_winner(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)

        with ThreadPoolExecutor(16) as pool:
            answers = list(
                pool.map(lambda _n: self.update_status(lab, path, If_Match='W/"1"'), range(16))
            )

        assert sorted(answer.status for answer in answers) == [204] + [412] * 15

    def test_racing_updates_without_a_tag_all_come_through(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _n: self.update_status(lab, path), range(16)))

        assert {answer.status for answer in answers} == {204}
        assert sorted(int(answer.headers["etag"][3:-1]) for answer in answers) == list(
            range(2, 18)
        )

    def test_another_field_cannot_be_updated(self, lab: Integrator, registered: Answer) -> None:
        path = self.path_of(registered)
        body = {"resourceType": self.resource_type.name, "language": "es", "identifier": []}

        answer = lab.patch(path, body)

        assert answer.status == 422
        assert {issue["code"] for issue in answer.issues} == {"business-rule"}
        name = self.resource_type.name
        assert answer.issue_expressions == {f"{name}.language", f"{name}.identifier"}

    def test_the_history_has_every_version_newest_first(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)
        self.update_status(lab, path)

        history = lab.get(f"{path}/_history").json

        versions = [entry["resource"]["meta"]["versionId"] for entry in history["entry"]]
        assert (history["type"], history["total"], versions) == ("history", 2, ["2", "1"])

    def test_an_old_version_stays_as_it_was(self, lab: Integrator, registered: Answer) -> None:
        path = self.path_of(registered)
        before = lab.get(path)
        self.update_status(lab, path)

        assert lab.get(f"{path}/_history/1").body == before.body

    @pytest.mark.parametrize("form", ["{system}|{value}", "{value}", "{system}%7C{value}"])
    def test_it_is_found_by_its_identifier(self, lab: Integrator, form: str) -> None:
        value = self.fresh_value()
        resource = self.resource_of(self.register(lab, self.body(value)))
        token = form.format(system=_SYSTEM, value=value)

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
            query = f"_id={resource['id']}&{parameter.name}:missing"
            values = [one for path in parameter.paths for _at, one in items_of(resource, path)]
            said = any(not isinstance(one, dict) or {"text"} != {*one} for one in values)
            found = lab.get(f"/fhir/r4/{self.resource_type.name}?{query}=false").json
            lacking = lab.get(f"/fhir/r4/{self.resource_type.name}?{query}=true").json
            assert (found["total"], lacking["total"]) == (int(said), int(not said)), query

    def test_another_tenant_does_not_find_it(
        self, service: RunningService, lab: Integrator
    ) -> None:
        value = self.fresh_value()
        self.register(lab, self.body(value))

        bundle = (
            service.integrator()
            .get(f"/fhir/r4/{self.resource_type.name}?identifier={_SYSTEM}%7C{value}")
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

    def update_status(
        self, lab: Integrator, path: str, *, status: str = "", **headers: str
    ) -> Answer:
        """Update the status alone."""
        chosen = status or min(self.resource_type.update_statuses)
        body = {"resourceType": self.resource_type.name, "status": chosen}
        return lab.patch(path, body, **headers)


def _without_references(value: Any) -> Any:
    """Return a value without the references in it: the service points them at the parts."""
    if isinstance(value, list):
        return [_without_references(item) for item in value]
    if isinstance(value, dict) and "reference" not in value:
        return {name: _without_references(item) for name, item in value.items()}
    return None if isinstance(value, dict) else value
