"""Searches are answered from an index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import (
    LAST_UPDATED,
    Criterion,
    Order,
    TimeMatch,
    TokenMatch,
    encode,
)
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.search.pipeline import plan_of
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.members import a_result, results
from fhirpub.testing.samples import new_member_id
from fhirpub.testing.store_contract import (
    LAB,
    a_version,
    add_all,
    all_pages,
    found_by,
    has,
    match,
    new_id,
    query,
    text,
    token,
    wanting,
)
from tests.storage.mongodb.helpers import COMMANDS, Database

ID, MEMBER = new_id(), new_member_id()
LARGE = b"x" * 50_000
AHEAD = 190
"""The server reads 4 MB ahead, 82 as large as this, maybe once more to choose a plan."""
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

    stages = stages_of(database, replace(wanted, after=after))

    assert stages["IXSCAN"] == {index}
    assert "COLLSCAN" not in stages
    assert ("FETCH" not in stages) == covered


@pytest.mark.parametrize(
    ("criteria", "indexes"),
    [
        ([has("code", token("a"))], {schema.BY_SEARCH_VALUE}),
        ([has("code", token("a"), token("b", "s"))], {schema.BY_SEARCH_VALUE}),
        ([has("date", TimeMatch(from_=1, until=9))], {schema.BY_SEARCH_VALUE}),
        ([has("date", TimeMatch(after=9), TimeMatch(from_=1))], {schema.BY_SEARCH_VALUE}),
        ([has("name", text("ash"))], {schema.BY_SEARCH_VALUE}),
        ([has("name", text("a"), text("b", "x"))], {schema.BY_SEARCH_VALUE}),
        ([has("name", text("\U0010ffff"))], {schema.BY_SEARCH_VALUE}),
        ([has("name", text("a"), negated=True)], {"version_by_time"}),
        (
            [has("subject", TokenMatch("P", "x"), TokenMatch("P", "", ID))],
            {schema.BY_SEARCH_VALUE, "version_key"},
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

    stages = stages_of(database, wanting(*criteria))

    assert stages["IXSCAN"] == indexes
    assert "COLLSCAN" not in stages


@pytest.mark.parametrize("wanted", [query(), query(match("s")), query(match("s"), after=(1, ID))])
async def test_lists_of_everything_are_not_sorted(
    database: Database, store: Store, wanted: SearchQuery
) -> None:
    stages = stages_of(database, wanted)

    assert "SORT" not in stages


@pytest.mark.parametrize(
    ("wanted", "indexes"),
    [
        ({}, {schema.BY_MEMBER_TYPE}),
        ({"after": (10**13, ID)}, {schema.BY_MEMBER_TYPE}),
        ({"order": (Order("code"),)}, {schema.BY_MEMBER_TYPE}),
        ({"every_version": True}, {schema.BY_MEMBER_TYPE}),
        ({"ids": frozenset([MEMBER, ID])}, {schema.BY_MEMBER}),
        ({"criteria": (has("code", token("a")),)}, {schema.BY_MEMBER_VALUE}),
        ({"criteria": (has("code", token("a"), token("b", "s")),)}, {schema.BY_MEMBER_VALUE}),
        ({"criteria": (has("date", TimeMatch(from_=9)),)}, {schema.BY_MEMBER_VALUE}),
        ({"criteria": (has("name", text("ash", "x")),)}, {schema.BY_MEMBER_VALUE}),
        ({"criteria": (has("name", text("ash"), negated=True),)}, {schema.BY_MEMBER_TYPE}),
        ({"criteria": (has("code", token("a"), negated=True),)}, {schema.BY_MEMBER_TYPE}),
        ({"criteria": (has("code", token(None, "s")),)}, {schema.BY_MEMBER_TYPE}),
        ({"criteria": (has("subject", token("", "P")),)}, {schema.BY_MEMBER_TYPE}),
        ({"criteria": (has(LAST_UPDATED, TimeMatch(from_=1)),)}, {schema.BY_MEMBER_TYPE}),
        (
            {"criteria": (has("subject", TokenMatch("P", "x"), TokenMatch("P", "", MEMBER)),)},
            {schema.BY_MEMBER_VALUE, schema.BY_MEMBER},
        ),
    ],
)
async def test_members_are_found_through_an_index(
    database: Database, store: Store, wanted: dict[str, Any], indexes: set[str]
) -> None:
    await _add_reports(store, 20)

    for part in parts_for_members(results(**wanted)):
        explained = explain(database, part)
        stages = stages_of_plan(explained)
        assert stages["IXSCAN"] == indexes
        assert "COLLSCAN" not in stages
        lookups = [stage for stage in explained["stages"] if "$lookup" in stage]
        assert not any(stage["collectionScans"] for stage in lookups)


async def test_only_texts_that_begin_so_are_looked_at(database: Database, store: Store) -> None:
    names = [f"{letter}{number}" for letter in "aby" for number in range(20)]
    await add_all(store, [found_by(("name", name, "x")) for name in names])
    members = [a_result(search=encode([("name", name, "x")])) for name in names]
    await add_all(store, [a_version(members=(member,)) for member in members])
    criterion = has("name", text("b1", "x"))  # 1 and 10 to 19

    alone = explain_search(database, wanting(criterion))
    of_members = [
        explain(database, one) for one in parts_for_members(results(criteria=(criterion,)))
    ]

    for explained in (alone, *of_members):
        cursor = explained["stages"][0]["$cursor"]["executionStats"]
        assert (cursor["totalKeysExamined"], cursor["totalDocsExamined"]) == (11, 11)


NEWEST = [
    [],
    [has("code", token("a"))],
    [has("code", token("a", "s"), token("b"))],
    [has("code", token("a")), has("status", token("final"))],
    [has("code", token("a")), has("date", TimeMatch(from_=1))],
]


@pytest.mark.parametrize("criteria", NEWEST)
@pytest.mark.parametrize("after", [None, (1_150, ID)])
async def test_only_the_newest_of_many_members_are_looked_at(
    database: Database, store: Store, criteria: list[Criterion], after: tuple[int, str] | None
) -> None:
    await _add_reports(store, 300)
    wanted = results(criteria=tuple(criteria), count_up_to=0, limit=4, after=after)

    with looked_at(database) as numbers:
        page = await store.search(LAB, wanted)

    assert len(page.versions) == 4
    assert sum(numbers) <= AHEAD


@pytest.mark.parametrize("criteria", NEWEST[1:])
@pytest.mark.parametrize("after", [None, (1_150, ID)])
async def test_only_the_newest_of_many_candidates_are_looked_at(
    database: Database, store: Store, criteria: list[Criterion], after: tuple[int, str] | None
) -> None:
    code, status = ("code", "a", "s"), ("status", "final", "")
    for start in range(0, 300, 20):
        some = range(start, start + 20)
        await add_all(
            store,
            [
                found_by(code, status, ("date", 10, 20), updated=1_000 + number, body=LARGE)
                for number in some
            ],
        )

    with looked_at(database) as numbers:
        page = await store.search(
            LAB, replace(wanting(*criteria), count_up_to=0, limit=3, after=after)
        )

    assert len(page.versions) == 3
    assert sum(numbers) <= AHEAD


def test_what_no_index_has_newest_first_is_sorted_by_what_is_needed() -> None:
    criteria = has("date", TimeMatch(from_=1)), has("code", token("a"), negated=True)

    assert plan_of(LAB, wanting(*criteria)).is_exact


async def test_a_page_that_ends_amid_one_moment_is_in_order(store: Store) -> None:
    versions = [found_by(("code", "a", "s"), updated=1_000 + n // 7) for n in range(40)]
    await add_all(store, versions)
    wanted = replace(wanting(has("code", token("a"))), limit=3)

    pages = await all_pages(store, wanted)

    in_order = sorted(versions, key=lambda one: (-one.updated, one.id))
    assert [found.id for page in pages for found in page.versions] == [one.id for one in in_order]
    assert {page.total for page in pages} == {40}


async def test_a_page_has_no_gap_if_its_newest_entries_are_updated_while_it_is_read(
    store: Store, database: Database
) -> None:
    versions = [found_by(("code", "a", "s"), updated=1_000 + n // 7) for n in range(40)]
    await add_all(store, versions)
    newest, next_ones = {"updated": 1_005}, [one for one in versions if one.updated == 1_004]
    no_code: dict[str, Any] = {"$set": {"search": []}}
    COMMANDS.then["aggregate"] = lambda: database[schema.VERSION].update_many(newest, no_code)

    page = await store.search(LAB, replace(wanting(has("code", token("a"))), limit=7))

    assert [one.id for one in page.versions] == sorted(one.id for one in next_ones)
    assert page.more


async def test_whether_a_member_is_the_newest_is_seen_from_an_index(
    database: Database, store: Store
) -> None:
    await _add_reports(store, 20)

    page, _total = parts_for_members(results(criteria=(has("code", token("a")),)))

    (later,) = [stage for stage in explain(database, page)["stages"] if "$lookup" in stage]
    assert later["indexesUsed"] == [schema.BY_MEMBER]
    assert later["totalDocsExamined"] == 0


async def test_a_query_without_members_asks_for_none(store: Store) -> None:
    for wanted in (results(has_members=False), results(ids=frozenset([ID]))):
        assert "members" not in repr(plan_of(LAB, wanted).pipeline)


@contextmanager
def looked_at(database: Database) -> Iterator[list[int]]:
    """Collect how many versions the server looks at for each search in the block."""
    database.command("profile", 2)
    numbers: list[int] = []
    yield numbers
    database.command("profile", 0)
    searches = database["system.profile"].find({"command.aggregate": schema.VERSION})
    numbers += [search["docsExamined"] for search in searches]


async def _add_reports(store: Store, count: int) -> None:
    """Add reports with two members each."""
    values = encode(
        [("code", "a", "s"), ("status", "final", ""), ("date", 10, 20), ("subject", "", "P")]
    )
    await add_all(
        store,
        [
            a_version(
                members=tuple(a_result(search=values, updated=1_000 + n) for _ in range(2)),
                updated=1_000 + n,
                body=LARGE,
            )
            for n in range(count)
        ],
    )


def parts_for_members(wanted: SearchQuery) -> list[list[dict[str, Any]]]:
    """Return the parts of a search for the page and the total that look for members."""
    pipeline = plan_of(LAB, wanted).pipeline
    page, total = [stage["$unionWith"]["pipeline"] for stage in pipeline if "$unionWith" in stage]
    (count,) = [stage["$unionWith"]["pipeline"] for stage in total if "$unionWith" in stage]
    return [page, count]


def stages_of(database: Database, wanted: SearchQuery) -> dict[str, set[str]]:
    """Return the stages of the plan that finds the candidates, with the indexes they use."""
    return stages_of_plan(explain_search(database, wanted))


def explain_search(database: Database, wanted: SearchQuery) -> dict[str, Any]:
    """Return what the server does for a search."""
    plan = plan_of(LAB, wanted)
    return explain(database, plan.pipeline, plan.index)


def explain(
    database: Database, pipeline: list[dict[str, Any]], hint: str | None = None
) -> dict[str, Any]:
    """Return what the server does for a pipeline."""
    command = {"aggregate": schema.VERSION, "pipeline": pipeline, "cursor": {}}
    command |= {"hint": hint} if hint else {}
    return database.command({"explain": command, "verbosity": "executionStats"})


def stages_of_plan(explained: dict[str, Any]) -> dict[str, set[str]]:
    """Return the stages of a plan, with the indexes they use."""
    stages: dict[str, set[str]] = {}
    waiting = [explained["stages"][0]["$cursor"]["queryPlanner"]["winningPlan"]]
    while waiting:
        stage = waiting.pop()
        stages.setdefault(stage["stage"], set()).add(stage.get("indexName", ""))
        waiting += [stage["inputStage"]] if "inputStage" in stage else stage.get("inputStages", [])
    return stages
