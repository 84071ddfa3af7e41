"""What tenants and clients have used of their limits, of the period that it is now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.administration import clients
from fhirpub.administration.quota_usage import (
    Owner,
    Snapshot,
    states_of,
    states_of_tenant,
)
from fhirpub.config.quotas import QuotasConfig
from fhirpub.errors import NoSuchRecord
from fhirpub.runtime.clock import DAY_MS
from fhirpub.storage.quota_contract import QuotaOverride, QuotaUse
from fhirpub.testing.store_contract import a_version
from tests.unit.administration.office import Office

NOW = 1_795_000_000_000 // DAY_MS * DAY_MS + 3 * 60_000 + 7_000
SETTINGS = QuotasConfig(
    tenant_requests_per_minute=600, tenant_requests_at_a_time=5, client_bytes_per_day=1_000
)
TENANT = Owner("tenant", "t", "Lab")


def state(owner: Owner = TENANT, **changes: Any) -> dict[str, tuple[int, bool, int | None]]:
    given: dict[str, Any] = {"now": NOW, "overrides": {}, "uses": {}, "stored": {}}
    found = Snapshot(**given | changes).of(owner, SETTINGS)
    assert (found.kind, found.id, found.name) == owner
    return {one.limit_name: (one.limit, one.is_override, one.used) for one in found.quotas}


def test_without_uses_what_is_limited_is_unused() -> None:
    assert state() == {
        "requests_per_minute": (600, False, 0),
        "requests_at_a_time": (5, False, 0),
        "bytes_per_day": (0, False, None),
        "registrations_per_day": (0, False, None),
        "stored_bytes": (0, False, 0),
    }


@pytest.mark.parametrize("is_overridden", [False, True])
@pytest.mark.parametrize(
    ("limit", "begun"),
    [
        ("requests_per_minute", NOW - 7_000),
        ("requests_at_a_time", 0),
        ("bytes_per_day", NOW // DAY_MS * DAY_MS),
        ("registrations_per_day", NOW // DAY_MS * DAY_MS),
    ],
)
def test_uses_are_those_of_the_period_that_it_is(
    limit: str, begun: int, *, is_overridden: bool
) -> None:
    quota = f"tenant_{limit}"
    uses = {
        QuotaUse("t", quota, begun): 7,
        QuotaUse("t", quota, begun - 60_000): 50,
        QuotaUse("t", quota, begun + 1): 9,
        QuotaUse("other", quota, begun): 60,
    }
    overrides = {(owner, quota): 10 for owner in "tu"} if is_overridden else {}
    settings = QuotasConfig() if is_overridden else replace(QuotasConfig(), **{quota: 10})
    snapshot = Snapshot(now=NOW, overrides=overrides, uses=uses, stored={})

    ours, theirs = [snapshot.of(Owner("tenant", owner, ""), settings) for owner in "tu"]

    assert {one.limit_name: one.used for one in ours.quotas}[limit] == 7
    assert {one.limit_name: one.used for one in theirs.quotas}[limit] == 0


def test_an_override_is_named_as_one() -> None:
    overrides = {("t", "tenant_requests_per_minute"): 7, ("other", "tenant_bytes_per_day"): 8}

    found = state(overrides=overrides)

    assert found["requests_per_minute"] == (7, True, 0)
    assert found["bytes_per_day"] == (0, False, None)


def test_an_override_to_no_limit_is_not_counted() -> None:
    found = state(overrides={("t", "tenant_requests_per_minute"): 0})

    assert found["requests_per_minute"] == (0, True, None)


def test_what_a_tenant_stores_is_its_own_and_shown_without_a_limit() -> None:
    stored = {"t": 12, "other": 99}

    assert state(stored=stored)["stored_bytes"] == (0, False, 12)
    assert state(Owner("tenant", "u", ""), stored=stored)["stored_bytes"] == (0, False, 0)


async def test_the_state_of_a_tenant_comes_before_those_of_its_clients(
    office: Office, lab: str, other: str
) -> None:
    ids = [(await office.run(clients.ADD, tenant=lab, name=n))["client_id"] for n in ("a", "b")]
    await office.run(clients.ADD, tenant=other, name="c")

    found = await states_of_tenant(office.store, lab, SETTINGS, now=NOW)

    assert [(one.kind, one.id) for one in found][:1] == [("tenant", lab)]
    assert sorted((one.kind, one.id, one.name) for one in found[1:]) == sorted(
        ("client", id_, name) for id_, name in zip(ids, ("a", "b"), strict=True)
    )


async def test_an_unknown_tenant_has_no_state(office: Office) -> None:
    with pytest.raises(NoSuchRecord):
        await states_of_tenant(office.store, "unknown", SETTINGS, now=NOW)


@pytest.mark.parametrize("limit", [3, 0])
async def test_the_state_is_that_of_the_store(office: Office, lab: str, limit: int) -> None:
    await office.store.add(lab, a_version())
    quota = "tenant_requests_per_minute"
    await office.store.put_quota_overrides([QuotaOverride(lab, quota, limit)])

    (found,) = await states_of(office.store, [Owner("tenant", lab, "Lab")], SETTINGS, now=NOW)

    quotas = {one.limit_name: one for one in found.quotas}
    assert quotas["requests_per_minute"].limit == limit
    assert quotas["requests_per_minute"].is_override
    assert (quotas["stored_bytes"].used or 0) > 0


async def test_the_stored_bytes_of_each_of_several_tenants_are_shown(
    office: Office, lab: str, other: str
) -> None:
    versions = {lab: a_version(), other: a_version(body=b"x" * 999)}
    for tenant, version in versions.items():
        await office.store.add(tenant, version)

    found = await states_of(
        office.store, [Owner("tenant", one, "") for one in versions], SETTINGS, now=NOW
    )

    used = {one.id: {each.limit_name: each.used for each in one.quotas} for one in found}
    assert {one: used[one]["stored_bytes"] for one in versions} == {
        one: version.size for one, version in versions.items()
    }
