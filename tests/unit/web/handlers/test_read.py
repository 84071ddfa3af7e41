"""Conditions of reads, to the millisecond and the second, and what has one version only."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from fhirpub.fhir.times import http_date, instant
from fhirpub.testing.clock import HandClock
from fhirpub.testing.service import Integrator, RunningService
from tests.audit_trail import records_of_tenant
from tests.bodies import register_body
from tests.unit.web.handlers.asking import path_of, running

BASE = "/fhir/r4"
REPORT = f"{BASE}/DiagnosticReport"
SECOND = 1_795_000_000_000


@pytest.fixture(scope="module")
def clock() -> HandClock:
    return HandClock(SECOND)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, clock: HandClock) -> Iterator[Integrator]:
    """A client of a service whose clock the tests move."""
    with RunningService(tmp_path_factory.mktemp("read"), clock=clock) as service:
        yield service.integrator()


@pytest.fixture
def path(lab: Integrator, clock: HandClock) -> str:
    """The path of a report that was registered 300 ms after the beginning of a second."""
    clock.now = SECOND + 300
    return path_of(lab.register(register_body(uuid4().hex)))


def update(lab: Integrator, path: str) -> None:
    answer = lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})
    assert answer.status < 300, answer.body


# What the client has.


@pytest.mark.parametrize(("tag", "status"), [('W/"1"', 304), ('"1"', 304), ('W/"2"', 200)])
def test_a_version_that_the_client_has_is_not_sent(
    lab: Integrator, path: str, tag: str, status: int
) -> None:
    assert lab.get(path, If_None_Match=tag).status == status


@pytest.mark.parametrize(("seconds", "status"), [(-1, 200), (0, 304), (1, 304)])
def test_a_version_is_known_since_the_second_in_which_it_was_made(
    lab: Integrator, path: str, seconds: int, status: int
) -> None:
    since = http_date(SECOND + seconds * 1000)

    assert lab.get(path, If_Modified_Since=since).status == status


def test_a_second_in_which_there_were_two_versions_is_no_proof(
    lab: Integrator, path: str, clock: HandClock
) -> None:
    clock.now = SECOND + 600
    update(lab, path)

    assert lab.get(path, If_Modified_Since=http_date(SECOND)).status == 200
    assert lab.get(path, If_Modified_Since=http_date(SECOND + 1000)).status == 304


def test_a_version_of_the_next_second_is_known_since_then(
    lab: Integrator, path: str, clock: HandClock
) -> None:
    clock.now = SECOND + 1_000
    update(lab, path)

    assert lab.get(path, If_Modified_Since=http_date(SECOND)).status == 200
    assert lab.get(path, If_Modified_Since=http_date(SECOND + 1000)).status == 304


def test_a_tag_comes_before_a_time(lab: Integrator, path: str) -> None:
    later = http_date(SECOND + 9_000)

    answer = lab.get(path, If_None_Match='W/"2"', If_Modified_Since=later)

    assert answer.status == 200


def test_what_is_no_time_is_no_condition(lab: Integrator, path: str) -> None:
    assert lab.get(path, If_Modified_Since="yesterday").status == 200


def test_304_has_the_tag_and_no_body(lab: Integrator, path: str) -> None:
    answer = lab.get(path, If_None_Match='W/"1"')

    assert (answer.headers["etag"], answer.body) == ('W/"1"', b"")
    assert answer.headers["cache-control"] == "private, no-cache"
    assert "content-length" not in answer.headers


def test_an_instant_is_compared_to_the_millisecond(lab: Integrator, path: str) -> None:
    found = [
        lab.get(path, If_Modified_Since=instant(SECOND + 300 + each)).status for each in (-1, 0, 1)
    ]

    assert found == [200, 304, 304]


def test_an_instant_is_proof_in_a_second_of_two_versions(
    lab: Integrator, path: str, clock: HandClock
) -> None:
    clock.now = SECOND + 600
    update(lab, path)

    assert lab.get(path, If_Modified_Since=instant(SECOND + 599)).status == 200
    assert lab.get(path, If_Modified_Since=instant(SECOND + 600)).status == 304


# What the client wants.


@pytest.mark.parametrize(("tag", "status"), [('W/"1"', 200), ("*", 200), ('W/"2"', 412)])
def test_another_version_than_the_wanted_one_is_refused(
    lab: Integrator, path: str, tag: str, status: int
) -> None:
    assert lab.get(path, If_Match=tag).status == status


def test_a_version_that_is_not_wanted_is_refused_though_the_client_has_it(
    lab: Integrator, path: str
) -> None:
    assert lab.get(path, If_Match='W/"2"', If_None_Match='W/"1"').status == 412


def test_a_wrong_parameter_is_refused_though_the_client_has_the_version(
    lab: Integrator, path: str
) -> None:
    assert lab.get(f"{path}?_summary=some", If_None_Match='W/"1"').status == 400


def test_elements_alone_are_shown_with_the_tag_of_the_version(lab: Integrator, path: str) -> None:
    answer = lab.get(f"{path}?_elements=status")

    assert answer.headers["etag"] == 'W/"1"'
    assert {"status", "meta"} <= {*answer.json}
    assert "conclusion" not in answer.json


# Versions.


def test_an_older_version_is_read_as_it_was(lab: Integrator, path: str, clock: HandClock) -> None:
    clock.now += 5_000
    update(lab, path)

    found = [lab.get(f"{path}/_history/{number}") for number in (1, 2, 3)]

    assert [answer.status for answer in found] == [200, 200, 404]
    assert [answer.json["status"] for answer in found[:2]] == ["final", "amended"]
    assert found[0].headers["etag"] == 'W/"1"'
    assert found[0].headers["last-modified"] == http_date(SECOND)


@pytest.mark.parametrize(("version", "status"), [("1", 200), ("01", 404), ("0", 404), ("2", 404)])
def test_a_part_has_one_version(lab: Integrator, path: str, version: str, status: int) -> None:
    reference = lab.get(path).json["performer"][0]["reference"]

    assert lab.get(f"{BASE}/{reference}/_history/{version}").status == status


@pytest.mark.parametrize("addition", ["", "/_history/1"])
def test_a_resource_of_another_tenant_is_not_found(
    lab: Integrator, path: str, addition: str
) -> None:
    service = lab.service
    assert isinstance(service, RunningService)

    answer = service.integrator("Other").get(path.removeprefix(lab.service.base_url) + addition)

    assert answer.status == 404


def test_what_the_service_publishes_is_read_by_its_type_and_id(lab: Integrator) -> None:
    found = [
        lab.get(f"{BASE}/{name}/unknown").status
        for name in ("CapabilityStatement", "OperationDefinition", "CodeSystem")
    ]

    assert found == [404, 404, 404]


def test_what_the_service_publishes_is_sent_as_it_is_kept(lab: Integrator) -> None:
    own = running(lab).services.own_resources

    assert {type_name for type_name, _id in own} >= {"CapabilityStatement", "CodeSystem"}
    for type_name, id_ in own:
        answer = lab.get(f"{BASE}/{type_name}/{id_}")
        assert (answer.status, answer.json["id"]) == (200, id_)
        assert answer.json["resourceType"] == type_name


def test_the_codes_of_problems_are_read_without_a_token(lab: Integrator) -> None:
    answer = lab.service.request("GET", f"{BASE}/CodeSystem/unknown")
    statement = lab.service.request("GET", f"{BASE}/CapabilityStatement/unknown")

    assert (answer.status, statement.status) == (404, 401)


# What is recorded.


def test_a_read_is_recorded_by_how_it_was_asked_for(lab: Integrator, path: str) -> None:
    reference = lab.get(path).json["performer"][0]["reference"]
    part = f"{BASE}/{reference}"
    asked = [path, f"{path}/_history/1", part, f"{part}/_history/1"]
    names = [uuid4().hex for _ in asked]
    for place, name in zip(asked, names, strict=True):
        assert lab.get(place, X_Request_Id=name).status == 200

    recorded = {one["request"]: one["action"] for one in records_of_tenant(lab)}
    assert [recorded[name] for name in names] == ["read", "vread", "read", "vread"]
