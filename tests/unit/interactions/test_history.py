"""The history of one resource, over a real store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.errors import NoSuchResource
from fhirpub.interactions import history as history_module
from fhirpub.interactions.context import Context
from fhirpub.interactions.history import listing_of
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB
from tests.unit.interactions.histories import (
    BASE,
    OTHER,
    body_of,
    context_of,
    first_version,
    later,
    links,
    numbers,
    of_one,
    versions_in,
)


async def test_an_entry_has_what_made_its_version(store: SqliteStore, context: Context) -> None:
    first = await versions_in(store, 2)

    bundle = (await of_one(context, first)).bundle(context)

    address = f"DiagnosticReport/{first.id}"
    assert (bundle["resourceType"], bundle["type"], bundle["total"]) == ("Bundle", "history", 2)
    assert bundle["link"] == [{"relation": "self", "url": f"{BASE}/{address}/_history"}]
    newest, oldest = bundle["entry"]
    assert newest == {
        "fullUrl": f"{BASE}/{address}",
        "resource": {"resourceType": "DiagnosticReport", "meta": {"versionId": "2"}},
        "request": {"method": "PATCH", "url": address},
        "response": {
            "status": "204",
            "etag": 'W/"2"',
            "lastModified": "2026-01-02T00:00:00.000Z",
        },
    }
    assert oldest["request"] == {"method": "POST", "url": "DiagnosticReport"}
    assert oldest["response"]["status"] == "201"


async def test_a_revision_was_made_by_its_operation(store: SqliteStore, context: Context) -> None:
    first = first_version()
    await store.add(LAB, first)
    await store.add(LAB, replace(later(first, 2), digest=b"d"))

    entry = (await of_one(context, first)).bundle(context)["entry"][0]

    assert entry["request"] == {
        "method": "POST",
        "url": f"DiagnosticReport/{first.id}/$revise",
    }
    assert entry["response"]["status"] == "200"


def test_a_member_was_put_with_what_it_came_with(context: Context) -> None:
    member_id = "34926f96-0f76-8bf8-8d32-a6b9ec2f8936"
    member = replace(later(first_version(), 2), id=member_id, digest=b"d")

    (entry,) = listing_of([member], [], None).bundle(context)["entry"]

    assert entry["request"] == {"method": "PUT", "url": f"DiagnosticReport/{member_id}"}
    assert entry["response"]["status"] == "200"


def test_a_bundle_without_versions_has_no_entries_and_no_total(context: Context) -> None:
    link = [{"relation": "self", "url": BASE}]

    assert listing_of([], link, None).bundle(context) == {
        "resourceType": "Bundle",
        "type": "history",
        "link": link,
    }
    assert listing_of([], link, 0).bundle(context)["total"] == 0


@pytest.mark.parametrize(
    ("given", "expected", "more"),
    [
        ({}, [5, 4, 3, 2, 1], False),
        ({"_count": "5"}, [5, 4, 3, 2, 1], False),
        ({"_count": "4"}, [5, 4, 3, 2], True),
        ({"_count": "0"}, [], False),
        ({"_below": "3"}, [2, 1], False),
        ({"_below": "1"}, [], False),
        ({"_below": "6"}, [5, 4, 3, 2, 1], False),
        ({"_below": "99"}, [5, 4, 3, 2, 1], False),
        ({"_below": "4", "_count": "1"}, [3], True),
        ({"_since": "2026-01-03"}, [5, 4, 3], False),
        ({"_since": "2026-01-03T00:00:00.001Z"}, [5, 4], False),
        ({"_since": "2026-01-03", "_count": "2"}, [5, 4], True),
        ({"_since": "2026-01-03", "_count": "3"}, [5, 4, 3], False),
        ({"_at": "2026-01-03"}, [3], False),
        ({"_at": "eq2026-01-03"}, [3], False),
        ({"_at": "2026-01-03T12:00:00Z"}, [3], False),
        ({"_at": "2026-01-02T23:59:59.999Z"}, [2], False),
        ({"_at": "2026-01"}, [5, 4, 3, 2, 1], False),
        ({"_at": "2025"}, [], False),
        ({"_at": "2027"}, [5], False),
        ({"_at": "2026-01-04", "_since": "2026-01-04"}, [4], False),
        ({"_at": "2026-01-03", "_since": "2026-01-04"}, [], False),
        ({"_at": "2026-01-03", "_below": "4"}, [3], False),
        ({"_at": "2026-01-03", "_below": "3"}, [], False),
    ],
)
async def test_a_page_has_the_versions_of_its_time(
    store: SqliteStore,
    context: Context,
    given: dict[str, str],
    expected: list[int],
    *,
    more: bool,
) -> None:
    first = await versions_in(store, 5)

    listing = await of_one(context, first, **given)

    assert numbers(listing) == expected
    assert ("next" in links(listing, context)) is more


async def test_many_versions_that_are_passed_over_are_read_in_batches(
    store: SqliteStore, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "_LOOKUP_BATCH_SIZE", 2)
    first = await versions_in(store, 9)

    listing = await of_one(context, first, _at="2026-01-02", _count="1")

    assert numbers(listing) == [2]


async def test_a_page_ends_where_it_is_large_and_more_may_follow(
    store: SqliteStore, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "MAX_PAGE_BYTES", len(body_of(1)))
    first = await versions_in(store, 4)

    listing = await of_one(context, first, _count="2")

    assert numbers(listing) == [4, 3]
    assert "next" in links(listing, context)


async def test_the_next_page_keeps_the_parameters_and_begins_below_the_last(
    store: SqliteStore, context: Context
) -> None:
    first = await versions_in(store, 5)

    listing = await of_one(context, first, _count="2", _since="2026-01-01", _below="5")

    address = f"{BASE}/DiagnosticReport/{first.id}/_history"
    assert links(listing, context) == {
        "self": f"{address}?_count=2&_since=2026-01-01&_below=5",
        "next": f"{address}?_count=2&_since=2026-01-01&_below=3",
    }


@pytest.mark.parametrize(
    ("given", "total"),
    [({}, 3), ({"_count": "0"}, 3), ({"_below": "2"}, 3), ({"_since": "2026"}, None)],
)
async def test_the_total_is_that_of_all_versions_unless_a_time_is_asked_for(
    store: SqliteStore, context: Context, given: dict[str, str], total: int | None
) -> None:
    first = await versions_in(store, 3)

    bundle = (await of_one(context, first, **given)).bundle(context)

    assert bundle.get("total") == total


async def test_a_time_at_which_a_version_was_current_has_no_total(
    store: SqliteStore, context: Context
) -> None:
    bundle = (await of_one(context, await versions_in(store, 1), _at="2026")).bundle(context)

    assert "total" not in bundle


async def test_a_report_with_one_version_has_a_total_of_one(
    store: SqliteStore, context: Context
) -> None:
    first = await versions_in(store, 1)

    assert (await of_one(context, first)).bundle(context)["total"] == 1


async def test_the_report_of_another_tenant_has_no_history(
    store: SqliteStore, context: Context
) -> None:
    first = await versions_in(store, 1, tenant=OTHER)

    with pytest.raises(NoSuchResource):
        await of_one(context, first)


async def test_a_page_has_as_many_versions_as_the_settings_allow(store: SqliteStore) -> None:
    first = await versions_in(store, 5)
    context = context_of(store, page_size=2, page_size_max=3)

    assert numbers(await of_one(context, first)) == [5, 4]
    assert numbers(await of_one(context, first, _count="4")) == [5, 4, 3]
