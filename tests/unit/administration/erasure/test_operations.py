"""Orders to erase: what they mean, what is carried out, what is refused, and what is recorded."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from fhirpub.administration.erasure import holds, operations
from fhirpub.audit.record import BEGUN
from fhirpub.errors import InvalidContent
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.contract import Erasure, Hold
from fhirpub.testing.contracts.erasure.content import an_erasure
from fhirpub.testing.samples import new_id
from tests.panels import panel
from tests.unit.administration.declared import declared
from tests.unit.administration.office import AGENT, Office
from tests.unit.interactions.erasure.registered import patient_of, registered

REASON = "order 7"
NAME = "DiagnosticReport/5a5b5c5d-0000-4000-8000-aabbccddeeff"


async def published(office: Office, tenant: str, value: str = "R-1") -> Version:
    """Register a report of a tenant."""
    owner = await office.administration.tenant(tenant)
    store: Any = office.store
    return await registered(store, panel(value), tenant=owner)


def name_of(version: Version) -> str:
    return f"{version.type}/{version.id}"


async def erase(office: Office, tenant: str, *names: str, **given: Any) -> Any:
    return await office.run(
        operations.ERASE, tenant=tenant, resources=[*names], reason=REASON, **given
    )


async def orders(office: Office, **given: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await office.run(operations.LIST, **given))["orders"]
    return found


async def test_a_report_is_erased_by_its_order(office: Office, lab: str) -> None:
    report = await published(office, lab)

    done = await erase(office, "Lab", name_of(report), name_of(report))

    assert [(one["type"], one["id"]) for one in done["erased"]] == [(report.type, report.id)]
    assert done["refused"] == []


async def test_an_order_has_who_decided_it_when_and_why(office: Office, lab: str) -> None:
    report = await published(office, lab)

    await erase(office, lab, name_of(report), operator="Eva")

    (order,) = await orders(office)
    assert {name: order[name] for name in ("tenant", "type", "id", "operator", "reason")} == {
        "tenant": lab,
        "type": report.type,
        "id": report.id,
        "operator": "Eva",
        "reason": REASON,
    }
    assert (order["ordered"], order["allows_reuse"]) == (office.clock(), False)
    assert order["finished"] is not None


async def test_the_caller_has_decided_unless_another_is_named(office: Office, lab: str) -> None:
    report = await published(office, lab)

    await erase(office, lab, name_of(report), allow_reuse=True)

    (order,) = await orders(office)
    assert (order["operator"], order["allows_reuse"]) == (AGENT.user, True)


async def test_a_reason_has_no_blanks_around_it(office: Office, lab: str) -> None:
    report = await published(office, lab)

    await office.run(
        operations.ERASE, tenant=lab, resources=[name_of(report)], reason=f"  {REASON} "
    )

    assert [one["reason"] for one in await orders(office)] == [REASON]


async def test_each_erasure_is_recorded_in_the_chain_of_its_tenant(
    office: Office, lab: str
) -> None:
    report, before = await published(office, lab), len(await office.records())

    await erase(office, lab, name_of(report))

    records = [one for one in await office.records() if one[1] == "erase"]
    assert len(await office.records()) >= before
    assert records == [(lab, "erase", status, [name_of(report)]) for status in (BEGUN, 200)]


async def test_what_is_on_hold_is_refused_and_stops_no_other(office: Office, lab: str) -> None:
    kept, gone = await published(office, lab), await published(office, lab, "R-2")
    await office.run(holds.ADD, tenant=lab, type=kept.type, id=kept.id, reason="case 7")

    done = await erase(office, lab, name_of(kept), name_of(gone))

    assert [one["id"] for one in done["erased"]] == [gone.id]
    assert len(done["refused"]) == 1
    assert await office.store.latest(lab, kept.id) is not None


async def test_the_report_of_another_tenant_is_not_erased(
    office: Office, lab: str, other: str
) -> None:
    report = await published(office, lab)

    done = await erase(office, other, name_of(report))

    assert done["erased"] == []
    assert await office.store.latest(lab, report.id) is not None


@pytest.mark.parametrize(
    "given",
    [
        {"resources": []},
        {"resources": [NAME] * 51},
        {"resources": ["nonsense"]},
        {"reason": " "},
        {"reason": "x" * 501},
        {"reason": None},
        {"operator": ""},
        {"operator": "x" * 501},
    ],
    ids=range(8),
)
async def test_an_order_that_is_none_is_refused(
    office: Office, lab: str, given: dict[str, Any]
) -> None:
    usual = {"resources": [NAME], "reason": REASON}

    with pytest.raises(InvalidContent) as refused:
        await office.run(operations.ERASE, tenant=lab, **{**usual, **given})

    assert {issue.expression for issue in refused.value.issues} == {*given}


async def test_a_plan_shows_what_would_be_erased_and_changes_nothing(
    office: Office, lab: str
) -> None:
    report = await published(office, lab)

    plan = await office.run(operations.PLAN, tenant=lab, reports=[report.id, name_of(report)])

    assert [(one["type"], one["id"]) for one in plan["planned"]] == [(report.type, report.id)]
    assert (plan["moved"], plan["following"]) == ([], None)
    assert await orders(office) == []
    assert await office.store.latest(lab, report.id) is not None


async def test_a_plan_of_a_patient_has_all_that_refers_to_it(office: Office, lab: str) -> None:
    report = await published(office, lab)

    plan = await office.run(operations.PLAN, tenant=lab, patients=[patient_of(report)])

    assert [one["id"] for one in plan["planned"]] == [report.id]


async def test_a_plan_goes_on_where_it_ended(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_PAGE", 2)
    ids = [(await published(office, lab, f"R-{number}")).id for number in range(3)]

    first = await office.run(operations.PLAN, tenant=lab, reports=ids)
    second = await office.run(
        operations.PLAN, tenant=lab, reports=ids, **{"from": first["following"]}
    )

    assert [one["id"] for one in first["planned"] + second["planned"]] == ids
    assert (first["following"], second["following"]) == (2, None)


async def test_orders_are_listed_of_one_tenant_or_all_and_each_look_is_recorded(
    office: Office, lab: str, other: str
) -> None:
    for tenant in (lab, other):
        await erase(office, tenant, name_of(await published(office, tenant)))
    before = len(await office.records())

    assert {one["tenant"] for one in await orders(office)} == {lab, other}
    assert {one["tenant"] for one in await orders(office, tenant="Lab")} == {lab}
    assert await orders(office, unfinished=True) == []

    looks = (await office.records())[before:]
    assert looks == [(one, "erase.list", 200, []) for one in (*sorted([lab, other]), lab)]


async def test_a_list_of_orders_goes_on_where_it_ended(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_PAGE", 2)
    for number in range(3):
        await erase(office, lab, name_of(await published(office, lab, f"R-{number}")))

    first = await office.run(operations.LIST)
    second = await office.run(operations.LIST, after=first["following"])

    ids = [one["id"] for one in first["orders"] + second["orders"]]
    assert ids == sorted(ids)
    assert len({*ids}) == 3
    assert second["following"] is None


def an_order(tenant: str, **changes: Any) -> Erasure:
    usual = {"tenant": tenant, "ordered": 5, "operator": "Eva", "reason": REASON}
    return an_erasure(**usual | changes)


async def test_orders_are_carried_out_again_on_what_a_backup_brought_back(
    office: Office, lab: str
) -> None:
    report = await published(office, lab)
    order = an_order(lab, id=report.id, version=3, finished=9)
    hold = Hold(tenant=lab, type=report.type, id=new_id(), since=5, operator="Eva", reason="c")

    done = await office.run(
        operations.REPEAT, tenant=lab, orders=[asdict(order)], holds=[asdict(hold)]
    )

    assert [one["id"] for one in done["erased"]] == [report.id]
    assert await office.store.holds(lab) == [hold]
    assert (lab, "hold.add", 200, [f"{hold.type}/{hold.id}"]) in await office.records()


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant": "another"},
        {"id": "nonsense"},
        {"type": ""},
        {"ordered": -1},
        {"ordered": 253_402_300_800_000},
        {"ordered": True},
        {"ordered": "5"},
        {"reason": None},
        {"reason": "x" * 2_001},
        {"allows_reuse": 1},
        {"more": 1},
    ],
    ids=range(11),
)
async def test_what_was_never_exported_is_not_carried_out(
    office: Office, lab: str, changes: dict[str, Any]
) -> None:
    order = {**asdict(an_order(lab)), **changes}

    with pytest.raises(InvalidContent) as refused:
        await office.run(operations.REPEAT, tenant=lab, orders=[order])

    assert [issue.expression for issue in refused.value.issues] == ["orders"]
    assert await orders(office) == []


def test_an_exported_order_begins_again_in_another_store() -> None:
    order = an_order("t", version=3, finished=9)

    record = operations.record_of(asdict(order))

    assert record == replace(order, version=0, finished=None)


async def test_a_hold_among_orders_is_none_of_them(office: Office, lab: str) -> None:
    hold = Hold(tenant=lab, type="Patient", id=new_id(), since=5, operator="Eva", reason="c")

    with pytest.raises(InvalidContent, match="must be orders of this tenant"):
        await office.run(operations.REPEAT, tenant=lab, orders=[asdict(hold)])


async def test_nothing_is_resumed_where_all_is_finished(office: Office, lab: str) -> None:
    await erase(office, lab, name_of(await published(office, lab)))

    assert await office.run(operations.RESUME, tenant=lab) == {
        "erased": [],
        "refused": [],
        "following": None,
    }


async def test_orders_of_another_tenant_are_not_resumed(
    office: Office, lab: str, other: str
) -> None:
    report = await published(office, other)
    await office.store.put_erasure(an_order(other, id=report.id))

    done = await office.run(operations.RESUME, tenant=lab)

    assert (done["erased"], done["refused"]) == ([], [])
    assert [one for one in await office.records() if one[1] == "erase"] == []


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(operations.OPERATIONS) == {
        "erase report --dry-run": [
            "POST /tenants/{tenant}/erasures/plan 200",
            "path tenant! string",
            "body reports strings",
            "body report_identifier string",
            "body type string",
            "body patients strings",
            "body patient_identifier string",
            "body expired boolean",
            "body from integer >=0",
        ],
        "erase report": [
            "POST /tenants/{tenant}/erasures 200",
            "final, as erase",
            "path tenant! string",
            "body resources! strings >=1 <=50",
            "body reason! string 500 characters",
            "body operator string 500 characters",
            "body allow_reuse boolean",
        ],
        "erase resume": [
            "POST /tenants/{tenant}/erasures/resume 200",
            "final",
            "path tenant! string",
            "body after string",
        ],
        "restore": [
            "POST /tenants/{tenant}/erasures/repeat 200",
            "final",
            "path tenant! string",
            "body orders objects <=50",
            "body holds objects <=50",
        ],
        "erase list": [
            "GET /erasures 200",
            "query tenant string",
            "query unfinished boolean",
            "query after string",
        ],
    }
