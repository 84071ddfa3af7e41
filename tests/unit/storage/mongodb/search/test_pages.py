"""What a page consists of: what is asked for in turn, what is read of it, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import MAX_SEARCH_SHARE, Page, SearchQuery
from fhirpub.storage.criteria import TimeMatch
from fhirpub.storage.mongodb.projections import listed_with
from fhirpub.storage.mongodb.search import pages
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.queries import has, token, wanting
from fhirpub.testing.samples import LAB, a_version
from tests.unit.storage.mongodb.answers import Found
from tests.unit.storage.mongodb.search.found import ONE_MOMENT, Versions, newest, places

_RANGE = has("date", TimeMatch(from_=5, until=9))
_OPEN = has("date", TimeMatch(from_=5))
_CODE = has("code", token("a"))


@pytest.fixture
def versions() -> Versions:
    return Versions()


async def test_a_page_has_what_is_found_in_its_order_and_its_total(versions: Versions) -> None:
    one, other = newest(2)
    versions.store(other, one)
    versions.answers = [places([one, other], total=2)]

    page = await versions.pages().search(LAB, wanting())

    assert page == Page((one, other), 2, more=False)
    assert versions.concerns == [ONE_MOMENT]


async def test_one_entry_more_than_the_limit_is_not_read_and_means_that_there_is_more(
    versions: Versions,
) -> None:
    found = newest(3)
    versions.store(*found)
    versions.answers = [places(found, total=7)]

    page = await versions.pages().search(LAB, wanting(limit=2))

    assert page == Page(tuple(found[:2]), 7, more=True)
    ((wanted, _shown, options),) = versions.read
    assert wanted["$or"] == [{"version": 1, "id": {"$in": [each.id for each in found[:2]]}}]
    assert options == {"hint": "version_key", "limit": -2, "batch_size": 2}


async def test_nothing_found_is_an_empty_page_without_a_read(versions: Versions) -> None:
    versions.answers = [[]]

    assert await versions.pages().search(LAB, wanting()) == Page((), 0, more=False)
    assert versions.read == []


async def test_what_was_erased_since_is_left_out(versions: Versions) -> None:
    one, other = newest(2)
    versions.store(one, other)
    versions.stored[0]["type"] = "!DiagnosticReport"
    versions.answers = [places([one, other], total=2)]

    page = await versions.pages().search(LAB, wanting())

    assert [each.id for each in page.versions] == [other.id]


async def test_a_page_whose_last_entry_was_erased_since_is_not_followed_by_an_empty_one(
    versions: Versions,
) -> None:
    one, other = newest(2)
    versions.store(one, other)
    versions.stored[1]["type"] = "!DiagnosticReport"
    versions.answers = [places([one, other], total=2)]

    page = await versions.pages().search(LAB, wanting(limit=2))

    assert ([each.id for each in page.versions], page.more) == ([one.id], False)


async def test_a_page_of_which_all_was_erased_since_is_searched_for_again(
    versions: Versions,
) -> None:
    gone, kept, last = newest(3)
    versions.store(gone, kept)
    versions.stored[0]["type"] = "!DiagnosticReport"
    versions.answers = [places([gone, kept, last], total=3), places([kept, last], total=2)]

    page = await versions.pages().search(LAB, wanting(limit=1))

    assert ([each.id for each in page.versions], page.total, page.more) == ([kept.id], 2, True)


async def test_what_was_erased_as_a_whole_with_nothing_behind_it_is_an_empty_page(
    versions: Versions,
) -> None:
    (gone,) = newest(1)
    versions.store(gone)
    versions.stored[0]["type"] = "!DiagnosticReport"
    versions.answers = [places([gone], total=1)]

    page = await versions.pages().search(LAB, wanting(limit=1))

    assert (page.versions, page.more) == ((), False)


async def test_a_total_is_left_out_if_it_is_more_than_is_to_be_counted(
    versions: Versions,
) -> None:
    (one,) = newest(1)
    versions.store(one)
    versions.answers = [places([one], total=4)]

    assert (await versions.pages().search(LAB, wanting(count_up_to=3))).total is None


async def test_a_page_ends_with_the_version_that_fills_it(
    versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_PAGE_BYTES", 2_000)
    found = [a_version(updated=9 - n, body=b"x" * 998) for n in range(3)]
    versions.store(*found)
    versions.answers = [places(found, total=3)]

    page = await versions.pages().search(LAB, wanting())

    assert [each.id for each in page.versions] == [each.id for each in found[:2]]
    assert page.more


async def test_what_is_not_in_the_first_batch_is_read_alone(versions: Versions) -> None:
    one, other = newest(2)
    versions.store(one)
    versions.answers = [places([one, other], total=2)]
    find = versions.find

    def then(wanted: Any, shown: Any, **options: Any) -> Found:
        found = find(wanted, shown, **options)
        versions.stored = []
        versions.store(other)
        return found

    versions.find = then  # type: ignore[method-assign]

    assert (await versions.pages().search(LAB, wanting())).versions == (one, other)
    assert versions.read[1][2] == {"hint": "version_key", "limit": 0, "batch_size": 0}
    assert versions.read[1][1] == versions.read[0][1] == listed_with(None)


async def test_a_version_that_is_missing_is_unavailable(versions: Versions) -> None:
    versions.answers = [places(newest(1), total=1)]

    with pytest.raises(StoreUnavailable) as failed:
        await versions.pages().search(LAB, wanting())

    assert failed.value.reason == "a version is missing"


async def test_one_version_is_read_whole_but_for_its_members(versions: Versions) -> None:
    version = a_version(audit=b"{}")
    versions.store(version)

    assert await versions.pages().read_alone(LAB, places([version])[0]) == version
    assert versions.read[0][1] == {"members": 0}


async def test_a_member_alone_is_read_in_the_version_that_brought_it(versions: Versions) -> None:
    member = a_result()
    carrier = a_version(members=(member,))
    versions.store(carrier)
    place = {**places([member])[0], "carrier": {"id": carrier.id, "version": 1}}

    assert await versions.pages().read_alone(LAB, place) == member


async def test_a_page_of_one_that_is_all_there_is_ends_the_search(versions: Versions) -> None:
    versions.store(*(found := newest(1)))
    versions.answers = [places(found, total=1)]

    page = await versions.pages().search(LAB, wanting(_CODE, limit=1))

    assert page == Page(tuple(found), 1, more=False)


@pytest.mark.parametrize(("count", "turns"), [(49, 0), (50, 1), (100, 2)])
async def test_the_loop_has_a_turn_after_each_fifty_versions_of_a_page(
    versions: Versions, monkeypatch: pytest.MonkeyPatch, count: int, turns: int
) -> None:
    versions.store(*(found := newest(count)))
    versions.answers = [places(found, total=count)]
    had = []

    async def turn() -> None:
        had.append(True)

    monkeypatch.setattr(pages, "yield_to_loop", turn)

    page = await versions.pages().search(LAB, wanting(limit=count))

    assert (len(page.versions), len(had)) == (count, turns)


async def _asked(versions: Versions, query: SearchQuery, seconds: float = 10) -> dict[str, Any]:
    versions.answers = [[]]
    await versions.pages(seconds).search(LAB, query)
    return versions.asked[0][1]


async def test_a_search_names_its_index_and_may_use_the_disk(versions: Versions) -> None:
    assert await _asked(versions, wanting()) == {"allowDiskUse": True, "hint": "version_by_time"}


@pytest.mark.parametrize(
    ("seconds", "milliseconds"), [(0.25, 250), (99, int(10 * MAX_SEARCH_SHARE * 1000)), (0, 1)]
)
async def test_the_server_gets_the_time_of_a_search_up_to_its_share(
    versions: Versions, seconds: float, milliseconds: int
) -> None:
    asked = await _asked(versions, wanting(max_seconds=seconds))

    assert asked["maxTimeMS"] == milliseconds


@pytest.mark.parametrize(
    ("changes", "asks"),
    [
        ({}, True),
        ({"count_up_to": 0}, False),
        ({"every_version": True}, False),
        ({"criteria": (has("code"),)}, False),
    ],
)
async def test_whether_something_was_registered_again_is_asked_where_first_versions_count(
    versions: Versions, changes: dict[str, Any], *, asks: bool
) -> None:
    versions.answers = [[]]

    await versions.pages().search(LAB, wanting(**{"criteria": (), **changes}))

    assert versions.reuse_asked == ([LAB] if asks else [])


async def test_entries_of_one_moment_at_the_end_are_put_in_order(versions: Versions) -> None:
    quick = [a_version(updated=9), a_version(updated=7), a_version(updated=7)]
    versions.store(*quick)
    in_order = places(quick[::2] + quick[1:2], total=3)
    versions.answers = [places(quick, total=3), in_order]

    page = await versions.pages().search(LAB, wanting(_CODE, limit=2))

    assert page.versions == (quick[0], quick[2])
    assert "'updated': {'$gte': 7}" in str(versions.asked[1][0])


async def test_a_page_that_became_too_short_is_looked_for_among_all(versions: Versions) -> None:
    quick = [a_version(updated=9), a_version(updated=7), a_version(updated=7)]
    versions.store(*quick)
    versions.answers = [
        places(quick, total=3),
        places(quick[:2], total=2),
        places(quick, total=3),
    ]

    page = await versions.pages().search(LAB, wanting(_CODE, limit=2))

    assert page == Page(tuple(quick[:2]), 3, more=True)
    assert "'updated': {'$gte': 0}" in str(versions.asked[2][0])


async def test_a_full_page_of_the_newest_of_a_range_is_counted_afterwards(
    versions: Versions,
) -> None:
    found = newest(3)
    versions.store(*found)
    versions.answers = [places(found), [{"total": 2}]]

    page = await versions.pages().search(LAB, wanting(_RANGE, limit=2))

    assert page == Page(tuple(found[:2]), 3, more=True)
    assert len(versions.asked) == 2


async def test_the_newest_of_a_range_are_not_counted_where_that_is_not_asked_for(
    versions: Versions,
) -> None:
    found = newest(3)
    versions.store(*found)
    versions.answers = [places(found)]

    page = await versions.pages().search(LAB, wanting(_RANGE, limit=2, count_up_to=0))

    assert page == Page(tuple(found[:2]), None, more=True)


@pytest.mark.parametrize("times", [(9, 8), (9, 7, 7)])
async def test_too_few_of_the_newest_or_some_of_one_moment_at_the_end_are_not_enough(
    versions: Versions, times: Sequence[int]
) -> None:
    some = [a_version(updated=updated) for updated in times]
    found = newest(2)
    versions.store(*found)
    versions.answers = [places(some), places(found, total=2)]

    page = await versions.pages().search(LAB, wanting(_RANGE, limit=2))

    assert page.versions == tuple(found)


@pytest.mark.parametrize(
    ("counted", "index"), [(999, "version_by_search_value_newest"), (1_000, "version_by_time")]
)
async def test_many_of_times_without_an_end_are_found_by_time(
    versions: Versions, counted: int, index: str
) -> None:
    versions.answers = [[], [{"total": counted}], []]

    await versions.pages().search(LAB, wanting(_OPEN))

    assert "{'$limit': 1500}" in str(versions.asked[0][0])
    assert "{'$limit': 1000}" in str(versions.asked[1][0])
    assert versions.asked[2][1]["hint"] == index
