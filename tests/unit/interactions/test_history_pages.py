"""The pages of the history of a type, and the parameters and cursors of histories."""

from __future__ import annotations

from datetime import timedelta, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.errors import InvalidSearch
from fhirpub.interactions.context import Context
from fhirpub.interactions.cursors import seal
from fhirpub.interactions.history import place_after, read_parameters
from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.histories import (
    DAY,
    OTHER,
    START,
    TENANT,
    asked,
    context_of,
    links,
    numbers,
    of_all,
    versions_in,
)

HOUR = 3_600_000


# The history of a type


async def test_a_history_of_a_type_begins_at_the_very_moment(
    store: SqliteStore, context: Context
) -> None:
    await versions_in(store, 3)

    assert numbers(await of_all(context, _since="2026-01-03")) == [3]
    assert numbers(await of_all(context, _since="2026-01-03T00:00:00.001Z")) == []


async def test_a_history_of_a_type_without_entries_has_its_total(
    store: SqliteStore, context: Context
) -> None:
    await versions_in(store, 3)

    bundle = (await of_all(context, _count="0")).bundle(context)

    assert bundle["total"] == 3
    assert [link["relation"] for link in bundle["link"]] == ["self"]


async def test_a_history_of_a_type_has_as_many_versions_as_the_settings_allow(
    store: SqliteStore,
) -> None:
    await versions_in(store, 5)
    context = context_of(store, page_size=2, page_size_max=3)

    assert numbers(await of_all(context)) == [5, 4]
    assert numbers(await of_all(context, _count="4")) == [5, 4, 3]


async def test_pages_of_a_type_go_on_to_the_end(store: SqliteStore, context: Context) -> None:
    await versions_in(store, 5)
    found: list[int] = []
    cursor = ""
    for _page in range(3):
        listing = await of_all(context, _count="2", _cursor=cursor)
        found += numbers(listing)
        cursor = links(listing, context).get("next", "").partition("_cursor=")[2]

    assert found == [5, 4, 3, 2, 1]
    assert cursor == ""


async def test_a_link_of_a_type_serves_this_type(store: SqliteStore, context: Context) -> None:
    await versions_in(store, 2)
    listing = await of_all(context, _count="1")
    cursor = links(listing, context)["next"].partition("_cursor=")[2]

    assert place_after(cursor, TENANT, "history:DiagnosticReport", []) is not None
    with pytest.raises(InvalidSearch):
        place_after(cursor, TENANT, "history:Observation", [])


# Parameters


def test_times_without_an_offset_are_read_in_the_zone_of_the_settings(context: Context) -> None:
    given = asked(_since="2026-01-01T00:00:00", _at="2026-01-01")
    zone = timezone(timedelta(hours=-3))
    local = SimpleNamespace(**{**vars(context), "default_zone": zone})

    found = read_parameters(given, ("_since", "_at"), cast("Context", local))

    assert found.since == START + 3 * HOUR
    assert found.at == (START + 3 * HOUR, START + DAY + 3 * HOUR)


def test_a_count_above_the_limit_is_the_limit() -> None:
    context = context_of(None, page_size=2, page_size_max=3)

    limits = [read_parameters(asked(_count=n), (), context).limit for n in ("", "0", "3", "4")]

    assert limits == [2, 0, 3, 3]


def test_the_usual_count_is_no_more_than_the_limit() -> None:
    context = context_of(None, page_size=9, page_size_max=3)

    assert read_parameters(asked(), (), context).limit == 3


def test_only_named_parameters_are_repeated_in_links(context: Context) -> None:
    found = read_parameters(asked(_count="3", _cursor="x"), ("_count",), context)

    assert found.given == (("_count", "3"),)
    assert found.cursor == "x"


# Cursors


def test_a_cursor_leads_to_the_place_that_it_was_made_for() -> None:
    cursor = seal((START, "id", 2), TENANT, "history:X", [("_since", "2026")])

    assert place_after(cursor, TENANT, "history:X", [("_since", "2026")]) == (START, "id", 2)


@pytest.mark.parametrize(
    ("tenant", "kind", "since"),
    [
        (OTHER, "history:X", "2026"),
        (TENANT, "history:Y", "2026"),
        (TENANT, "X", "2026"),
        (TENANT, "history:X", "2025"),
    ],
)
def test_a_cursor_serves_one_tenant_one_type_and_one_time(
    tenant: Any, kind: str, since: str
) -> None:
    cursor = seal((START, "id", 2), TENANT, "history:X", [("_since", "2026")])

    with pytest.raises(InvalidSearch):
        place_after(cursor, tenant, kind, [("_since", since)])
