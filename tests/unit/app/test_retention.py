"""Which resources a round of retention erases, whose, and what it records."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from fhirpub.app.retention import RetentionRound
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import DAY_MS
from fhirpub.storage.erasure.contract import Hold
from fhirpub.storage.leases import Leases
from tests.bodies import register_body
from tests.unit.app.laboratory import POLICY, Lab
from tests.unit.interactions.erasure.registered import NOW, OTHER_TENANT, TENANT, registered

DRAFTS = "DiagnosticReport?status=preliminary after 1 days"


async def test_a_round_erases_what_a_policy_names_in_each_tenant(lab: Lab) -> None:
    mine = await registered(lab.store, register_body("R-1"))
    theirs = await registered(lab.store, register_body("R-1"), tenant=OTHER_TENANT)
    lab.now += 11 * DAY_MS

    assert await lab.round() == {POLICY: 2}
    assert not await lab.is_there(mine.id)
    assert not await lab.is_there(theirs.id, OTHER_TENANT)


async def test_what_is_younger_stays(lab: Lab) -> None:
    kept = await registered(lab.store, register_body("R-1"))
    lab.now += 9 * DAY_MS

    assert await lab.round() == {}
    assert await lab.is_there(kept.id)


async def test_a_disabled_tenant_is_left_out(lab: Lab) -> None:
    kept = await registered(lab.store, register_body("R-1"))
    await lab.store.change_tenant(TENANT.id, disabled=True)
    lab.now += 11 * DAY_MS

    assert await lab.round() == {}
    assert await lab.is_there(kept.id)


async def test_without_leave_to_erase_a_round_counts(lab: Lab) -> None:
    kept = await registered(lab.store, register_body("R-1"))
    lab.now += 11 * DAY_MS

    with capture_logs() as lines:
        counts = await lab.round(erase=False)

    (line,) = [one for one in lines if "policy" in one]
    assert counts == {POLICY: 1}
    assert (line["event"], line["resources"]) == ("retention would erase", 1)
    assert await lab.is_there(kept.id)
    assert lab.trail.lines == []


async def test_a_round_logs_each_policy_also_without_resources(lab: Lab) -> None:
    with capture_logs() as lines:
        await lab.round(policies=[POLICY, DRAFTS])

    found = [(one["event"], one["policy"], one["resources"]) for one in lines if "policy" in one]
    assert found == [("retention finished", POLICY, 0), ("retention finished", DRAFTS, 0)]


async def test_an_erasure_is_recorded_before_and_after_it_in_the_chain_of_its_tenant(
    lab: Lab,
) -> None:
    version = await registered(lab.store, register_body("R-1"), tenant=OTHER_TENANT)
    lab.now += 11 * DAY_MS

    await lab.round()

    assert [tenant for tenant, _ in lab.trail.lines] == [OTHER_TENANT.id] * 2
    begun, done = (line for _, line in lab.trail.lines)
    assert b'"status":102' in begun
    assert b'"status":200' in done
    for line in (begun, done):
        assert b'"action":"erase"' in line
        assert f'DiagnosticReport/{version.id}"'.encode() in line


async def test_a_resource_on_hold_stays_and_its_refusal_is_recorded(lab: Lab) -> None:
    kept = await registered(lab.store, register_body("R-1"))
    await lab.store.put_hold(
        Hold(
            tenant=TENANT.id,
            type=kept.type,
            id=kept.id,
            since=NOW,
            operator="ana",
            reason="lawsuit",
        )
    )
    lab.now += 11 * DAY_MS

    assert await lab.round() == {}
    assert await lab.is_there(kept.id)
    assert b'"status":400' in lab.trail.lines[-1][1]


async def test_a_round_ends_when_another_process_leads(lab: Lab) -> None:
    for value in ("R-1", "R-2"):
        await registered(lab.store, register_body(value))
    lab.now += 11 * DAY_MS
    services = lab.services()
    other = Leases(lab.store, owner="other", seconds=60.0, clock=services.clock)
    await other.take(["retention"])

    with pytest.raises(StoreUnavailable):
        await RetentionRound(services).make()

    assert len(lab.trail.lines) == 2


async def test_the_rate_of_erasures_is_bounded(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    await registered(lab.store, register_body("R-1"))
    lab.now += 11 * DAY_MS
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr("fhirpub.app.retention.asyncio.sleep", pause)
    await lab.round(erasures_per_minute=120)

    assert pauses.count(0.5) == 1  # others are those of a busy store
