"""What scopes permit to read of parts and members, in a service of two types that demands them."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from fhirpub.config.settings import AuthConfig, Config, PluginsConfig
from fhirpub.testing.service import Integrator, RunningService
from tests.audit_trail import records_of_tenant
from tests.bodies import register_body

BASE = "/fhir/r4"
MEMBER = "0123abcd-0123-8567-8abc-0123456789ab"
"""The form of the id of a member, which there is not."""
PART = "0123abcd-0123-4567-8abc-0123456789ab"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service in which practitioners are members of reports and parts of encounters."""
    plugins = PluginsConfig(enabled=["diagnosticreport", "encounter"])
    config = Config(auth=AuthConfig(enforce_scopes=True), plugins=plugins)
    with RunningService(tmp_path_factory.mktemp("two"), config=config) as running:
        yield running


@pytest.fixture(scope="module")
def owner(service: RunningService) -> Integrator:
    return service.integrator(scopes=("system/*.cruds",))


@pytest.fixture(scope="module")
def part(owner: Integrator) -> str:
    """The path of an organization that came with a report."""
    answer = owner.register(register_body(uuid4().hex))
    report = owner.get(answer.headers["location"]).json
    return f"{BASE}/{report['performer'][0]['reference']}"


@pytest.mark.parametrize(
    ("scope", "status"),
    [
        ("system/Organization.r", 200),
        ("system/DiagnosticReport.r", 200),
        ("system/Encounter.r", 403),
        ("system/Patient.r", 403),
        ("system/Organization.s", 403),
    ],
)
def test_a_part_is_read_with_the_right_to_it_or_to_the_type_with_which_it_came(
    service: RunningService, owner: Integrator, part: str, scope: str, status: int
) -> None:
    lab = service.another_client(owner.tenant, scopes=(scope,))

    assert [lab.get(part + end).status for end in ("", "/_history/1")] == [status, status]


@pytest.mark.parametrize("end", ["", "/_history/1"])
@pytest.mark.parametrize(
    ("scope", "status"), [("system/DiagnosticReport.r", 403), ("system/Practitioner.r", 404)]
)
def test_whether_there_is_a_member_is_for_those_with_the_right_to_its_type(
    service: RunningService, owner: Integrator, scope: str, status: int, end: str
) -> None:
    lab = service.another_client(owner.tenant, scopes=(scope,))

    answer = lab.get(f"{BASE}/Practitioner/{MEMBER}{end}")

    assert answer.status == status
    named = "system/Practitioner.r" in answer.headers.get("www-authenticate", "")
    assert named == (status == 403)
    assert lab.get(f"{BASE}/Practitioner/{PART}{end}").status == 404


def test_a_version_that_a_part_has_not_is_recorded_as_a_read_of_one(owner: Integrator) -> None:
    answer = owner.get(f"{BASE}/Practitioner/{PART}/_history/2")

    record = records_of_tenant(owner)[-1]
    assert answer.status == 404
    assert (record["action"], record["status"]) == ("vread", 404)
