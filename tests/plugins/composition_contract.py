"""The promises of the five compositions of an EHR beyond those of every resource type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, ClassVar

import jsonschema
from referencing import Registry, Resource

from fhirpub.plugin_api import CompositionEvents
from fhirpub.storage.webhook_contract import OutboxEntry
from fhirpub.testing.resource_type_contract import ResourceTypeContract
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.webhooks.transport.envelope import LARGEST_BODY, events_of
from tests.bodies import organization, patient
from tests.compositions import practitioner, register_body

AUTHOR = {
    "author_type": "practitioner",
    "lastname": "Ferreyra",
    "firstname": "Marta Sol",
    "person_sex": "female",
    "date_of_birth": "1974-11-02",
    "person_id_type": "NI",
    "person_id_number": "20333444",
    "tin": "27-20333444-5",
}


def _schemas(folder: str) -> dict[str, Any]:
    found = files("fhirpub.schemas").joinpath(folder).iterdir()
    return {
        path.name.removesuffix(".schema.json"): json.loads(path.read_text(encoding="utf-8"))
        for path in found
    }


EVENTS, R4 = _schemas("events"), _schemas("r4")
REGISTRY: Registry[Any] = Registry().with_resources(
    (event["$id"], Resource.from_contents(event)) for event in EVENTS.values()
)


class CompositionContract(ResourceTypeContract):
    """Subclasses provide a body, its optional elements, and a value for each field to update."""

    referring_to_others: tuple[str, ...]
    """The elements that refer to the organization and to the author."""
    new_values: ClassVar[Mapping[str, Any]]

    def composition(self, value: str, **changes: Any) -> dict[str, Any]:
        """Return the resource; a change to None leaves the element out."""
        raise NotImplementedError

    def body(
        self, value: str, *, system: str = "https://contract.example/identifiers"
    ) -> dict[str, Any]:
        return register_body(self.composition(value, system=system))

    def event_of(self, service: RunningService, lab: Integrator, path: str, version: int) -> Any:
        """Return the event data of a version, validated against its schema."""
        context = service.services.context
        stored = service.call(context.resources.version(lab.tenant.id, path[-36:], version))
        assert stored is not None
        (event,) = events_of(OutboxEntry.of(stored), fhir_url=context.fhir_url)
        raw = event.body(sequence=1)
        schema, body = EVENTS[event.type], json.loads(raw)
        jsonschema.Draft202012Validator(schema, registry=REGISTRY).validate(body)
        named = EVENTS["envelope"]["properties"]["data"]["properties"].keys()
        named |= schema["properties"]["data"]["properties"].keys()
        assert body["data"].keys() <= named
        assert len(raw) <= LARGEST_BODY
        return body

    def update_everything(self, lab: Integrator, path: str) -> Answer:
        body = {"resourceType": self.resource_type.name, **self.new_values}
        return lab.patch(path, body)

    def test_its_statuses_are_those_of_fhir(self) -> None:
        bound = R4[self.resource_type.name]["properties"]["status"]["$ref"].rpartition("/")[2]
        every = set(R4["datatypes"]["$defs"][bound]["enum"])

        assert self.resource_type.update_statuses == every
        assert self.resource_type.create_statuses == every - {"entered-in-error"}

    def test_its_events_schemas_have_its_statuses(self) -> None:
        events = self.resource_type.events
        assert isinstance(events, CompositionEvents)
        created, updated = (
            set(
                EVENTS[f"{events.composition}.{action}"]["properties"]["data"]["properties"][
                    "status"
                ]["enum"]
            )
            for action in ("created", "updated")
        )

        assert created == self.resource_type.create_statuses
        assert updated == self.resource_type.update_statuses

    def test_the_event_of_a_registration_names_its_author(
        self, service: RunningService, lab: Integrator
    ) -> None:
        value = self.fresh_value()
        registered = self.register(lab, self.body(value))

        body = self.event_of(service, lab, self.path_of(registered), 1)

        assert body["event_type"].endswith(".created")
        assert body["data"]["identifier"]["value"] == value
        assert body["data"]["author"] == AUTHOR

    def test_the_event_of_a_later_update_names_its_author_too(
        self, service: RunningService, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)
        self.update_status(lab, path)
        self.update_status(lab, path)

        body = self.event_of(service, lab, path, 3)

        assert body["event_type"].endswith(".updated")
        assert body["data"]["previous_status"] == min(self.resource_type.update_statuses)
        assert body["data"]["author"] == AUTHOR

    def test_no_event_has_anything_of_the_patient(
        self, service: RunningService, lab: Integrator, registered: Answer
    ) -> None:
        body = self.event_of(service, lab, self.path_of(registered), 1)

        words = json.dumps(body, ensure_ascii=False)
        subject = self.resource_of(registered)["subject"]
        for secret in ("López", "AAB123456", "1980-02-29", subject["reference"]):
            assert secret not in words

    def test_it_needs_neither_an_organization_nor_an_author(
        self, service: RunningService, lab: Integrator
    ) -> None:
        alone = dict.fromkeys(self.referring_to_others)
        body = register_body(self.composition(self.fresh_value(), **alone))
        body["parameter"] = [
            parameter
            for parameter in body["parameter"]
            if parameter["name"] not in ("organization", "practitioner")
        ]

        registered = self.register(lab, body)

        event = self.event_of(service, lab, self.path_of(registered), 1)
        assert "author" not in event["data"]

    def test_an_author_that_is_not_referenced_is_refused(self, lab: Integrator) -> None:
        alone = dict.fromkeys(self.referring_to_others)

        answer = self.register(lab, register_body(self.composition(self.fresh_value(), **alone)))

        (element,) = (
            part.referred_by for part in self.resource_type.parts if part.name == "practitioner"
        )
        assert answer.status == 400
        assert any(place.endswith(f"resource.{element}") for place in answer.issue_expressions)

    def test_every_field_that_can_be_updated_is_replaced(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)
        assert self.new_values.keys() | {"status"} >= {
            item for item in self.resource_type.updatable if not item.endswith("[x]")
        }

        answer = self.update_everything(lab, path)

        assert answer.status == 204, answer.body
        read = lab.get(path).json
        assert {name: read[name] for name in self.new_values} == self.new_values

    def test_it_can_be_created_with_all_parts_contained(self, lab: Integrator) -> None:
        resource = json.loads(
            json.dumps(self.composition(self.fresh_value()))
            .replace("Patient/p1", "#p1")
            .replace("Practitioner/d1", "#d1")
            .replace("Organization/o1", "#o1")
        )
        resource["contained"] = [patient(), practitioner(), organization()]

        answer = lab.request("POST", f"/fhir/r4/{self.resource_type.name}", resource)

        assert answer.status == 201, answer.body
        assert "contained" not in answer.json
        assert b'"reference":"#' not in answer.body
