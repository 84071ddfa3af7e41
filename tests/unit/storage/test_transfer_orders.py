"""Orders, holds and limits in a copy, and the rules that its keys follow from."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage import transfer_orders
from fhirpub.storage.client_activity_contract import AssertionUse, UsedAssertion
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure import contract
from fhirpub.storage.erasure.contract import Erasure, Hold
from fhirpub.storage.erasure.tombstones import is_emptied
from fhirpub.storage.quota_contract import QuotaOverride
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.transfer_orders import copy_erasures, copy_quotas, copy_uses, rules_of_keys
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.erasure.content import a_tombstone, an_erasure
from fhirpub.testing.samples import LAB, OTHER, REPORT, a_version, successor

DAY, MINUTE = "tenant_bytes_per_day", "tenant_requests_per_minute"
OF_TWO = '{"rule":"that of two stores"}'


@pytest.fixture
async def source(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(tmp_path / "source.db", deadline_seconds=10)
    await store.start()
    for number, tenant in enumerate((LAB, OTHER)):
        await store.put_tenant(replace(Tenant.new("Lab", created=number), id=tenant))
    yield store
    await store.stop()


@pytest.fixture
async def target(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(tmp_path / "target.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


async def order_with_tombstone(
    source: SqliteStore, target: SqliteStore, *versions: Version
) -> Erasure:
    """Put an order of which the target has the tombstone and still all versions."""
    for version in (*versions, a_tombstone(versions[-1])):
        await target.add(LAB, version)
    number = versions[-1].version + 1
    order = an_erasure(id=versions[0].id, version=number, finished=5)
    await source.put_erasure(order)
    return order


async def is_left(store: SqliteStore, version: Version) -> bool:
    found = await store.version(LAB, version.id, version.version)
    return found is not None and not is_emptied(found)


def a_hold(**changes: object) -> Hold:
    hold = Hold(tenant=LAB, type=REPORT, id="r", since=1, operator="eve", reason="case 3")
    return replace(hold, **changes)  # type: ignore[arg-type]


# Erasures


async def test_all_versions_that_a_copy_still_has_are_erased(
    source: SqliteStore, target: SqliteStore
) -> None:
    first = a_version()
    versions = [first, successor(first), successor(successor(first))]
    order = await order_with_tombstone(source, target, *versions)

    await copy_erasures(source, target)

    assert [await is_left(target, version) for version in versions] == [False] * 3
    assert await target.erasures() == [order]


@pytest.mark.parametrize("step", ["erase_versions", "erase_documents", "put_hold"])
async def test_an_order_is_not_finished_in_a_copy_that_was_interrupted(
    source: SqliteStore, target: SqliteStore, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    await order_with_tombstone(source, target, a_version())
    await source.put_hold(a_hold())

    async def interrupted(*_: object) -> None:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(target, step, interrupted)
        with pytest.raises(StoreUnavailable):
            await copy_erasures(source, target)

    (order,) = await target.erasures(unfinished=True)
    assert (order.version, order.finished) == (2, None)
    await copy_erasures(source, target)
    assert await target.erasures(unfinished=True) == []


async def test_an_order_without_its_tombstone_waits_for_the_next_run(
    source: SqliteStore, target: SqliteStore
) -> None:
    version = a_version()
    await target.add(LAB, version)
    order = an_erasure(id=version.id, version=2, finished=5, allows_reuse=True)
    await source.put_erasure(order)

    await copy_erasures(source, target)

    assert await target.erasures() == [replace(order, version=0, finished=None)]
    assert await is_left(target, version)


async def test_an_order_that_waited_is_finished_by_the_next_run(
    source: SqliteStore, target: SqliteStore
) -> None:
    version = a_version()
    order = an_erasure(id=version.id, version=2, finished=5)
    await source.put_erasure(order)
    await copy_erasures(source, target)
    await order_with_tombstone(source, target, version)

    await copy_erasures(source, target)

    assert order in await target.erasures()
    assert not await is_left(target, version)


async def test_the_tombstone_of_another_tenant_is_not_that_of_an_order(
    source: SqliteStore, target: SqliteStore
) -> None:
    version = a_version()
    await target.add(OTHER, version)
    await target.add(OTHER, a_tombstone(version))
    order = an_erasure(id=version.id, version=2, finished=5)
    await source.put_erasure(order)

    await copy_erasures(source, target)

    assert await target.erasures() == [replace(order, version=0, finished=None)]
    kept = await target.version(OTHER, version.id, 1)
    assert kept == version


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
async def test_orders_are_copied_page_by_page_across_tenants(
    source: SqliteStore, target: SqliteStore, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(contract, "_PAGE", 2)
    for number in range(count):
        await source.put_erasure(an_erasure(tenant=(LAB, OTHER)[number % 2], id=str(number)))

    await copy_erasures(source, target)

    copied = await target.erasures()
    assert len(copied) == count
    assert copied == await source.erasures()


async def test_a_page_of_orders_has_a_hundred(
    source: SqliteStore, target: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    erasures = source.erasures

    async def counted(*, after: tuple[str, str], limit: int) -> object:
        limits.append(limit)
        return await erasures(after=after, limit=limit)

    monkeypatch.setattr(source, "erasures", counted)
    await source.put_erasure(an_erasure())

    await copy_erasures(source, target)

    assert set(limits) == {100}


async def test_what_was_named_by_erased_versions_alone_is_deleted_in_the_copy(
    source: SqliteStore, target: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []
    erase_documents = target.erase_documents

    async def noted(tenant: str, names: tuple[str, ...]) -> int:
        asked.append((tenant, names))
        return await erase_documents(tenant, names)

    monkeypatch.setattr(target, "erase_documents", noted)

    await copy_erasures(source, target)

    assert asked == [(LAB, ()), (OTHER, ())]


async def test_the_holds_of_all_tenants_are_copied(
    source: SqliteStore, target: SqliteStore
) -> None:
    ours = [a_hold(), a_hold(id="s", since=2)]
    theirs = [a_hold(tenant=OTHER, reason="case 4")]
    for hold in (*ours, *theirs):
        await source.put_hold(hold)

    await copy_erasures(source, target)

    assert (await target.holds(LAB), await target.holds(OTHER)) == (ours, theirs)


async def test_a_hold_that_only_the_target_has_stays(
    source: SqliteStore, target: SqliteStore
) -> None:
    await target.put_hold(a_hold(id="own"))
    await source.put_hold(a_hold())

    await copy_erasures(source, target)

    assert {hold.id for hold in await target.holds(LAB)} == {"own", "r"}


# Limits


async def test_limits_that_the_target_does_not_have_are_copied(
    source: SqliteStore, target: SqliteStore
) -> None:
    ours = [QuotaOverride(LAB, DAY, 0), QuotaOverride(LAB, MINUTE, 5)]
    await source.put_quota_overrides(ours)

    assert await copy_quotas(source, target) == []

    assert sorted(await target.quota_overrides(), key=lambda each: each.quota) == ours


async def test_a_limit_that_the_target_has_otherwise_stays_and_is_named(
    source: SqliteStore, target: SqliteStore
) -> None:
    await source.put_quota_overrides([QuotaOverride(LAB, DAY, 5), QuotaOverride(OTHER, DAY, 6)])
    await target.put_quota_overrides([QuotaOverride(LAB, DAY, 7), QuotaOverride(LAB, MINUTE, 8)])

    assert await copy_quotas(source, target) == [f"{DAY} of {LAB}"]

    found = {(each.owner, each.quota): each.limit for each in await target.quota_overrides()}
    assert found == {(LAB, DAY): 7, (LAB, MINUTE): 8, (OTHER, DAY): 6}


async def test_a_limit_that_both_have_is_not_named(
    source: SqliteStore, target: SqliteStore
) -> None:
    same = [QuotaOverride(LAB, DAY, 5)]
    await source.put_quota_overrides(same)
    await target.put_quota_overrides(same)

    assert await copy_quotas(source, target) == []

    assert await target.quota_overrides() == same


async def test_without_a_new_limit_none_is_written(
    source: SqliteStore, target: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_overrides: object) -> None:
        raise AssertionError("there is nothing to write")

    monkeypatch.setattr(target, "put_quota_overrides", refuse)

    assert await copy_quotas(source, target) == []


# The rules that keys follow from


@pytest.mark.parametrize(
    ("ours", "theirs", "kept"),
    [
        ({"identifier of Media": "m"}, {}, {"identifier of Media": "m"}),
        ({}, {"identifier of Media": "m"}, {"identifier of Media": "m"}),
        (
            {"identifier of Media": "m"},
            {"identifier of Media": "m", "identifier of Specimen": "s"},
            {"identifier of Media": "m", "identifier of Specimen": "s"},
        ),
        (
            {"identifier of Media": "m", "identifier of Specimen": "s"},
            {"identifier of Media": "n"},
            {"identifier of Media": OF_TWO, "identifier of Specimen": "s"},
        ),
        ({"DiagnosticReport": "a", "an identifier of Media": "b"}, {"Observation": "o"}, {}),
    ],
)
def test_rules_of_keys_stay_where_both_stores_have_the_same(
    ours: dict[str, str], theirs: dict[str, str], kept: dict[str, str]
) -> None:
    assert json.loads(rules_of_keys(json.dumps(ours), json.dumps(theirs))) == kept


@pytest.mark.parametrize("text", ["", "old", "[]", '"identifier of Media"', "1", "null"])
def test_rules_of_a_release_that_had_none_of_keys_are_none(text: str) -> None:
    rules = json.dumps({"identifier of Media": "m"})

    for one, other in ((text, rules), (rules, text)):
        assert json.loads(rules_of_keys(one, other)) == {"identifier of Media": "m"}
    assert rules_of_keys(text, text) == "{}"


# What clients did


async def test_an_assertion_that_the_source_has_accepted_is_refused_by_a_copy(
    source: SqliteStore, target: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_orders, "_PAGE", 2)
    used = [UsedAssertion(owner, jti, 9) for owner in ("a", "b") for jti in ("1", "2", "3")]
    for one in used:
        await source.use_assertion(one, now=1, most=10)
    own = UsedAssertion("a", "0", 9)
    await target.use_assertion(own, now=1, most=10)

    for _ in range(2):
        await copy_uses(source, target)

    assert await target.used_assertions() == [own, *used]
    assert await target.use_assertion(used[-1], now=1, most=10) is AssertionUse.REPEATED


async def test_the_latest_use_of_a_client_is_copied(
    source: SqliteStore, target: SqliteStore
) -> None:
    await source.put_client_uses({"a": 5, "b": 6})
    await target.put_client_uses({"b": 9})

    await copy_uses(source, target)

    assert dict(await target.client_uses()) == {"a": 5, "b": 9}
