"""The history of all resources of a type, page by page."""

from __future__ import annotations

import pytest

from fhirpub.errors import InvalidSearch
from fhirpub.interactions.context import Context
from fhirpub.interactions.history import place_after
from fhirpub.problems import OperationProblem
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from tests.unit.interactions.histories import (
    BASE,
    OTHER,
    TENANT,
    links,
    numbers,
    of_all,
    versions_in,
)


async def test_the_history_of_a_type_has_the_versions_of_its_tenant(
    store: SqliteStore, context: Context
) -> None:
    await versions_in(store, 3)
    await versions_in(store, 2, tenant=OTHER)

    listing = await of_all(context)

    bundle = listing.bundle(context)
    assert numbers(listing) == [3, 2, 1]
    assert bundle["total"] == 3
    assert links(listing, context) == {"self": f"{BASE}/DiagnosticReport/_history"}


async def test_the_history_of_a_type_begins_at_a_time(
    store: SqliteStore, context: Context
) -> None:
    await versions_in(store, 3)

    listing = await of_all(context, _since="2026-01-02")

    assert numbers(listing) == [3, 2]
    assert listing.bundle(context)["total"] == 2


async def test_a_page_of_a_type_leads_to_the_next_with_its_parameters(
    store: SqliteStore, context: Context
) -> None:
    await versions_in(store, 5)
    listing = await of_all(context, _count="2", _since="2026-01-01")

    following = links(listing, context)["next"]
    address, _, cursor = following.partition("&_cursor=")
    assert numbers(listing) == [5, 4]
    assert address == f"{BASE}/DiagnosticReport/_history?_count=2&_since=2026-01-01"

    second = await of_all(context, _count="2", _since="2026-01-01", _cursor=cursor)
    assert numbers(second) == [3, 2]
    assert links(second, context)["self"] == following
    assert "&_cursor=" in links(second, context)["next"]
    assert links(second, context)["next"].count("_cursor") == 1


async def test_the_last_page_of_a_type_leads_nowhere(store: SqliteStore, context: Context) -> None:
    await versions_in(store, 2)

    listing = await of_all(context, _count="2")

    assert list(links(listing, context)) == ["self"]


@pytest.mark.parametrize(
    ("given", "tenant"),
    [({"_since": "2026-01-02"}, TENANT), ({}, OTHER)],
)
async def test_a_link_serves_one_tenant_and_one_time(
    store: SqliteStore, context: Context, given: dict[str, str], tenant: Tenant
) -> None:
    await versions_in(store, 3)
    listing = await of_all(context, _count="1")
    cursor = links(listing, context)["next"].partition("&_cursor=")[2]

    with pytest.raises(InvalidSearch) as refused:
        await of_all(context, tenant=tenant, _cursor=cursor, **given)

    (issue,) = refused.value.issues
    assert (issue.expression, issue.diagnostics) == ("_cursor", "is not a link of this history")
    assert issue.details == OperationProblem.PAGE_LINK_INVALID


async def test_the_history_of_a_type_has_no_time_at_which_versions_were_current(
    context: Context,
) -> None:
    with pytest.raises(InvalidSearch) as refused:
        await of_all(context, _at="2026")

    (issue,) = refused.value.issues
    assert (issue.expression, issue.diagnostics) == (
        "_at",
        "goes with the history of one resource",
    )
    assert issue.details == OperationProblem.PARAMETER_INVALID


def test_the_first_page_begins_behind_nothing() -> None:
    assert place_after("", TENANT, "history:X", ()) is None
