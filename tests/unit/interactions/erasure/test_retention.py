"""Which resources a policy names: by their type, their status, and the time of the last change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.retention import Policy, RetentionConfig, policies_of
from fhirpub.errors import ConfigurationError
from fhirpub.interactions.context import Context
from fhirpub.interactions.erasure import retention
from fhirpub.interactions.erasure.retention import OPERATOR, check_policies, expired
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import a_version
from tests.unit.interactions.erasure.registered import NOW, OTHER_TENANT, TENANT, context_of

DAY = 86_400_000
STATUS = "http://hl7.org/fhir/diagnostic-report-status"


def policy(text: str) -> Policy:
    (found,) = policies_of(RetentionConfig(policies=[text]))
    return found


AFTER_TEN_DAYS = policy("DiagnosticReport after 10 days")


@pytest.fixture
def context(store: SqliteStore) -> Context:
    return context_of(store)


@pytest.fixture
def _short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_PAGE", 5)


async def stored(
    store: SqliteStore,
    *,
    days: float = 20,
    status: str = "final",
    tenant: Tenant = TENANT,
    **changes: Any,
) -> Version:
    at = NOW - round(days * DAY)
    search = encode([("status", status, STATUS)])
    version = a_version(created=at, updated=at, search=search, **changes)
    await store.add(tenant.id, version)
    return version


async def named(
    context: Context, asked: Policy = AFTER_TEN_DAYS, *, tenant: Tenant = TENANT
) -> list[str]:
    return [id_ async for id_ in expired(asked, tenant=tenant, context=context)]


def refusal(context: Context, *texts: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        check_policies(map(policy, texts), context)
    return str(refused.value)


async def test_nothing_is_named_in_an_empty_store(context: Context) -> None:
    assert await named(context) == []


async def test_what_changed_last_before_the_days_is_named(
    store: SqliteStore, context: Context
) -> None:
    await stored(store, days=9)
    old = await stored(store, days=11)

    assert await named(context) == [old.id]


async def test_the_days_are_over_to_the_millisecond(store: SqliteStore, context: Context) -> None:
    version = await stored(store, days=10)

    before = replace(context, clock=lambda: NOW)
    after = replace(context, clock=lambda: NOW + 1)
    assert await named(before) == []
    assert await named(after) == [version.id]


async def test_the_days_begin_with_the_newest_version(
    store: SqliteStore, context: Context
) -> None:
    first = await stored(store, days=20)
    await store.add(TENANT.id, replace(first, version=2, updated=NOW - DAY))

    assert await named(context) == []


async def test_those_that_changed_first_are_named_first(
    store: SqliteStore, context: Context
) -> None:
    versions = {days: await stored(store, days=days) for days in (12, 30, 20)}

    assert await named(context) == [versions[days].id for days in (30, 20, 12)]


@pytest.mark.parametrize("count", [5, 6, 11])
@pytest.mark.usefixtures("_short_pages")
async def test_more_than_a_page_has_are_named_once_each(
    store: SqliteStore, context: Context, count: int
) -> None:
    ids = [(await stored(store, days=20 + number)).id for number in range(count)]

    assert await named(context) == ids[::-1]


@pytest.mark.usefixtures("_short_pages")
async def test_more_of_one_millisecond_than_a_page_has_are_named(
    store: SqliteStore, context: Context
) -> None:
    ids = {(await stored(store)).id for _ in range(6)}

    found = await named(context)

    assert (len(found), {*found}) == (6, ids)


async def test_only_those_of_the_statuses_are_named(store: SqliteStore, context: Context) -> None:
    wrong = await stored(store, status="entered-in-error")
    cancelled = await stored(store, days=19, status="cancelled")
    await stored(store, status="final")
    asked = policy("DiagnosticReport?status=entered-in-error,cancelled after 10 days")

    assert await named(context, asked) == [wrong.id, cancelled.id]


async def test_without_a_status_those_of_all_are_named(
    store: SqliteStore, context: Context
) -> None:
    found = {(await stored(store, status=one)).id for one in ("final", "cancelled")}

    assert {*(await named(context))} == found


async def test_resources_of_another_type_are_not_named(
    store: SqliteStore, context: Context
) -> None:
    await stored(store, type="Observation")

    assert await named(context) == []


async def test_resources_of_another_tenant_are_not_named(
    store: SqliteStore, context: Context
) -> None:
    await stored(store)
    theirs = await stored(store, tenant=OTHER_TENANT)

    assert await named(context, tenant=OTHER_TENANT) == [theirs.id]


def test_policies_that_can_be_kept_are_accepted(context: Context) -> None:
    texts = (
        "DiagnosticReport after 3650 days",
        "DiagnosticReport?status=entered-in-error after 90 days",
        "DiagnosticReport?status=final,amended after 90 days",
    )

    check_policies(map(policy, texts), context)


def test_a_type_that_is_not_served_is_refused(context: Context) -> None:
    assert refusal(context, "Flag after 10 days") == (
        "[retention] policies: 'Flag after 10 days': Flag is no enabled type of resources"
    )


def test_a_type_that_only_comes_with_others_is_refused(context: Context) -> None:
    assert "Observation" in context.searched
    assert refusal(context, "Observation after 10 days").endswith(
        "Observation is no enabled type of resources"
    )


def test_statuses_that_a_type_never_has_are_refused(context: Context) -> None:
    text = "DiagnosticReport?status=active,final,draft after 10 days"

    assert refusal(context, text) == (
        f"[retention] policies: {text!r}: DiagnosticReport is never active, draft"
    )


def test_a_status_of_updates_only_is_one(context: Context) -> None:
    served = context.types["DiagnosticReport"]
    (status, *_more) = sorted(served.update_statuses - served.create_statuses)

    check_policies([policy(f"DiagnosticReport?status={status} after 1 days")], context)


def test_a_status_of_registrations_only_is_one(context: Context) -> None:
    served = context.types["DiagnosticReport"]
    (status, *_more) = sorted(served.create_statuses - served.update_statuses)

    check_policies([policy(f"DiagnosticReport?status={status} after 1 days")], context)


def test_a_type_without_a_search_by_status_is_refused(context: Context) -> None:
    indexer = context.searched["DiagnosticReport"]
    names = {name: one for name, one in indexer.parameters.items() if name != "status"}
    without = type("Without", (), {"parameters": names})()
    changed = replace(context, searched={"DiagnosticReport": without})
    text = "DiagnosticReport?status=final after 10 days"

    assert refusal(changed, text) == (
        f"[retention] policies: {text!r}: DiagnosticReport cannot be searched by status"
    )
    check_policies([AFTER_TEN_DAYS], changed)


def test_all_policies_that_are_wrong_are_named(context: Context) -> None:
    said = refusal(
        context,
        "Flag after 10 days",
        "DiagnosticReport after 10 days",
        "DiagnosticReport?status=draft after 10 days",
    )

    assert [line.split(": ")[2] for line in said.splitlines()] == [
        "Flag is no enabled type of resources",
        "DiagnosticReport is never draft",
    ]


def test_the_audit_trail_has_a_name_for_who_erases() -> None:
    assert OPERATOR == "retention"
