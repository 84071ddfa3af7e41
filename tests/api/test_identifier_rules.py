"""Rules for identifiers over a store: ids that stay, rules that change, and searches (ADR 41)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from fhirpub.administration.erasure.meant import find_meant
from fhirpub.administration.erasure.work import Work
from fhirpub.cli.check import check
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.errors import ConfigurationError
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.clinical import specimen, with_patient
from tests.erasing import Operator
from tests.plugin_examples import write_metadata

PLUGIN = """
from dataclasses import replace

from fhirpub.plugin_api import IdentifierRule, ValueForm, hookimpl
from fhirpub_specimen import SPECIMEN

@hookimpl
def fhirpub_resource_types():
    return [replace(SPECIMEN, identifier={rule})]
"""
OF_VERSION_1 = """
from fhirpub.plugin_api import Part, ResourceType, hookimpl

SERVICE_REQUEST = ResourceType(
    name="ServiceRequest",
    parts=(Part(name="patient", type="Patient", referred_by="subject"),),
    create_statuses=frozenset({"active"}),
    update_statuses=frozenset({"active", "completed"}),
    summary=("intent", "subject"),
)

@hookimpl
def fhirpub_resource_types():
    return [SERVICE_REQUEST]
"""
BASE = 'IdentifierRule(elements=("accessionIdentifier",))'
UPPER = 'IdentifierRule(elements=("accessionIdentifier",), forms=(ValueForm(case="upper"),))'
STRICTER = (
    'IdentifierRule(elements=("accessionIdentifier",), most=9, '
    'forms=(ValueForm(pattern="[A-Za-z0-9-]+"),))'
)
SYSTEM = "https://lab.example/specimens"

Serve = Callable[[str], RunningService]


@pytest.fixture
def serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_url: Callable[[str], str]
) -> Iterator[Serve]:
    """Return a service over one store, with a plugin that has this text."""
    home = tmp_path / "plugin"
    write_metadata(home, "trial", {"trial": "trial_of_rules"})
    monkeypatch.syspath_prepend(home)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two texts in one second
    url = store_url(f"rules-{tmp_path.name}")

    def with_plugin(text: str) -> RunningService:
        replace_plugin(tmp_path, text)
        config = Config(plugins=PluginsConfig(enabled=["trial"]))
        return RunningService(tmp_path / "service", config=config, store_url=url)

    yield with_plugin
    sys.modules.pop("trial_of_rules", None)


def replace_plugin(folder: Path, text: str) -> None:
    """Let the plugin have another text."""
    sys.modules.pop("trial_of_rules", None)
    (folder / "plugin" / "trial_of_rules.py").write_text(text)


def registered(lab: Integrator, value: str) -> Answer:
    body = with_patient(specimen(value, system=SYSTEM, container=None))
    answer = lab.register(body, type_name="Specimen")
    assert answer.status == 201, answer.body
    return answer


def path_of(answer: Answer) -> str:
    return answer.headers["location"].partition("/fhir")[2]


def declaring(rule: str) -> str:
    return PLUGIN.format(rule=rule)


def test_a_rule_that_gives_stored_resources_other_keys_stops_the_start(serve: Serve) -> None:
    with serve(declaring(BASE)) as service:
        lab = service.integrator()
        registered(lab, "a-1")
        registered(lab, "A-2")

    with pytest.raises(ConfigurationError) as refusal, serve(declaring(UPPER)):
        pass

    said = str(refusal.value)
    assert said.startswith("Specimen: the plugin declares another rule for identifiers than")
    assert "forms: was the default, is {'': {'case': 'upper'}}" in said
    assert "1 of 2 resources" in said
    assert "Go back to the release of the plugin with the earlier rule" in said
    with serve(declaring(BASE)) as service:
        again = registered(service.another_client(lab.tenant), "a-1")
        assert "/_history/1" in again.headers["location"]


def test_the_command_check_says_so_before_the_start(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(declaring(BASE)) as service:
        registered(service.integrator(), "a-1")
        address = service.services.config.storage.url
    monkeypatch.setenv("FHIRPUB_STORAGE__URL", address)
    monkeypatch.setenv("FHIRPUB_PLUGINS__ENABLED", "trial")
    monkeypatch.chdir(tmp_path)
    replace_plugin(tmp_path, declaring(UPPER))

    done = CliRunner().invoke(check, [])

    (line,) = [line for line in done.stdout.splitlines() if "identifiers" in line.split()[:2]]
    assert line.startswith("error")
    assert "1 of 1 resources" in line


def test_a_rule_that_gives_them_the_same_keys_is_taken(serve: Serve) -> None:
    with serve(declaring(BASE)) as service:
        lab = service.integrator()
        first = registered(lab, "A-1")

    with serve(declaring(UPPER)) as service:
        again = registered(service.another_client(lab.tenant), "a-1")
        assert path_of(again) == path_of(first)

    # From now on the store is one of the new rule.
    with pytest.raises(ConfigurationError), serve(declaring(_of_lower_case())):
        pass


def _of_lower_case() -> str:
    return UPPER.replace("upper", "lower")


def test_what_does_not_decide_the_key_can_change_over_a_full_store(serve: Serve) -> None:
    with serve(declaring(BASE)) as service:
        lab = service.integrator()
        first = registered(lab, "a_1")

    with serve(declaring(STRICTER)) as service:
        lab = service.another_client(lab.tenant)
        again = registered(lab, "a_1")  # registered before, and so answered
        assert again.body == first.body
        body = with_patient(specimen("a_2", system=SYSTEM, container=None))
        assert lab.register(body, type_name="Specimen").status == 400
        found = lab.get(f"/fhir/r4/Specimen?identifier={SYSTEM}%7Ca_1").json
        assert found["total"] == 1  # several may be found by now, so that values are taken again


def test_an_erased_resource_keeps_its_key_too(serve: Serve) -> None:
    with serve(declaring(BASE)) as service:
        lab = service.integrator()
        resource_id = registered(lab, "A-1").headers["location"].split("/")[-3]
        Operator(service, lab).erase(f"Specimen/{resource_id}")

    with pytest.raises(ConfigurationError, match="1 of 1 resources"), serve(declaring(UPPER)):
        pass


def test_a_plugin_without_a_rule_has_the_ids_that_it_always_had(serve: Serve) -> None:
    body: dict[str, Any] = {
        "resourceType": "ServiceRequest",
        "identifier": [{"system": SYSTEM, "value": " a-1"}],
        "status": "active",
        "intent": "order",
        "subject": {"reference": "Patient/p1"},
    }
    with serve(OF_VERSION_1) as service:
        lab = service.integrator()

        answer = lab.register(with_patient(body), type_name="ServiceRequest")

        expected = lab.tenant.resource_id("ServiceRequest", SYSTEM, " a-1")
        assert f"/ServiceRequest/{expected}/" in answer.headers["location"]
        assert service.call(service.services.store.search_rules()).count("identifier of") == 0


def test_an_order_to_erase_names_a_resource_in_any_spelling(serve: Serve) -> None:
    with serve(declaring(UPPER)) as service:
        lab = service.integrator()
        resource_id = registered(lab, "A-1").headers["location"].split("/")[-3]
        eraser = Operator(service, lab).eraser
        work = Work(cast("Any", None), lab.tenant, service.services.context, eraser)

        meant = service.call(
            find_meant(work, {"report_identifier": f"{SYSTEM}|a-1", "type": "Specimen"})
        )

        assert meant.ids == [resource_id]
