"""Searches that are answered by look-ups of a few ids, and those without an alternative."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.storage.contract import Page, SearchQuery, Version
from fhirpub.storage.criteria import (
    LAST_UPDATED,
    Criterion,
    Either,
    Order,
    TextMatch,
    TimeMatch,
    TokenMatch,
    encode,
    sort_key,
)
from fhirpub.storage.id_search import FEW, capped_total, lookup_by_ids
from fhirpub.testing.samples import REPORT, SYSTEM, a_version

NOTHING = Page((), 0, more=False)


class Versions:
    """The newest versions of resources by id; records what was looked up."""

    def __init__(self, *versions: Version) -> None:
        self._versions = {version.id: version for version in versions}
        self.asked: list[list[str]] = []

    async def latest(self, ids: Collection[str]) -> Sequence[Version | None]:
        self.asked.append(sorted(ids))
        return [self._versions.get(one) for one in ids]

    async def page(self, query: SearchQuery) -> Page | None:
        return await lookup_by_ids(query, self.latest)


def version(resource_id: str, *, updated: int = 0, **changes: Any) -> Version:
    return a_version(id=resource_id, updated=updated, **changes)


def by_ids(*ids: str, **changes: Any) -> SearchQuery:
    return replace(SearchQuery(type=REPORT, ids=frozenset(ids)), **changes)


async def found(query: SearchQuery, *versions: Version) -> list[str]:
    page = await Versions(*versions).page(query)
    assert page is not None
    return [one.id for one in page.versions]


ABC = [version("a", updated=1), version("b", updated=3), version("c", updated=2)]


async def test_a_resource_is_found_by_its_id() -> None:
    assert await Versions(*ABC).page(by_ids("a")) == Page((ABC[0],), 1, more=False)


async def test_ids_that_there_are_not_are_passed_over() -> None:
    assert await Versions(*ABC).page(by_ids("a", "x")) == Page((ABC[0],), 1, more=False)
    assert await Versions(*ABC).page(by_ids("x")) == NOTHING
    assert await Versions(*ABC).page(by_ids()) == NOTHING


async def test_a_resource_of_another_type_is_not_found() -> None:
    assert await found(by_ids("a", "p"), ABC[0], version("p", type="Patient")) == ["a"]


async def test_four_ids_are_looked_up_and_more_are_searched_for() -> None:
    versions = Versions(*ABC)

    four = await versions.page(by_ids(*"abcd"))
    five = await versions.page(by_ids(*"abcde"))

    assert FEW == 4
    assert four is not None
    assert five is None
    assert versions.asked == [["a", "b", "c", "d"]]


@pytest.mark.parametrize(
    "query", [SearchQuery(type=REPORT), by_ids("a", every_version=True)], ids=["any", "versions"]
)
async def test_what_look_ups_cannot_answer_is_searched_for(query: SearchQuery) -> None:
    versions = Versions(*ABC)

    assert await versions.page(query) is None
    assert versions.asked == []


@pytest.mark.parametrize(
    "changes",
    [
        {"identifiers": ((),)},
        {"identifiers": ((TokenMatch(None, None),), ())},
        {"criteria": (Criterion("code", ()),)},
        {"criteria": (Criterion("code", (TokenMatch(None, None),)), Criterion("code", ()))},
        {"criteria": (Either(()),)},
    ],
)
@pytest.mark.parametrize("ids", [None, frozenset("a")])
async def test_a_choice_between_no_alternatives_finds_nothing_without_a_look_up(
    changes: dict[str, Any], ids: frozenset[str] | None
) -> None:
    versions = Versions(*ABC)

    assert await versions.page(SearchQuery(type=REPORT, ids=ids, **changes)) == NOTHING
    assert versions.asked == []


async def test_none_of_no_alternatives_holds_always() -> None:
    negated = Criterion("code", (), negated=True)

    assert await found(by_ids("a", criteria=(negated,)), *ABC) == ["a"]


async def test_an_alternative_of_groups_is_a_choice() -> None:
    coded = version("a", search=encode([("code", "1", "s")]))
    groups = [(Criterion("code", (TokenMatch(None, value),)),) for value in ("1", "2")]

    assert await found(by_ids("a", criteria=(Either(tuple(groups)),)), coded) == ["a"]
    assert await found(by_ids("a", criteria=(Either((groups[1],)),)), coded) == []


async def test_every_identifier_must_match() -> None:
    one = version("a", value="1")
    mine, other = (TokenMatch(SYSTEM, "1"),), (TokenMatch(SYSTEM, "2"),)

    assert await found(by_ids("a", identifiers=(mine,)), one) == ["a"]
    assert await found(by_ids("a", identifiers=((*other, *mine),)), one) == ["a"]
    assert await found(by_ids("a", identifiers=(mine, other)), one) == []


async def test_every_criterion_must_hold() -> None:
    coded = version("a", search=encode([("code", "1", "s"), ("date", 5, 6)]))
    code = Criterion("code", (TokenMatch("s", "1"),))
    early = Criterion("date", (TimeMatch(before=6),))
    late = Criterion("date", (TimeMatch(from_=6),))

    assert await found(by_ids("a", criteria=(code, early)), coded) == ["a"]
    assert await found(by_ids("a", criteria=(code, late)), coded) == []
    assert await found(by_ids("a", criteria=(late, code)), coded) == []


async def test_the_newest_stands_first_and_equals_in_the_order_of_their_ids() -> None:
    equal = [version("z", updated=3), *ABC]

    assert await found(by_ids(*"abcz"), *equal) == ["b", "z", "c", "a"]


async def test_the_order_may_be_another() -> None:
    oldest_first = (Order(LAST_UPDATED),)

    assert await found(by_ids(*"abc", order=oldest_first), *ABC) == ["a", "c", "b"]


async def test_a_page_has_as_many_as_it_may_and_names_what_follows() -> None:
    versions = Versions(*ABC)

    two = await versions.page(by_ids(*"abc", limit=2))
    three = await versions.page(by_ids(*"abc", limit=3))

    assert two == Page((ABC[1], ABC[2]), 3, more=True)
    assert three == Page((ABC[1], ABC[2], ABC[0]), 3, more=False)


async def test_the_next_page_begins_behind_the_last_entry() -> None:
    query = by_ids(*"abc", limit=1)
    after = sort_key(query.order, ABC[1])

    page = await Versions(*ABC).page(replace(query, after=after))

    assert page == Page((ABC[2],), 3, more=True)


async def test_behind_the_last_entry_there_is_nothing() -> None:
    query = by_ids(*"abc")

    page = await Versions(*ABC).page(replace(query, after=sort_key(query.order, ABC[0])))

    assert page == Page((), 3, more=False)


async def test_a_page_of_none_has_the_total_alone() -> None:
    assert await Versions(*ABC).page(by_ids(*"abc", limit=0)) == Page((), 3, more=False)


@pytest.mark.parametrize(
    ("count_up_to", "total"), [(None, 3), (0, None), (1, None), (2, None), (3, 3), (4, 3)]
)
async def test_a_total_is_known_up_to_the_number_that_is_counted(
    count_up_to: int | None, total: int | None
) -> None:
    page = await Versions(*ABC).page(by_ids(*"abc", count_up_to=count_up_to))

    assert page is not None
    assert page.total == total


def test_a_total_of_nothing_is_known_if_it_was_counted() -> None:
    assert capped_total(0, by_ids(count_up_to=1)) == 0
    assert capped_total(0, by_ids(count_up_to=0)) is None
    assert capped_total(0, by_ids()) == 0


async def test_a_text_is_looked_for_as_in_any_search() -> None:
    named = version("a", search=encode([("name", "ashdown", "family")]))

    def criterion(beginning: str) -> Criterion:
        return Criterion("name", (TextMatch(beginning),))

    assert await found(by_ids("a", criteria=(criterion("ash"),)), named) == ["a"]
    assert await found(by_ids("a", criteria=(criterion("down"),)), named) == []
