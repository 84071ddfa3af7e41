"""Which resources a round of retention erases, whose, and what it records."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.app import retention
from fhirpub.app.retention import RetentionRound
from fhirpub.errors import StoreUnavailable
from fhirpub.interactions.erasure.erase import Begun, Eraser
from fhirpub.interactions.erasure.retention import expired
from fhirpub.runtime.clock import DAY_MS
from fhirpub.storage.leases import Leases
from tests.bodies import register_body
from tests.unit.app.laboratory import POLICY, Lab
from tests.unit.interactions.erasure.registered import OTHER_TENANT, TENANT, registered

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


async def test_a_disabled_tenant_does_not_keep_those_behind_it(lab: Lab) -> None:
    first, second = await lab.store.tenants()
    version = await registered(lab.store, register_body("R-1"), tenant=second)
    await lab.store.change_tenant(first.id, disabled=True)
    lab.now += 11 * DAY_MS

    assert await lab.round() == {POLICY: 1}
    assert not await lab.is_there(version.id, second)


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
        assert b'"user":"retention"' in line


async def test_a_resource_on_hold_stays_and_its_refusal_is_recorded(lab: Lab) -> None:
    kept = await registered(lab.store, register_body("R-1"))
    await lab.hold(kept.type, kept.id)
    lab.now += 11 * DAY_MS

    with capture_logs() as lines:
        assert await lab.round() == {}

    assert await lab.is_there(kept.id)
    assert b'"status":400' in lab.trail.lines[-1][1]
    (line,) = [one for one in lines if one["event"] == "not erased"]
    assert line["resource"] == f"DiagnosticReport/{kept.id}"
    assert "hold" in line["reason"]


@pytest.mark.parametrize("erase", [True, False])
async def test_a_round_ends_when_another_process_leads(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, *, erase: bool
) -> None:
    for value in ("R-1", "R-2", "R-3"):
        await registered(lab.store, register_body(value))
    lab.now += 11 * DAY_MS
    made = RetentionRound(lab.services(erase=erase))
    found = list[str]()

    async def overtaken(*given: Any, **named: Any) -> AsyncIterator[str]:
        async for one in expired(*given, **named):
            found.append(one)
            if len(found) == 2:
                lab.now += 600_000
                other = Leases(lab.store, owner="other", seconds=60.0, clock=lab.time)
                await other.take(["retention"])
            yield one

    monkeypatch.setattr(retention, "expired", overtaken)
    with pytest.raises(StoreUnavailable):
        await made.make()

    assert len(found) == 2
    assert len(lab.trail.lines) == (2 if erase else 0)


async def test_a_long_round_renews_its_lease(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("R-1", "R-2"):
        await registered(lab.store, register_body(value))
    lab.now += 11 * DAY_MS

    async def slow(*given: Any, **named: Any) -> AsyncIterator[str]:
        async for one in expired(*given, **named):
            lab.now += 590_000
            yield one

    monkeypatch.setattr(retention, "expired", slow)
    assert await lab.round(erase=False) == {POLICY: 2}

    other = Leases(lab.store, owner="other", seconds=60.0, clock=lab.time)
    lab.now += 599_999
    assert await other.take(["retention"]) == set()
    lab.now += 1
    assert await other.take(["retention"]) == {"retention"}


async def test_a_lease_is_renewed_before_it_ends(lab: Lab) -> None:
    made = RetentionRound(lab.services())
    assert await made._leads()
    lab.now += 250_000
    await made._keep_lead()

    other = Leases(lab.store, owner="other", seconds=60.0, clock=lab.time)
    lab.now += 599_999
    assert await other.take(["retention"]) == set()


async def test_a_tenant_whose_round_fails_does_not_keep_the_others(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await registered(lab.store, register_body("R-1"))
    theirs = await registered(lab.store, register_body("R-1"), tenant=OTHER_TENANT)
    lab.now += 11 * DAY_MS
    begin = Eraser.begin

    async def failing(eraser: Eraser, *given: Any, **named: Any) -> Begun:
        if eraser.tenant.id == TENANT.id:
            raise ValueError("Ashdown")
        return await begin(eraser, *given, **named)

    monkeypatch.setattr(Eraser, "begin", failing)
    with capture_logs() as lines:
        assert await lab.round() == {POLICY: 1}

    assert await lab.is_there(kept.id)
    assert not await lab.is_there(theirs.id, OTHER_TENANT)
    (line,) = [one for one in lines if one["log_level"] == "error"]
    assert (line["tenant"], line["error"]) == (TENANT.id, "ValueError")
    assert "Ashdown" not in str(line)


@pytest.mark.parametrize(("rate", "seconds"), [(120, 0.5), (1, 60.0), (0, 60.0)])
async def test_the_rate_of_erasures_is_bounded(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, rate: int, seconds: float
) -> None:
    await registered(lab.store, register_body("R-1"))
    lab.now += 11 * DAY_MS
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(retention, "asyncio", SimpleNamespace(sleep=pause))
    await lab.round(erasures_per_minute=rate)

    assert pauses == [seconds]


async def test_what_was_erased_is_finished_some_at_a_time_and_in_the_end(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished: list[int] = []
    finish = Eraser.finish

    async def noted(eraser: Eraser, begun: Sequence[Begun]) -> None:
        finished.append(len(begun))
        await finish(eraser, begun)

    monkeypatch.setattr(Eraser, "finish", noted)
    monkeypatch.setattr(retention, "_AT_ONCE", 2)
    for number in range(3):
        await registered(lab.store, register_body(f"R-{number}"))
    lab.now += 11 * DAY_MS

    assert await lab.round() == {POLICY: 3}

    assert [count for count in finished if count] == [2, 1]
    assert list(await lab.store.erasures(unfinished=True)) == []
    assert len(await lab.store.erasures()) == 3


class Rounds(RetentionRound):
    """Notes its rounds; the first ones fail."""

    def __init__(self, services: Any, *problems: Exception) -> None:
        super().__init__(services)
        self.count = 0
        self.problems = [*problems]

    async def make(self) -> Counter[str]:
        self.count += 1
        if self.problems:
            raise self.problems.pop(0)
        return Counter()


async def paused(rounds: RetentionRound, monkeypatch: pytest.MonkeyPatch, most: int) -> list[Any]:
    """Run some rounds without the pauses between them; return how long these are."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == most:
            raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        # Its own name alone: a service may run in another thread of this process.
        patched.setattr(retention, "asyncio", SimpleNamespace(sleep=pause))
        with pytest.raises(asyncio.CancelledError):
            await rounds.run()
    return pauses


async def test_a_round_is_made_each_day_also_after_one_that_failed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Rounds(lab.services(), StoreUnavailable("away"), ValueError("Ashdown"))

    with capture_logs() as lines:
        pauses = await paused(rounds, monkeypatch, 4)

    assert (pauses, rounds.count) == ([600.0, 86_400.0, 86_400.0, 86_400.0], 3)
    found = [one for one in lines if one["event"] == "retention interrupted"]
    assert [(one["log_level"], one.get("reason")) for one in found] == [
        ("warning", "away"),
        ("error", None),
    ]
    assert "Ashdown" not in str(found)


async def test_of_several_processes_one_makes_the_round_of_a_day(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Leases(lab.store, owner="other", seconds=60.0, clock=lab.time)
    await other.take(["retention"])
    rounds = Rounds(lab.services())

    await paused(rounds, monkeypatch, 2)
    assert rounds.count == 0

    await other.release(["retention"])
    await paused(rounds, monkeypatch, 2)
    assert rounds.count == 1
    lab.now += 599_999  # another process may have been started some minutes later
    assert await other.take(["retention"]) == set()
    lab.now += 1  # one that is started now looks in ten minutes
    assert await other.take(["retention"]) == {"retention"}


@pytest.mark.parametrize(
    ("passed", "pause"), [(3_600_000, 82_800.0), (90_000_000, 0.0), (-5_000, 86_400.0)]
)
async def test_a_round_begins_a_day_after_the_one_before_began(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, passed: int, pause: float
) -> None:
    class Long(Rounds):
        async def make(self) -> Counter[str]:
            lab.now += passed
            return await super().make()

    assert await paused(Long(lab.services()), monkeypatch, 2) == [600.0, pause]


async def test_without_policies_there_is_no_round(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Rounds(lab.services(policies=[]))
    monkeypatch.setattr(retention, "_FIRST_SECONDS", 0)

    await asyncio.wait_for(rounds.run(), 30)

    assert rounds.count == 0
