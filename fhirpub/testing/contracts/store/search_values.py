"""Tests of rebuilding the search values of stored versions (ADR 19)."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.storage.criteria import (
    TimeMatch,
    decode,
    encode,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.queries import (
    find_ids,
    found_by,
    has,
    token,
    wanting,
)
from fhirpub.testing.contracts.store.records import (
    add_all,
)
from fhirpub.testing.samples import (
    LAB,
    OTHER,
    successor,
)


class SearchValueContract:
    """Search values can be replaced without any other change."""

    async def test_values_are_replaced_and_nothing_else(
        self, store: Store, other_store: Store
    ) -> None:
        first = found_by(("code", "a", ""), ("code", "b", ""), documents=("00" * 32,))
        second = successor(first)
        theirs = found_by(("code", "a", ""))
        await add_all(store, [first, second])
        await store.add(OTHER, theirs)
        changed = encode([("code", "b", ""), ("code", "c", "s"), ("date", 5, 6)])

        await store.replace_search(LAB, second.id, 2, changed)

        assert await store.latest(LAB, first.id) == replace(second, search=changed)
        assert await other_store.version(LAB, first.id, 1) == first
        for code, expected in (("a", set()), ("b", {first.id}), ("c", {first.id})):
            assert await find_ids(other_store, wanting(has("code", token(code)))) == expected
        assert await find_ids(store, wanting(has("date", TimeMatch(after=5)))) == {first.id}
        assert await find_ids(store, wanting(has("code", token("a"))), OTHER) == {theirs.id}

    async def test_a_page_has_the_values_that_are_needed(self, store: Store) -> None:
        needed = ("code", "a", "")
        await store.add(LAB, found_by(needed, ("date", 5, 6), ("code", "b", "")))
        wanted = replace(wanting(), needed_values=frozenset({"code"}))

        (found,) = (await store.search(LAB, wanted)).versions

        assert [item for item in decode(found.search) if item[0] == "code"] == [
            needed,
            ("code", "b", ""),
        ]

    async def test_what_is_not_there_is_not_made_by_a_replacement(self, store: Store) -> None:
        version = found_by(("code", "a", ""))
        await store.add(LAB, version)

        await store.replace_search(LAB, version.id, 2, b"[]")
        await store.replace_search(OTHER, version.id, 1, b"[]")

        assert await store.history(LAB, version.id) == [version]
        assert await find_ids(store, wanting(has("code", token("a")))) == {version.id}

    async def test_the_rules_of_the_values_are_kept(
        self, store: Store, other_store: Store
    ) -> None:
        assert await store.search_rules() == ""

        for rules in ("one", "another"):
            await store.put_search_rules(rules)

            assert await other_store.search_rules() == rules
