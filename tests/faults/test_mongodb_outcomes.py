"""MongoDB's replies are lost, late or refusals: clients never get a 500.

Whatever came first, the same request gets the one right response when it is repeated.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from fhirpub.config.audit import AuditConfig
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.storage.contract import SMALL_BYTES
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import SYSTEM, document, register_body
from tests.mongod.replica_set import ProxiedSet
from tests.mongodb_proxy import Fault, Proxy

pytestmark = pytest.mark.slow

_DEADLINE_SECONDS = 5.0
_ALWAYS = sys.maxsize
_values = count()

_ON_WRITES = [
    (Fault.CUT_REPLY, 1, True),
    (Fault.CUT_REPLY, _ALWAYS, True),
    (Fault.DROP_REPLY, 1, True),
    (Fault.DROP_REPLY, _ALWAYS, True),
    (Fault.CUT_REQUEST, 1, True),
    (Fault.CUT_REQUEST, _ALWAYS, False),
    (Fault.STALL, 1, True),
    (Fault.STALL, _ALWAYS, False),
]
"""A fault, the number of inserts that it affects, and whether the write succeeds anyway."""
_FAULTS = list(dict.fromkeys(fault for fault, *_ in _ON_WRITES))
_ON_READS = [*((fault, 1, True) for fault in _FAULTS), (Fault.CUT_REPLY, _ALWAYS, False)]
_NOT_PRIMARY = [10107, 189, 91, 11600]


@pytest.fixture(scope="module")
def service(
    member_behind_proxy: ProxiedSet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service that reaches its database through the proxy alone."""
    config = Config(
        storage=StorageConfig(deadline_seconds=_DEADLINE_SECONDS),
        # Blocks of the trail are inserted too, and would meet the faults meant for reports.
        audit=AuditConfig(enabled=False),
    )
    # An error of a fail point does not change what the server reports of itself.
    url = f"{member_behind_proxy.url('outcomes')}&heartbeatFrequencyMS=500"
    folder = tmp_path_factory.mktemp("service")
    with RunningService(folder, config=config, store_url=url) as running:
        yield running


@pytest.fixture
def proxy(proxied_set: ProxiedSet) -> Proxy:
    return proxied_set.proxy


@pytest.fixture
def body() -> dict[str, Any]:
    """A new report with an external document: a single insert, that of the report."""
    elsewhere = {"contentType": "application/pdf", "url": "https://lab.example/reports/1.pdf"}
    return register_body(f"outcome-{next(_values)}", presentedForm=[elsewhere])


def value_of(body: dict[str, Any]) -> str:
    value: str = body["parameter"][2]["resource"]["identifier"][0]["value"]
    return value


def assert_once(lab: Integrator, body: dict[str, Any], registered: Answer) -> None:
    """Assert that there is one such report, and that all responses match it."""
    again = lab.register(body)
    found = lab.get(f"/fhir/r4/DiagnosticReport?identifier={SYSTEM}%7C{value_of(body)}").json
    assert (registered.status, again.status) == (201, 201)
    assert registered.body == again.body
    assert registered.headers["location"] == again.headers["location"]
    assert found["total"] == 1


def assert_outcome(answer: Answer, status: int, *, success: bool) -> None:
    """Assert that a response is a success, or asks for the same request again."""
    assert answer.status == (status if success else 503), answer.body
    assert success == ("retry-after" not in answer.headers)


@pytest.mark.parametrize(("fault", "times", "success"), _ON_WRITES)
def test_a_registration_whose_insert_met_a_fault_is_made_once(
    lab: Integrator, proxy: Proxy, body: dict[str, Any], fault: Fault, times: int, success: object
) -> None:
    proxy.inject(fault, "insert", times=times)
    first = lab.register(body)
    assert proxy.hits

    proxy.heal()

    assert_outcome(first, 201, success=bool(success))
    assert_once(lab, body, first if success else lab.register(body))


def test_a_known_report_gets_its_first_answer_while_nothing_can_be_inserted(
    lab: Integrator, proxy: Proxy, body: dict[str, Any]
) -> None:
    first = lab.register(body)
    proxy.inject(Fault.STALL, "insert")

    again = lab.register(register_body(value_of(body), conclusion="Another"))

    assert again.status == 201
    assert again.body == first.body
    assert not proxy.hits


@pytest.mark.parametrize(("fault", "times", "success"), _ON_WRITES)
def test_an_update_whose_insert_met_a_fault_is_made_once(
    lab: Integrator, proxy: Proxy, body: dict[str, Any], fault: Fault, times: int, success: object
) -> None:
    path = lab.register(body).headers["location"].partition("/_history")[0]
    patch = {"resourceType": "DiagnosticReport", "conclusion": "Changed"}
    proxy.inject(fault, "insert", times=times)
    first = lab.patch(path, patch, If_Match='W/"1"')

    proxy.heal()
    again = lab.patch(path, patch, If_Match='W/"1"')

    assert_outcome(first, 204, success=bool(success))
    arrived_late = again.status == 412 and fault is Fault.STALL
    assert again.status == (412 if success or arrived_late else 204)
    assert [item["resource"]["meta"]["versionId"] for item in history(lab, path)] == ["2", "1"]
    assert lab.get(path).json["conclusion"] == "Changed"


def history(lab: Integrator, path: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = lab.get(f"{path}/_history").json["entry"]
    return entries


@pytest.mark.parametrize(("fault", "times", "success"), _ON_READS)
def test_a_read_that_met_a_fault_is_tried_again(
    lab: Integrator, proxy: Proxy, body: dict[str, Any], fault: Fault, times: int, success: object
) -> None:
    path = lab.register(body).headers["location"].partition("/_history")[0]
    before = lab.get(path)
    proxy.inject(fault, "aggregate", times=times)

    read = lab.get(path)

    assert proxy.hits
    assert_outcome(read, 200, success=bool(success))
    assert read.body == before.body or not success


@pytest.mark.parametrize(
    ("size", "times", "success"),
    [
        (0, 1, True),
        (0, _ALWAYS, True),  # one insert: a read finds out that it was done
        (SMALL_BYTES, 1, True),
        (SMALL_BYTES, _ALWAYS, False),
    ],
)
def test_a_report_is_registered_only_with_its_documents(
    lab: Integrator, proxy: Proxy, size: int, times: int, success: object
) -> None:
    number = next(_values)
    new = document(b"%%PDF-1.4 %d" % number + bytes(size))
    body = register_body(f"outcome-{number}", presentedForm=[new])
    proxy.inject(Fault.CUT_REPLY, "insert", "update", times=times)
    first = lab.register(body)
    assert proxy.hits

    proxy.heal()

    assert_outcome(first, 201, success=bool(success))
    assert_once(lab, body, first if success else lab.register(body))


@pytest.mark.parametrize("code", _NOT_PRIMARY)
def test_a_server_that_is_no_primary_for_a_while_is_only_a_delay(
    lab: Integrator, proxied_set: ProxiedSet, body: dict[str, Any], code: int
) -> None:
    primary = proxied_set.primary()

    with primary.failing(times=1, failCommands=["insert"], errorCode=code):
        first = lab.register(body)

    assert_once(lab, body, first)


def test_a_server_that_stays_no_primary_is_503(
    lab: Integrator, proxied_set: ProxiedSet, body: dict[str, Any]
) -> None:
    primary = proxied_set.primary()

    with primary.failing(failCommands=["insert"], errorCode=_NOT_PRIMARY[0]):
        first = lab.register(body)

    assert_outcome(first, 201, success=False)
    assert_once(lab, body, lab.register(body))


@pytest.mark.parametrize("fault", [Fault.REFUSE, Fault.STALL])
def test_without_its_database_every_address_that_needs_it_answers_503(
    service: RunningService, lab: Integrator, proxy: Proxy, body: dict[str, Any], fault: Fault
) -> None:
    path = lab.register(body).headers["location"].partition("/_history")[0]
    patch = {"resourceType": "DiagnosticReport", "conclusion": "Changed"}
    newcomer = service.integrator()
    proxy.inject(fault)

    with ThreadPoolExecutor(8) as threads:
        calls = [
            threads.submit(lab.register, register_body(f"outcome-{next(_values)}")),
            threads.submit(lab.register, body),
            threads.submit(lab.patch, path, patch),
            threads.submit(lab.get, path),
            threads.submit(lab.get, f"{path}/_history"),
            threads.submit(lab.get, "/fhir/r4/DiagnosticReport"),
            threads.submit(newcomer.get, path),
            threads.submit(service.request, "GET", "/health/ready"),
        ]
        answers = [call.result() for call in calls]

    assert [answer.status for answer in answers] == [503] * len(calls)
    assert all("retry-after" in answer.headers for answer in answers)
