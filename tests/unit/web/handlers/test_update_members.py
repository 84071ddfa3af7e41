"""Updates of what came with another resource, and the record that an update leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import orjson
import pytest

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.errors import Issue
from fhirpub.problems import ContentProblem
from fhirpub.testing.samples import a_version
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.audit_trail import records_of_tenant
from tests.panels import panel, result
from tests.unit.web.handlers.asking import (
    REPORTS,
    Asked,
    NotingMemory,
    asked,
    on_request,
    running,
)
from tests.unit.web.handlers.test_update import register, update

OBSERVATIONS = "/fhir/r4/Observation"
CHANGE = {"resourceType": "Observation", "status": "amended"}


@pytest.fixture(scope="module")
def of_two_types(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service in which observations come with reports, and are registered alone too."""
    config = Config(plugins=PluginsConfig(enabled=["diagnosticreport", "observation"]))
    with RunningService(tmp_path_factory.mktemp("members"), config=config) as service:
        yield service


@pytest.fixture
def owner(of_two_types: RunningService) -> Integrator:
    return of_two_types.integrator()


@pytest.fixture
def member(owner: Integrator) -> str:
    """The id of an observation that came with a report."""
    owner.register(panel(uuid4().hex, result("r1")))
    found: str = owner.get(OBSERVATIONS).json["entry"][0]["resource"]["id"]
    return found


def assert_is_not_alone(answer: Answer) -> None:
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert "is corrected together with that one" in answer.issues[0]["diagnostics"]


def test_a_member_is_not_updated_though_its_type_may_be(owner: Integrator, member: str) -> None:
    assert_is_not_alone(owner.patch(f"{OBSERVATIONS}/{member}", CHANGE))
    assert owner.get(f"{OBSERVATIONS}/{member}").headers["etag"] == 'W/"1"'


def test_a_member_that_matches_a_condition_is_not_updated(owner: Integrator, member: str) -> None:
    assert_is_not_alone(owner.patch(f"{OBSERVATIONS}?status=final", CHANGE))
    assert owner.get(f"{OBSERVATIONS}/{member}").headers["etag"] == 'W/"1"'


def test_an_update_leaves_one_record(lab: Integrator) -> None:
    path = register(lab)
    update(lab, path)

    found = [(one["action"], one["status"]) for one in records_of_tenant(lab)]
    assert found == [("register", 201), ("update", 204)]


def test_an_outcome_of_an_update_has_the_remarks_on_its_content(lab: Integrator) -> None:
    remark = Issue.warning(ContentProblem.CODE_UNKNOWN, "has no such code", "a.b")
    updated: Any = SimpleNamespace(version=a_version(), remarks=(remark,))

    async def use(one: Asked) -> list[str]:
        await cast("Any", one.handler)._respond_with_update(updated)
        outcome = orjson.loads(one.exchange.body or b"")
        return [issue["details"]["coding"][0]["code"] for issue in outcome["issue"]]

    headers = {"Prefer": "return=OperationOutcome"}
    found = on_request(lab, use, "PATCH", f"{REPORTS}/1", headers)
    assert found == ["accepted", "code-unknown"]


def test_a_large_version_that_is_updated_takes_memory_of_its_tenant(lab: Integrator) -> None:
    path = register(lab, conclusion="x y " * 20_000)
    memory = NotingMemory()

    async def status() -> int:
        services = replace(running(lab).services, response_memory=memory)
        async with asked(lab, "PATCH", path, services=services) as one:
            one.handler.data_received(b'{"resourceType":"DiagnosticReport","status":"amended"}')
            one.handler.run()
            await one.exchange.wait_ended()
            return one.exchange.status

    assert running(lab).call(status()) == 204
    ((size, owner),) = memory.asked_for
    assert (size >= 80_000, owner) == (True, lab.tenant.id)
