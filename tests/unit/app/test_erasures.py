"""Orders to erase that were interrupted are completed, once they are old enough."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.app import erasures
from fhirpub.app.erasures import InterruptedErasures, eraser_of
from fhirpub.errors import StoreUnavailable
from fhirpub.interactions.erasure.erase import Begun, Eraser
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.storage.leases import Leases
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.erasure.content import an_erasure
from tests.bodies import register_body
from tests.unit.app.laboratory import Lab
from tests.unit.interactions.erasure.registered import NOW, OTHER_TENANT, TENANT, registered
from tests.waiting import until


@pytest.fixture
async def order(lab: Lab) -> Erasure:
    """An order that was begun and then interrupted."""
    version = await registered(lab.store, register_body("R-1"))
    order = an_erasure(tenant=TENANT.id, type=version.type, id=version.id, ordered=NOW)
    await eraser_of(lab.services(), TENANT).begin(order)
    return order


@pytest.mark.parametrize(("age", "count"), [(119_999, 0), (120_000, 1)])
async def test_an_interrupted_order_is_completed_once_it_is_old(
    lab: Lab, order: Erasure, age: int, count: int
) -> None:
    lab.now = NOW + age

    assert await InterruptedErasures(lab.services()).complete() == count
    unfinished = await lab.store.erasures(unfinished=True, after=("", ""), limit=9)
    assert len(unfinished) == 1 - count


async def test_a_completed_order_is_not_completed_again(lab: Lab, order: Erasure) -> None:
    interrupted = InterruptedErasures(lab.services())

    assert await interrupted.complete(young_ms=0) == 1
    assert await interrupted.complete(young_ms=0) == 0


async def interrupted(lab: Lab, identifier: str, tenant: Tenant = TENANT) -> Erasure:
    """Return an order that was recorded, and no more, for a resource of a tenant."""
    version = await registered(lab.store, register_body(identifier), tenant=tenant)
    order = an_erasure(tenant=tenant.id, type=version.type, id=version.id, ordered=NOW)
    await lab.store.put_erasure(order)
    return order


async def test_orders_are_completed_in_every_tenant_beyond_the_first_page(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasures, "_PAGE", 1)
    orders = [
        await interrupted(lab, value, tenant)
        for tenant in (TENANT, OTHER_TENANT)
        for value in ("R-1", "R-2")
    ]

    assert await InterruptedErasures(lab.services()).complete(young_ms=0) == 4
    for order, tenant in zip(orders, (TENANT, TENANT, OTHER_TENANT, OTHER_TENANT), strict=True):
        assert not await lab.is_there(order.id, tenant)


async def test_each_order_is_tried_once_in_a_round(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasures, "_PAGE", 2)
    orders = [await interrupted(lab, f"R-{number}") for number in range(5)]
    tried: list[str] = []

    async def noted(_eraser: Eraser, order: Erasure) -> Begun:
        tried.append(order.id)
        raise ValueError

    monkeypatch.setattr(Eraser, "resume", noted)

    assert await InterruptedErasures(lab.services()).complete(young_ms=0) == 0
    assert tried == sorted(one.id for one in orders)


async def test_a_young_order_does_not_keep_an_older_one_behind_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasures, "_PAGE", 1)
    first, second = sorted(
        [await interrupted(lab, "R-1"), await interrupted(lab, "R-2")], key=lambda one: one.id
    )
    await lab.store.put_erasure(replace(first, ordered=NOW + 1))
    lab.now = NOW + 120_000

    assert await InterruptedErasures(lab.services()).complete() == 1
    assert await lab.is_there(first.id)
    assert not await lab.is_there(second.id)


async def test_an_order_of_a_disabled_tenant_is_completed(lab: Lab, order: Erasure) -> None:
    await lab.store.change_tenant(TENANT.id, disabled=True)

    assert await InterruptedErasures(lab.services()).complete(young_ms=0) == 1
    assert not await lab.store.erasures(unfinished=True)


async def test_an_order_of_a_tenant_that_is_unknown_is_not_counted(
    lab: Lab, order: Erasure
) -> None:
    await lab.store.put_erasure(replace(order, tenant="gone"))

    assert await InterruptedErasures(lab.services()).complete(young_ms=0) == 1


async def test_an_order_that_is_refused_is_logged_with_its_resource_and_not_counted(
    lab: Lab,
) -> None:
    order = await interrupted(lab, "R-1")
    other = await interrupted(lab, "R-2")
    await lab.hold(order.type, order.id)

    with capture_logs() as lines:
        count = await InterruptedErasures(lab.services()).complete(young_ms=0)

    (line,) = [one for one in lines if one["event"] == "not erased"]
    assert (count, line["log_level"]) == (1, "warning")
    assert line["resource"] == f"DiagnosticReport/{order.id}"
    assert "hold" in line["reason"]
    assert await lab.is_there(order.id)
    assert not await lab.is_there(other.id)


async def test_an_order_that_fails_does_not_keep_those_behind_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, other = sorted(
        [await interrupted(lab, "R-1"), await interrupted(lab, "R-2")], key=lambda one: one.id
    )
    resume = Eraser.resume

    async def failing(eraser: Eraser, order: Erasure, **named: Any) -> Begun:
        if order.id == broken.id:
            raise ValueError("Ashdown")
        return await resume(eraser, order, **named)

    monkeypatch.setattr(Eraser, "resume", failing)
    with capture_logs() as lines:
        assert await InterruptedErasures(lab.services()).complete(young_ms=0) == 1

    assert not await lab.is_there(other.id)
    (line,) = [one for one in lines if one["log_level"] == "error"]
    assert (line["tenant"], line["id"], line["error"]) == (TENANT.id, broken.id, "ValueError")
    assert "Ashdown" not in str(line)


async def test_a_store_that_is_away_ends_a_round(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await interrupted(lab, "R-1")
    await interrupted(lab, "R-2")
    asked = list[str]()

    async def away(_eraser: Eraser, order: Erasure, **_named: Any) -> Begun:
        asked.append(order.id)
        raise StoreUnavailable("away")

    monkeypatch.setattr(Eraser, "resume", away)
    with pytest.raises(StoreUnavailable):
        await InterruptedErasures(lab.services()).complete(young_ms=0)

    assert len(asked) == 1


class Rounds(InterruptedErasures):
    """Notes its rounds; the first ones fail."""

    def __init__(self, services: Any, *problems: Exception) -> None:
        super().__init__(services)
        self.count = 0
        self.problems = [*problems]

    async def complete(self, *, young_ms: int = 0) -> int:
        self.count += 1
        if self.problems:
            raise self.problems.pop(0)
        return await super().complete(young_ms=young_ms)


@asynccontextmanager
async def running(rounds: InterruptedErasures) -> AsyncIterator[None]:
    task = asyncio.create_task(rounds.run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasures, "_PAUSE_SECONDS", 0.001)


@pytest.mark.usefixtures("short_pause")
async def test_rounds_go_on_after_one_that_failed_and_log_why(lab: Lab) -> None:
    rounds = Rounds(lab.services(), StoreUnavailable("away"), ValueError("Ashdown"))

    with capture_logs() as lines:
        async with running(rounds):
            await until(lambda: rounds.count > 2)

    found = [one for one in lines if one["event"] == "erasures not completed"]
    assert [(one["log_level"], one.get("reason")) for one in found] == [
        ("warning", "away"),
        ("error", None),
    ]
    assert "Ashdown" not in str(found)
    assert found[1]["error"] == "ValueError"


@pytest.mark.usefixtures("short_pause")
async def test_a_process_works_only_while_it_holds_the_lease(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Leases(lab.store, owner="other", seconds=60.0, clock=lab.time)
    await other.take(["erasure"])
    rounds = Rounds(lab.services())
    asked: list[Collection[str]] = []
    lease = lab.store.lease

    async def noted(names: Collection[str], **more: Any) -> frozenset[str]:
        asked.append(names)
        return await lease(names, **more)

    monkeypatch.setattr(lab.store, "lease", noted)
    async with running(rounds):
        await until(lambda: len(asked) > 2)
        assert rounds.count == 0

        lab.now += 60_001
        await until(lambda: rounds.count > 0)


async def test_no_round_begins_before_the_first_pause(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, pauses = Rounds(lab.services()), list[float]()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        raise asyncio.CancelledError

    # Its own name alone: a service may run in another thread of this process.
    monkeypatch.setattr(erasures, "asyncio", SimpleNamespace(sleep=pause))
    with pytest.raises(asyncio.CancelledError):
        await rounds.run()

    assert (pauses, rounds.count) == ([60.0], 0)
    other = Leases(lab.store, owner="other", seconds=60.0, clock=lab.time)
    assert await other.take(["erasure"]) == {"erasure"}
