"""Types with a single identifier, without any, and with a single document (ADR 41)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.testing.contracts.resource_type.harness import SYSTEM
from fhirpub.testing.resource_type_contract import ResourceTypeContract
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import PDF, document
from tests.clinical import with_patient
from tests.plugin_examples import write_metadata
from tests.plugins.declared_types import COMPOSITION, GRAPH_DEFINITION, MEDIA, URIS

MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture(scope="module")
def service(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service with the types of `declared_types`."""
    home = tmp_path_factory.mktemp("plugin")
    write_metadata(home, "declared", {"declared": "tests.plugins.declared_types"})
    config = Config(plugins=PluginsConfig(enabled=["declared"]))
    folder = tmp_path_factory.mktemp("service")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(home)
        with RunningService(folder, config=config, store_url=store_url("declared")) as running:
            yield running


class TestComposition(ResourceTypeContract):
    resource_type = COMPOSITION

    def body(self, value: str, *, system: str = SYSTEM) -> dict[str, Any]:
        return with_patient(
            {
                "resourceType": "Composition",
                "identifier": {"system": system, "value": value},
                "status": "final",
                "type": {"text": "Discharge summary"},
                "subject": {"reference": "Patient/p1"},
                "date": "2026-11-20T10:00:00Z",
                "author": [{"display": "Marta Ferreyra"}],
                "title": "Discharge summary",
            }
        )

    def test_a_list_of_identifiers_is_refused_where_one_is_meant(self, lab: Integrator) -> None:
        body = self.body(self.fresh_value())
        resource = self.resource_in(body)
        resource["identifier"] = [resource["identifier"]]

        answer = self.register(lab, body)

        assert answer.status == 400
        assert answer.issues[0]["diagnostics"].startswith("must be an identifier")


class TestGraphDefinition(ResourceTypeContract):
    resource_type = GRAPH_DEFINITION
    system = URIS

    @staticmethod
    def fresh_value() -> str:
        return f"https://lab.example/graphs/{ResourceTypeContract.fresh_value()}"

    def body(self, value: str, *, system: str = URIS) -> dict[str, Any]:
        assert system == URIS
        return {
            "resourceType": "Parameters",
            "parameter": [
                {
                    "name": "graphDefinition",
                    "resource": {
                        "resourceType": "GraphDefinition",
                        "url": value,
                        "name": "Results",
                        "status": "active",
                        "start": "Patient",
                        "description": "From a patient to the results",
                        "purpose": "To be read at once",
                        "contact": [
                            {
                                "name": "Laboratorio Uno",
                                "telecom": [{"system": "email", "value": "lab@example.org"}],
                            }
                        ],
                        "useContext": [
                            {
                                "code": {"code": "focus"},
                                "valueCodeableConcept": {"text": "Hematology"},
                            }
                        ],
                    },
                }
            ],
        }

    def test_what_the_key_does_not_follow_from_makes_no_other_resource(
        self, lab: Integrator
    ) -> None:
        value = self.fresh_value()
        first = self.register(lab, self.body(value))

        again = self.register(lab, self.body(f"{value}#part"))

        assert self.resource_of(again)["id"] == self.resource_of(first)["id"]

    @pytest.mark.parametrize("url", [None, "", "#part", 7, {"x": []}])
    def test_a_resource_without_a_key_is_refused(self, lab: Integrator, url: Any) -> None:
        body = self.body(self.fresh_value())
        if url is None:
            del self.resource_in(body)["url"]
        else:
            self.resource_in(body)["url"] = url

        answer = self.register(lab, body)

        assert answer.status == 400


class TestMedia(ResourceTypeContract):
    resource_type = MEDIA

    def body(self, value: str, *, system: str = SYSTEM) -> dict[str, Any]:
        return with_patient(
            {
                "resourceType": "Media",
                "identifier": [{"system": system, "value": value}],
                "status": "completed",
                "subject": {"reference": "Patient/p1"},
                "content": document(),
            }
        )

    def registered_with(self, lab: Integrator, data: bytes) -> str:
        body = self.body(self.fresh_value())
        self.resource_in(body)["content"] = document(data)
        return self.path_of(self.register(lab, body))

    def test_its_only_document_is_kept_apart(self, lab: Integrator) -> None:
        for data in (PDF, PDF + bytes(range(256)) * 1_200):
            path = self.registered_with(lab, data)

            read = lab.get(path).json["content"]
            listed = lab.get(f"/fhir/r4/Media?_id={path[-36:]}").json["entry"][0]["resource"]

            assert base64.b64decode(read["data"]) == data
            assert "data" not in listed["content"]
            address = listed["content"]["url"]
            binary = lab.get(address[address.index("/fhir") :], Accept="application/pdf")
            assert binary.body == data

    def test_a_merge_patch_can_change_its_title_but_not_its_hash(self, lab: Integrator) -> None:
        path = self.registered_with(lab, PDF)
        hash_of_other = document(b"%PDF-2")["hash"]

        titled, hashed = (
            lab.request("PATCH", path, {"content": change}, MERGE_PATCH)
            for change in ({"title": "Wound"}, {"hash": hash_of_other})
        )

        assert (titled.status, hashed.status) == (204, 422), hashed.body
        read = lab.get(path).json["content"]
        assert (read["title"], base64.b64decode(read["data"])) == ("Wound", PDF)
        assert read["hash"] == document()["hash"]
