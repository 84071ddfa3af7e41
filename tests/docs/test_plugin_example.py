"""The whole declaration in the guide for plugin authors, put into a new plugin and served."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.scaffold.plan import blueprint
from fhirpub.cli.scaffold.writer import files_of
from fhirpub.config.settings import Config, PluginsConfig, TypeConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.testing.receiver import Receiver
from fhirpub.testing.service import Integrator, RunningService
from tests.element_tables import tables

GUIDE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r'^```py\n("""Immunization .*?)^```$', GUIDE, re.DOTALL | re.MULTILINE)
PACKAGE = "fhirpub_immunization"
PATH = "/fhir/r4/Immunization"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """The files of a new plugin, with the guide's declaration in place of theirs."""
    new = files_of(blueprint("Immunization", tables()), tables())
    return {**new, f"{PACKAGE}/rules.py": EXAMPLE}


@pytest.fixture(scope="module")
def service(
    files: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service that serves the new type and checks the order of its statuses."""
    home = tmp_path_factory.mktemp("plugin")
    metadata = f"{PACKAGE}-1.0.dist-info"
    installed = {
        f"{metadata}/METADATA": "Name: fhirpub-immunization\nVersion: 1.0\n",
        f"{metadata}/entry_points.txt": f"[fhirpub.plugins]\nimmunization = {PACKAGE}\n",
    }
    for name, text in (files | installed).items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    config = Config(
        plugins=PluginsConfig(enabled=["immunization"]),
        webhooks=WebhooksConfig(allow_networks=["127.0.0.1/32"]),
        by_type={"immunization": TypeConfig(state_flow="clinical")},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(home)
        with RunningService(tmp_path_factory.mktemp("service"), config=config) as running:
            yield running
    for name in [module for module in sys.modules if module.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator()


@pytest.fixture
def body(files: dict[str, str]) -> dict[str, Any]:
    """A body with the part, as the guide shows it, and with a reaction without a date."""
    body: dict[str, Any] = json.loads(files["tests/register.json"])
    maker = {"resourceType": "Organization", "id": "m1", "name": "Vaccine Works"}
    body["parameter"].insert(0, {"name": "manufacturer", "resource": maker})
    body["parameter"][-1]["resource"] |= {
        "manufacturer": {"reference": "Organization/m1"},
        "vaccineCode": {"coding": [{"system": "http://hl7.org/fhir/sid/cvx", "code": "207"}]},
        "reaction": [{"reported": True}],
    }
    return body


def test_it_is_registered_with_its_part_and_without(lab: Integrator, body: dict[str, Any]) -> None:
    with_part = lab.register(body, type_name="Immunization")
    del body["parameter"][0], body["parameter"][-1]["resource"]["manufacturer"]
    body["parameter"][-1]["resource"]["identifier"][0]["value"] = "1002"
    without = lab.register(body, type_name="Immunization")

    assert (with_part.status, without.status) == (201, 201)
    issues = with_part.json["parameter"][1]["resource"]["issue"]
    (remark,) = [issue for issue in issues if issue["severity"] == "warning"]
    assert remark["expression"] == ["Parameters.parameter[2].resource.reaction[0]"]


def test_a_rule_of_the_part_refuses(lab: Integrator, body: dict[str, Any]) -> None:
    del body["parameter"][0]["resource"]["name"]
    body["parameter"][0]["resource"]["identifier"] = [{"value": "1"}]

    answer = lab.register(body, type_name="Immunization")

    assert answer.status == 400
    assert answer.issue_expressions == {"Parameters.parameter[0].resource.name"}


def test_it_is_found_by_what_it_declares(lab: Integrator, body: dict[str, Any]) -> None:
    lab.register(body, type_name="Immunization")

    for search in ("date=2026-03-02", "vaccine-code=http://hl7.org/fhir/sid/cvx%7C207"):
        found = lab.get(f"{PATH}?{search}", Prefer="handling=strict")
        assert found.json["total"] == 1, search


def test_its_events_include_the_part_at_an_update_too(
    lab: Integrator, body: dict[str, Any], service: RunningService
) -> None:
    with Receiver() as receiver:
        fields = {"url": receiver.url, "event_types": ["immunization.*"]}
        service.call(service.services.endpoints.add(lab.tenant.id, fields, trusted=True))
        location = lab.register(body, type_name="Immunization").headers["location"]
        lab.patch(
            location.partition("/_history")[0],
            {"resourceType": "Immunization", "status": "entered-in-error"},
        )
        events = [json.loads(received.body) for received in receiver.wait(2)]

    assert [item["event_type"] for item in events] == [
        "immunization.created",
        "immunization.updated",
    ]
    assert [item["data"]["manufacturer"] for item in events] == ["Vaccine Works"] * 2
    assert events[1]["data"]["status"] == "entered-in-error"
    assert {"resource_type", "id", "version_id", "self"} <= set(events[0]["data"])


def test_its_order_of_statuses_holds_where_it_is_clinical(
    lab: Integrator, body: dict[str, Any]
) -> None:
    location = lab.register(body, type_name="Immunization").headers["location"]

    answer = lab.patch(
        location.partition("/_history")[0], {"resourceType": "Immunization", "status": "not-done"}
    )

    assert answer.status == 422
