"""What others do at the same time, or have done above a tombstone, when an order is begun."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.erasure import erase
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.contract import ErasedStep
from fhirpub.storage.erasure.tombstones import is_erased, tombstone_of
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.testing.samples import a_version, successor
from tests.panels import panel, result
from tests.unit.interactions.erasure.erasers import begun, eraser, latest, order, orders
from tests.unit.interactions.erasure.registered import NOW, TENANT, context_of, registered


@pytest.fixture
async def report(store: SqliteStore) -> Version:
    return await registered(store, panel("R-1", result("a"), result("b")))


def above_tombstone(report: Version) -> Version:
    """Return a report as it is registered again, above a tombstone of version 2."""
    members = tuple(replace(one, version=3) for one in report.members)
    return replace(report, version=3, updated=NOW + 1, members=members)


async def test_what_was_registered_above_a_tombstone_is_erased_by_another_order(
    store: SqliteStore, report: Version
) -> None:
    await begun(store, report.id, allows_reuse=True)
    await store.add(TENANT.id, above_tombstone(report))

    erased = await begun(store, report.id, ordered=NOW - 5, reason="another case")

    assert erased.version == 4
    assert tombstone_of(await latest(store, report.id)).reason == "another case"


async def test_an_order_that_is_repeated_erases_nothing_above_its_tombstone(
    store: SqliteStore, report: Version
) -> None:
    await begun(store, report.id, allows_reuse=True)
    await store.add(TENANT.id, above_tombstone(report))

    await eraser(store).begin(order(report.id, ordered=NOW - 5), is_repeated=True)

    newest = await latest(store, report.id)
    assert (newest.version, newest.body) == (3, report.body)


async def test_an_order_of_the_moment_of_a_tombstone_erases_nothing_above_it(
    store: SqliteStore, report: Version
) -> None:
    await begun(store, report.id, allows_reuse=True)
    at = tombstone_of(await latest(store, report.id)).at
    await store.add(TENANT.id, above_tombstone(report))

    found = await eraser(store).resume(order(report.id, ordered=at))

    assert found.order.version == 2
    assert (await latest(store, report.id)).version == 3


async def test_a_tombstone_is_announced_once(store: SqliteStore, report: Version) -> None:
    announced: list[int] = []
    context = replace(context_of(store), added=lambda: announced.append(1))

    await eraser(store, context=context).begin(order(report.id))
    await eraser(store, context=context).begin(order(report.id))

    assert announced == [1]


class Overtaken:
    """A store where another version is added before each tombstone, so many times."""

    def __init__(self, store: SqliteStore, times: int) -> None:
        self._store = store
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def add(self, tenant: str, version: Version) -> bool:
        if self.times:
            self.times -= 1
            newest = await latest(self._store, version.id)
            assert await self._store.add(tenant, successor(newest, members=()))
        return await self._store.add(tenant, version)


async def test_a_version_that_comes_before_the_tombstone_is_erased_too(
    store: SqliteStore, report: Version
) -> None:
    overtaken = cast("Store", Overtaken(store, 2))

    erased = (await eraser(overtaken).begin(order(report.id))).erased

    assert (erased.version, erased.versions) == (4, 3)
    assert is_erased(await latest(store, report.id))


async def test_an_order_stays_open_if_others_are_always_first(
    store: SqliteStore, report: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase, "_RACES", 3)
    overtaken = Overtaken(store, 9)

    with pytest.raises(StoreUnavailable) as failed:
        await eraser(cast("Store", overtaken)).begin(order(report.id))

    assert failed.value.reason == "lost 3 races for the next version"
    assert overtaken.times == 6
    assert [(one.version, one.finished) for one in await orders(store)] == [(0, None)]


class Stepping:
    """A store that erases what a test says, in several steps."""

    def __init__(self, store: SqliteStore, *steps: ErasedStep) -> None:
        self._store = store
        self._steps = [*steps]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def erase_versions(self, tenant: str, tombstone: Version) -> ErasedStep:
        if self._steps:
            return self._steps.pop(0)
        return await self._store.erase_versions(tenant, tombstone)


async def test_what_several_steps_have_erased_is_added_up(
    store: SqliteStore, report: Version
) -> None:
    steps = (
        ErasedStep(versions=2, members=3, size=100),
        ErasedStep(versions=1, members=5, size=1),
    )
    seen: list[tuple[int, int, int]] = []

    erased = await eraser(
        cast(Store, Stepping(store, *steps)),
        on_progress=lambda one: seen.append((one.versions, one.members, one.bytes)),
    ).begin(order(report.id))

    assert seen[:2] == [(2, 3, 100), (3, 8, 101)]
    assert erased.erased.versions == 4  # and the one that is there
    assert erased.erased.members == 10


async def test_an_order_that_came_later_has_the_time_of_the_tombstone(
    store: SqliteStore, report: Version
) -> None:
    await begun(store, report.id)
    at = tombstone_of(await latest(store, report.id)).at

    again = await eraser(store).begin(order(report.id, ordered=at + 1_000))

    assert again.order.ordered == at
    assert [one.ordered for one in await orders(store)] == [at]


async def test_what_had_events_of_several_subjects_is_announced_for_each(
    store: SqliteStore,
) -> None:
    events: list[dict[str, Any]] = [
        {"id": f"e{one}", "type": one, "data": {}} for one in ("visit.made", "order.made")
    ]
    version = a_version(events=dumps(events))
    await store.add(TENANT.id, version)

    await begun(store, version.id)

    announced = loads_stored((await latest(store, version.id)).events)
    assert [one["type"] for one in announced] == ["order.erased", "visit.erased"]
    assert len({one["id"] for one in announced}) == 2
