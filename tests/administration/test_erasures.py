"""Erasures and holds over HTTP."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from fhirpub.audit.record import BEGUN
from fhirpub.storage.erasure.contract import Erasure, Hold
from fhirpub.testing.service import Integrator
from tests.administration.conftest import Administered
from tests.api.test_erasure import BASE, publish

_ABSENT = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def lab(administered: Administered) -> Integrator:
    return administered.service.integrator()


def order(lab: Integrator, **changes: Any) -> dict[str, Any]:
    """Return an order as it is exported."""
    members: dict[str, Any] = {
        "tenant": lab.tenant.id,
        "type": "DiagnosticReport",
        "id": _ABSENT,
        "ordered": 1,
        "operator": "eve",
        "reason": "order 7",
    }
    return asdict(Erasure(**(members | changes)))


def held(lab: Integrator, **changes: Any) -> dict[str, Any]:
    """Return a hold as it is exported."""
    members: dict[str, Any] = {
        "tenant": lab.tenant.id,
        "type": "Patient",
        "id": _ABSENT,
        "since": 1,
        "operator": "eve",
        "reason": "case 7",
    }
    return asdict(Hold(**(members | changes)))


def test_a_report_that_is_named_twice_is_erased_once(
    administered: Administered, lab: Integrator
) -> None:
    report = publish(lab).report
    path = f"/tenants/{lab.tenant.id}/erasures"

    done = administered.request("POST", path, {"resources": [report, report], "reason": "x"})

    assert [one["versions"] for one in done.json["erased"]] == [1]
    assert lab.get(f"{BASE}/{report}").status == 410
    (order,) = administered.request("GET", f"/erasures?tenant={lab.tenant.id}").json["orders"]
    assert order["finished"] is not None


def test_what_is_on_hold_is_refused_and_the_rest_is_erased(
    administered: Administered, lab: Integrator
) -> None:
    report = publish(lab).report
    path = f"/tenants/{lab.tenant.id}"
    administered.request("PUT", f"{path}/holds/{report}", {"reason": "case 7"})

    fields = {"resources": [report], "reason": "x"}
    done = administered.request("POST", f"{path}/erasures", fields).json

    assert (done["erased"], len(done["refused"])) == ([], 1)
    assert lab.get(f"{BASE}/{report}").status == 200


def test_a_hold_that_is_repeated_is_recorded_and_can_be_released(
    administered: Administered, lab: Integrator
) -> None:
    path = f"/tenants/{lab.tenant.id}"

    administered.request("POST", f"{path}/erasures/repeat", {"holds": [held(lab)]})
    released = administered.request("DELETE", f"{path}/holds/Patient/{_ABSENT}")

    assert released.status == 200
    acts = [
        (record["action"], record["status"], record["what"])
        for record in administered.audit(lab.tenant.id)
        if record["action"] == "hold.add"
    ]
    assert acts == [("hold.add", status, [f"Patient/{_ABSENT}"]) for status in (200, BEGUN)]


@pytest.mark.parametrize(
    "change",
    [
        {"type": "../"},
        {"id": "x"},
        {"tenant": _ABSENT},
        {"since": 10**17},
        {"since": -1},
        {"operator": "x" * 2_001},
        {"since": True},
        {"more": 1},
    ],
)
def test_what_is_no_hold_of_the_tenant_is_not_put_on_hold(
    administered: Administered, lab: Integrator, change: dict[str, Any]
) -> None:
    path = f"/tenants/{lab.tenant.id}"
    wrong = held(lab) | change

    answer = administered.request("POST", f"{path}/erasures/repeat", {"holds": [wrong]})

    assert (answer.status, answer.issue_expressions) == (400, {"holds"})
    assert administered.request("GET", f"{path}/holds").json == []


@pytest.mark.parametrize(
    "change", [{"type": "../"}, {"id": "x"}, {"tenant": _ABSENT}, {"ordered": 10**17}]
)
def test_what_is_no_order_of_the_tenant_is_not_carried_out(
    administered: Administered, lab: Integrator, change: dict[str, Any]
) -> None:
    wrong = order(lab) | change

    answer = administered.request(
        "POST", f"/tenants/{lab.tenant.id}/erasures/repeat", {"orders": [order(lab), wrong]}
    )

    assert (answer.status, answer.issue_expressions) == (400, {"orders"})
    orders = administered.request("GET", f"/erasures?tenant={lab.tenant.id}").json["orders"]
    assert orders == []
