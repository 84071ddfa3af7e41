"""What a search that takes too much work may leave out."""

from __future__ import annotations

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.patients.people import Ward
from tests.unit.interactions.searching import Given, costs

COUNTED = "all matches are counted: leave it out"


@pytest.mark.parametrize(
    ("given", "further"),
    [
        ((), []),
        ((("_total", "none"),), []),
        ((("_total", "accurate"),), [("_total", f"{COUNTED}, or send none")]),
        ((("_count", "0"),), [("_count", COUNTED)]),
        ((("_summary", "count"),), [("_summary", COUNTED)]),
        ((("_count", "0"), ("_total", "accurate")), [("_count", COUNTED)]),
        (
            (("_sort", "date"),),
            [("_sort", "all matches are sorted: send fewer names, or leave it out")],
        ),
        ((("_sort", "-_lastUpdated"),), []),
        ((("status", "final"),), []),
        (
            (("status", "final,amended"), ("code", "a,b,c")),
            [("code", "send fewer values")],
        ),
    ],
)
async def test_what_costs_most_is_named(
    store: SqliteStore, given: tuple[Given, ...], further: list[tuple[str, str]]
) -> None:
    (place, rule), *others = await costs(Ward(store), *given)

    assert place == ""
    assert rule.startswith("the search takes more work than one search may: add a condition")
    assert others == further
