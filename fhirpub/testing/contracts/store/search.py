"""Tests of searching by type, id and identifier."""

from __future__ import annotations

import unicodedata

import pytest

from fhirpub.storage.contract import (
    Page,
)
from fhirpub.storage.criteria import (
    TokenMatch,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.queries import (
    find_ids,
    match,
    query,
)
from fhirpub.testing.contracts.store.records import (
    add_all,
)
from fhirpub.testing.samples import (
    LAB,
    a_version,
    new_id,
    successor,
)


class SearchContract:
    """Searches by type, id and identifier are exact and complete."""

    async def test_a_search_for_a_type_finds_all_of_it_and_no_other(self, store: Store) -> None:
        reports = [a_version() for _ in range(3)]
        await add_all(store, [*reports, a_version(type="Observation")])

        assert await find_ids(store, query()) == {report.id for report in reports}

    @pytest.mark.parametrize(
        ("groups", "expected"),
        [
            ([match("s1", "v1")], "a"),
            ([match("s1")], "ab"),
            ([match(None, "v1")], "ac"),
            ([match()], "abcd"),
            ([match("s1", "v3")], ""),
            ([match("s1", "v1") + match("s2", "v3")], "ad"),
            ([match("s1", "v3") + match("s2", "v1")], "c"),
            ([match(None, "v2") + match(None, "v3")], "bd"),
            ([match("s1") + match("s2")], "abcd"),
            ([match("s1") + match(None, "v3")], "abd"),
            ([match("s2", "v1") + match(None, "v2") + match("s9")], "bc"),
            ([match("s1", "v1") + match()], "abcd"),
            ([match("s1"), match(None, "v1")], "a"),
            ([match("s1") + match("s2", "v3"), match(None, "v1") + match("s2")], "ad"),
            ([match("s1"), match("s2")], ""),
            ([()], ""),
            ([match("s1"), ()], ""),
            ([match("")], ""),
            ([match(None, "")], ""),
        ],
    )
    async def test_alternatives_and_conjunctions_of_identifiers(
        self, store: Store, groups: list[tuple[TokenMatch, ...]], expected: str
    ) -> None:
        tokens = {"a": ("s1", "v1"), "b": ("s1", "v2"), "c": ("s2", "v1"), "d": ("s2", "v3")}
        stored = {
            name: a_version(system=system, value=value) for name, (system, value) in tokens.items()
        }
        await add_all(store, list(stored.values()))

        assert await find_ids(store, query(*groups)) == {stored[name].id for name in expected}

    async def test_many_alternatives_are_as_good_as_few(self, store: Store) -> None:
        versions = [a_version() for _ in range(3)]
        await add_all(store, versions)
        others = [TokenMatch(None, f"none-{number}") for number in range(40_000)]
        wanted = [TokenMatch(version.system, version.value) for version in versions[:2]]

        assert await find_ids(store, query((*others, *wanted))) == {
            version.id for version in versions[:2]
        }

    @pytest.mark.parametrize(
        ("stored", "asked"),
        [
            ("Abc", "abc"),
            ("abc", "abc "),
            ("abc", " abc"),
            ("abc", "abc\0"),
            ("abc", "abc\0def"),
            ("abc", "ab"),
            ("abc", "a%"),
            ("abc", "a_c"),
            ("abc", "a*"),
            ("abc", "a.c"),
            ("007", "7"),
            ("7", "7.0"),
            ("é", "e"),
            (unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")),
            ("ß", "ss"),
            ("\uff21", "A"),
        ],
    )
    @pytest.mark.parametrize(
        "others",
        [
            (),
            match("x", "y") + match("z", "z"),
            match("x") + match("z") + match(None, "x") + match(None, "z"),
        ],
        ids=["alone", "with-pairs", "with-halves"],
    )
    async def test_texts_match_exactly_or_not_at_all(
        self, store: Store, stored: str, asked: str, others: tuple[TokenMatch, ...]
    ) -> None:
        version = a_version(system=stored, value=stored)
        await store.add(LAB, version)

        for right in (match(stored), match(None, stored), match(stored, stored)):
            assert await find_ids(store, query(right + others)) == {version.id}
        for wrong in (
            match(asked),
            match(None, asked),
            match(stored, asked),
            match(asked, stored),
        ):
            assert await find_ids(store, query(wrong + others)) == set()

    async def test_ids_are_alternatives_too(self, store: Store) -> None:
        versions = [a_version() for _ in range(4)]
        await add_all(store, versions)
        ids = [version.id for version in versions[:2]]

        assert await find_ids(store, query(ids=[*ids, new_id()])) == set(ids)

    async def test_no_ids_find_nothing(self, store: Store) -> None:
        await store.add(LAB, a_version())

        assert await find_ids(store, query(ids=[])) == set()

    async def test_ids_and_identifiers_must_both_hold(self, store: Store) -> None:
        one, two = a_version(), a_version()
        await add_all(store, [one, two])

        assert await find_ids(store, query(match(None, one.value), ids=[one.id, two.id])) == {
            one.id
        }
        assert await find_ids(store, query(match(None, one.value), ids=[two.id])) == set()

    async def test_an_id_of_another_type_is_not_found(self, store: Store) -> None:
        other = a_version(type="Observation")
        await store.add(LAB, other)

        assert await find_ids(store, query(match(None, other.value), ids=[other.id])) == set()

    async def test_a_resource_is_found_once_and_in_its_newest_version(self, store: Store) -> None:
        first = a_version()
        second = successor(first, body=b"2")
        third = successor(second, body=b"3")
        for version in (first, second, third):
            await store.add(LAB, version)

            for wanted in (
                query(),
                query(ids=[first.id]),
                query(match(first.system)),
                query(match(None, first.value)),
                query(match(first.system, first.value)),
            ):
                assert await store.search(LAB, wanted) == Page((version,), 1, more=False)
