"""Orders to erase are carried out one by one, and finished together."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration.erasure.work import MAX_AT_ONCE, Work
from fhirpub.errors import NoSuchRecord, StoreUnavailable
from fhirpub.interactions.erasure.extent import NotErasable
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.testing.contracts.erasure.content import an_erasure
from tests.unit.administration.erasure.test_operations import published
from tests.unit.administration.office import Office


async def work_on(
    office: Office, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Work, list[list[Any]]]:
    """Return what works on a tenant, and what is finished by it."""
    work = await Work.on(office.administration, tenant)
    finished: list[list[Any]] = []

    async def finish(begun: list[Any]) -> None:
        finished.append([*begun])

    monkeypatch.setattr(type(work.eraser), "finish", lambda _self, begun: finish(begun))
    return work, finished


def orders(office: Office, tenant: str, *ids: str) -> list[Erasure]:
    return [an_erasure(tenant=tenant, id=one, ordered=office.clock()) for one in ids]


async def test_work_is_on_the_tenant_that_is_named(office: Office, lab: str, other: str) -> None:
    found = [(await Work.on(office.administration, name)).tenant.id for name in (lab, "Other")]

    assert found == [lab, other]


async def test_there_is_no_work_on_an_unknown_tenant(office: Office) -> None:
    with pytest.raises(NoSuchRecord):
        await Work.on(office.administration, "unknown")


async def test_a_plan_has_what_would_be_erased(office: Office, lab: str) -> None:
    reports = [await published(office, lab, value) for value in ("R-1", "R-2")]
    work = await Work.on(office.administration, lab)
    ids = [report.id for report in reports]

    planned = await work.plan(ids, besides=ids, leaves_out_holds=False)

    assert [one.id for one in planned] == ids


@pytest.mark.parametrize("leaves_out", [True, False])
async def test_what_is_not_erasable_is_left_out_or_refused(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch, *, leaves_out: bool
) -> None:
    work = await Work.on(office.administration, lab)

    async def plan(_self: object, one: str, *, besides: list[str]) -> str:
        if one == "held":
            raise NotErasable("held")
        return f"{one} of {besides}"

    monkeypatch.setattr(type(work.eraser), "plan", plan)
    planning = work.plan(["a", "held", "b"], besides=["c"], leaves_out_holds=leaves_out)

    if leaves_out:
        assert [str(one) for one in await planning] == ["a of ['c']", "b of ['c']"]
    else:
        with pytest.raises(NotErasable):
            await planning


async def test_an_order_that_is_refused_stops_no_other(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, finished = await work_on(office, lab, monkeypatch)

    async def act(order: Erasure) -> Any:
        raise NotErasable(f"{order.id} is held")

    done = await work.carry_out(orders(office, lab, "a", "b"), act)

    assert done == {"erased": [], "refused": ["a is held", "b is held"]}
    assert finished == [[]]
    assert [(tenant, action) for tenant, action, _, _ in (await office.records())[-4:]] == [
        (lab, "erase")
    ] * 4


async def test_what_was_begun_is_finished_though_the_store_goes_away(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, finished = await work_on(office, lab, monkeypatch)

    async def act(order: Erasure) -> Any:
        if order.id == "b":
            raise StoreUnavailable("away")
        return order.id

    with pytest.raises(StoreUnavailable):
        await work.carry_out(orders(office, lab, "a", "b", "c"), act)

    assert finished == [["a"]]


def test_the_largest_number_of_orders_in_a_call_is_fifty() -> None:
    assert MAX_AT_ONCE == 50
