"""Of times without an end, which many versions have, only the newest versions are looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.criteria import Criterion, TimeMatch
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.search import pages
from fhirpub.storage.mongodb.search.pipeline import count_plan
from fhirpub.storage.store import Store
from fhirpub.testing.store_contract import LAB, add_all, found_by, has, token, wanting
from tests.storage.mongodb.helpers import COMMANDS

SINCE = has("date", TimeMatch(after=5))


@pytest.mark.parametrize(
    ("count", "index"),
    [(pages._MANY, schema.BY_TIME), (pages._MANY - 1, schema.BY_SEARCH_VALUE)],
)
async def test_the_index_by_time_finds_the_newest_of_many(
    store: Store, count: int, index: str
) -> None:
    versions = [found_by(("date", 10, 20), updated=1_000 + n // 3) for n in range(count)]
    await add_all(store, versions)
    in_order = sorted(versions, key=lambda one: (-one.updated, one.id))

    with COMMANDS.recorded() as sent:
        page = await store.search(LAB, replace(wanting(SINCE), limit=10))

    hints = [command["hint"] for command in sent if command["command"] == "aggregate"]
    assert hints == [schema.BY_SEARCH_VALUE, index]
    assert [one.id for one in page.versions] == [one.id for one in in_order[:10]]
    assert page.total == count


@pytest.mark.parametrize(
    "criteria",
    [
        [has("date", TimeMatch(from_=1, until=9))],
        [has("code", token("a"))],
        [SINCE, has("code", token("a"))],
        [has("date", TimeMatch(after=5), negated=True)],
    ],
)
def test_nothing_is_counted_where_an_index_has_the_newest_or_few_match(
    criteria: list[Criterion],
) -> None:
    assert count_plan(LAB, wanting(*criteria), most=10) is None
