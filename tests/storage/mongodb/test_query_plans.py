"""Searches are answered from an index."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import LAST_UPDATED, Criterion, TimeMatch, TokenMatch
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.search import page_and_total
from fhirpub.storage.store import Store
from fhirpub.testing.store_contract import (
    LAB,
    a_version,
    add_all,
    found_by,
    has,
    match,
    new_id,
    query,
    token,
    wanting,
)
from tests.storage.mongodb.helpers import (
    Database,
)

ID = new_id()
MIXED = (TokenMatch("s", None), TokenMatch(None, "v"))


@pytest.mark.parametrize(
    ("wanted", "index", "covered"),
    [
        (query(), "version_by_time", True),
        (query(ids=[ID]), "version_key", False),
        (query(match("s"), ids=[ID]), "version_key", False),
        (query(match("s")), "version_by_system", True),
        (query(match("s") + match("t")), "version_by_system", True),
        (query(match(None, "v")), "version_by_value", True),
        (query(match("s", "v")), "version_by_value", True),
        (query(match("s", "v") + match("t", "w")), "version_by_value", False),
        (query(match("s"), match(None, "v")), "version_by_value", True),
        (query(MIXED), "version_by_time", False),
    ],
)
@pytest.mark.parametrize("after", [None, (1, ID)])
async def test_searches_go_through_an_index(
    database: Database,
    store: Store,
    wanted: SearchQuery,
    index: str,
    covered: object,
    after: tuple[int, str] | None,
) -> None:
    await add_all(store, [a_version(system="s", value="v") for _ in range(3)])
    pipeline, hint = page_and_total(LAB, replace(wanted, after=after))

    stages = stages_of(database, pipeline, hint)

    assert stages["IXSCAN"] == {index}
    assert "COLLSCAN" not in stages
    assert ("FETCH" not in stages) == covered


@pytest.mark.parametrize(
    ("criteria", "indexes"),
    [
        ([has("code", token("a"))], {"version_by_search_value"}),
        ([has("code", token("a"), token("b", "s"))], {"version_by_search_value"}),
        ([has("date", TimeMatch(from_=1, until=9))], {"version_by_search_value"}),
        ([has("date", TimeMatch(after=9), TimeMatch(from_=1))], {"version_by_search_value"}),
        (
            [has("subject", TokenMatch("P", "x"), TokenMatch("P", "", ID))],
            {"version_by_search_value", "version_key"},
        ),
        ([has("code", token(None, "s"))], {"version_by_time"}),
        ([has("code", token("a"), negated=True)], {"version_by_time"}),
        ([has(LAST_UPDATED, TimeMatch(from_=1))], {"version_by_time"}),
    ],
)
async def test_criteria_are_answered_from_an_index(
    database: Database, store: Store, criteria: list[Criterion], indexes: set[str]
) -> None:
    # As many as are needed for a deterministic choice of the server.
    own = [found_by(("code", "a", "s"), ("subject", "", "P")) for _ in range(40)]
    await add_all(store, [*own, found_by(("subject", "x", "P")), replace(own[0], id=ID)])

    stages = stages_of(database, *page_and_total(LAB, wanting(*criteria)))

    assert stages["IXSCAN"] == indexes
    assert "COLLSCAN" not in stages


@pytest.mark.parametrize("wanted", [query(), query(match("s")), query(match("s"), after=(1, ID))])
async def test_lists_of_everything_are_not_sorted(
    database: Database, store: Store, wanted: SearchQuery
) -> None:
    stages = stages_of(database, *page_and_total(LAB, wanted))

    assert "SORT" not in stages


def stages_of(
    database: Database, pipeline: list[dict[str, Any]], hint: str | None
) -> dict[str, set[str]]:
    """Return the stages of the plan that finds the candidates, with the indexes they use."""
    command = {"aggregate": schema.VERSION, "pipeline": pipeline, "cursor": {}}
    command |= {"hint": hint} if hint else {}
    explained = database.command({"explain": command})
    stages: dict[str, set[str]] = {}
    waiting = [explained["stages"][0]["$cursor"]["queryPlanner"]["winningPlan"]]
    while waiting:
        stage = waiting.pop()
        stages.setdefault(stage["stage"], set()).add(stage.get("indexName", ""))
        waiting += [stage["inputStage"]] if "inputStage" in stage else stage.get("inputStages", [])
    return stages
