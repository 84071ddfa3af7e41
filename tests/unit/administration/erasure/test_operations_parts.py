"""Erasures in several calls: where each begins and ends, and what belongs to all of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from fhirpub.administration.erasure import holds, operations
from fhirpub.administration.erasure.meant import find_meant
from fhirpub.administration.erasure.work import Work
from fhirpub.config.retention import RetentionConfig
from fhirpub.runtime.clock import DAY_MS
from fhirpub.storage.erasure.contract import Hold
from fhirpub.testing.contracts.erasure.content import an_erasure
from tests.bodies import document
from tests.panels import panel
from tests.unit.administration.erasure.test_operations import published
from tests.unit.administration.office import Office
from tests.unit.interactions.erasure.registered import registered


async def test_the_last_page_of_a_plan_may_be_full(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_PAGE", 2)
    ids = [(await published(office, lab, f"R-{number}")).id for number in range(2)]

    plan = await office.run(operations.PLAN, tenant=lab, reports=ids)

    assert ([one["id"] for one in plan["planned"]], plan["following"]) == (ids, None)


async def test_a_plan_goes_on_behind_what_it_left_out_for_a_hold(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_PAGE", 1)
    reports = [await published(office, lab, f"R-{number}") for number in range(3)]
    later = office.with_config(
        retention=RetentionConfig(policies=["DiagnosticReport after 3 days"])
    )
    office.clock.now = reports[-1].updated + 4 * DAY_MS
    work = await Work.on(later.administration, lab)
    first, *others = (await find_meant(work, {"expired": True})).ids
    await office.run(holds.ADD, tenant=lab, type=reports[0].type, id=first, reason="case 7")

    plans = [
        await later.run(operations.PLAN, tenant=lab, expired=True, **{"from": place})
        for place in range(3)
    ]

    assert [[one["id"] for one in plan["planned"]] for plan in plans] == [
        [],
        *([one] for one in others),
    ]
    assert [plan["following"] for plan in plans] == [1, 2, None]


async def test_a_document_is_not_kept_for_what_is_erased_by_another_page(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_PAGE", 1)
    owner, store = await office.administration.tenant(lab), office.store
    sharing: Any = {"presentedForm": [document()]}
    ids = [
        (await registered(store, panel(value, **sharing), tenant=owner)).id  # type: ignore[arg-type]
        for value in ("R-1", "R-2")
    ]

    both = await office.run(operations.PLAN, tenant=lab, reports=ids)
    alone = await office.run(operations.PLAN, tenant=lab, reports=ids[:1])

    counts = [(each["documents"], each["documents_kept"]) for each in both["planned"]]
    assert counts == [(1, 0)]
    assert [each["documents_kept"] for each in alone["planned"]] == [1]


async def test_orders_are_resumed_behind_the_one_where_a_call_ended(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("R-1", "R-2"):
        report = await published(office, lab, value)
        await office.store.put_erasure(an_erasure(tenant=lab, type=report.type, id=report.id))
    first, second = [one.id for one in await office.store.erasures(unfinished=True)]

    done = await office.run(operations.RESUME, tenant=lab, after=second)
    assert (done["erased"], done["following"]) == ([], None)

    with monkeypatch.context() as patched:
        patched.setattr(operations, "MAX_AT_ONCE", 1)
        done = await office.run(operations.RESUME, tenant=lab)
    assert ([one["id"] for one in done["erased"]], done["following"]) == ([first], first)

    done = await office.run(operations.RESUME, tenant=lab, after=first)
    assert [one["id"] for one in done["erased"]] == [second]


async def test_all_holds_are_repeated(office: Office, lab: str) -> None:
    reports = [await published(office, lab, f"R-{number}") for number in range(3)]
    kept = [
        Hold(tenant=lab, type=one.type, id=one.id, since=5, operator="eva", reason="case 7")
        for one in reports
    ]

    await office.run(operations.REPEAT, tenant=lab, holds=[asdict(one) for one in kept])

    listed = await office.run(holds.LIST, tenant=lab)
    assert sorted(one["id"] for one in listed) == sorted(one.id for one in reports)
