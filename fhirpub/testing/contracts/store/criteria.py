"""Tests of searching by the values that are stored with a version."""

from __future__ import annotations

from collections.abc import (
    Sequence,
)
from dataclasses import replace

import pytest

from fhirpub.storage.contract import (
    Page,
)
from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Condition,
    Either,
    TimeMatch,
    TokenMatch,
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
    SYSTEM,
    a_version,
    new_id,
    successor,
)


def criteria_of_every_form(ids: Sequence[str]) -> list[tuple[Condition, str]]:
    """Return criteria of every form for the five versions of the test below.

    Args:
        ids: The ids of the versions.

    Returns:
        The criteria, each with the numbers of the reports that fulfil it, such as ``"13"``.
    """
    return [
        (has("code", token("a")), "13"),
        (has("code", token("a", "s")), "1"),
        (has("code", token("a", "")), "3"),
        (has("code", token(None, "s")), "12"),
        (has("code", token(None, "")), "3"),
        (has("code", token("a"), token("b")), "123"),
        (has("code", token("b", "s"), token("a", "")), "23"),
        (has("code", token("c"), token(None, "t")), "2"),
        (has("code", ANYTHING), "123"),
        (has("code", ANYTHING, negated=True), "4"),
        (has("code", token("a"), negated=True), "24"),
        (has("code", token("a", "s"), token("b"), negated=True), "34"),
        (has("code", token("status")), ""),
        (has("cod", token("a")), ""),
        (has("code"), ""),
        (has("code", negated=True), "1234"),
        (has("date", TimeMatch(from_=100, until=200)), "1"),
        (has("date", TimeMatch(from_=101)), "23"),
        (has("date", TimeMatch(before=250)), "12"),
        (has("date", TimeMatch(after=200)), "23"),
        (has("date", TimeMatch(until=200)), "1"),
        (has("date", TimeMatch(from_=100, before=101), TimeMatch(after=900)), "13"),
        (has("date", TimeMatch(from_=100, until=200), token("x")), "1"),
        (has("date", TimeMatch()), "123"),
        (has("date", TimeMatch(from_=100), negated=True), "4"),
        (has("date", ANYTHING, negated=True), "4"),
        (has(IDENTIFIER, token("v1")), "1"),
        (has(IDENTIFIER, token("v1", "x")), ""),
        (has(IDENTIFIER, token("v1", SYSTEM), token("v2"), negated=True), "34"),
        (has(IDENTIFIER, token(None, SYSTEM), negated=True), ""),
        (has(IDENTIFIER, ANYTHING), "1234"),
        (has(IDENTIFIER, ANYTHING, negated=True), ""),
        (has(LAST_UPDATED, TimeMatch(from_=1_002)), "234"),
        (has(LAST_UPDATED, TimeMatch(after=1_002)), "234"),
        (has(LAST_UPDATED, TimeMatch(before=1_003)), "12"),
        (has(LAST_UPDATED, TimeMatch(until=1_003)), "12"),
        (has(LAST_UPDATED, TimeMatch(from_=1_002, until=1_003), negated=True), "134"),
        (has(LAST_UPDATED, TimeMatch(before=1_002), TimeMatch(from_=1_004)), "14"),
        (has(ID, token(ids[1]), token(ids[2], "")), "12"),
        (has(ID, token(ids[1], "x")), ""),
        (has(ID, token(ids[1]), negated=True), "234"),
        (has("subject", TokenMatch("P", "", ids[1])), "1"),
        (has("subject", TokenMatch("P", "", ids[4])), ""),
        (has("subject", TokenMatch("Q", "", ids[1])), ""),
        (has("subject", TokenMatch("P", ids[1]), TokenMatch("P", "", ids[1])), "14"),
        (
            has("subject", token("x"), TokenMatch("P", "", ids[3]), TokenMatch("P", "", ids[1])),
            "123",
        ),
        (has("subject", TokenMatch("P", "", ids[1]), negated=True), "234"),
        (has("subject", TokenMatch("P", None)), "1234"),
        (has("subject", TokenMatch("P", ""), TokenMatch("P", "x")), "123"),
        (has("subject", token("")), "13"),
        (Either(((has("code", token("a")),), (has("date", TimeMatch(from_=101)),))), "123"),
        (
            Either(
                (
                    (has("code", token("a")), has("date", TimeMatch(from_=101))),
                    (has("subject", token("x")), has("code", token("b"))),
                )
            ),
            "23",
        ),
        (Either(((has("code", token("b")), has("date", TimeMatch(after=900))),)), ""),
        (Either(((has("code", ANYTHING, negated=True),), (has("code", token("c")),))), "24"),
        (Either(((has(IDENTIFIER, token("v1")),), (has(ID, token(ids[2])),))), "12"),
        (Either(()), ""),
    ]


class CriteriaContract:
    """Searches by stored values find exactly the newest versions that fulfil the criteria."""

    async def test_criteria_of_every_form(self, store: Store) -> None:
        ids = [new_id() for _ in range(5)]
        stored = [
            a_version(id=ids[0], type="Observation"),
            found_by(("code", "a", "s"), ("date", 100, 200), ("subject", "", "P"), id=ids[1]),
            found_by(
                ("code", "b", "s"),
                ("code", "c", "t"),
                ("date", 101, 300),
                ("subject", "x", "P"),
                id=ids[2],
            ),
            found_by(("code", "a", ""), ("date", 500, 1_000), ("subject", "", "P"), id=ids[3]),
            found_by(("status", "a", "s"), ("subject", ids[1], "P"), id=ids[4]),
        ]
        stored = [
            replace(version, value=f"v{number}", updated=1_000 + number)
            for number, version in enumerate(stored)
        ]
        await add_all(store, stored)
        names = {id_: str(number) for number, id_ in enumerate(ids)}

        for criterion, expected in criteria_of_every_form(ids):
            wanted = wanting(criterion)

            by_search = {names[id_] for id_ in await find_ids(store, wanted)}
            among = replace(wanted, ids=frozenset(ids))
            by_look_up = {names[id_] for id_ in await find_ids(store, among)}

            assert "".join(sorted(by_search)) == expected, criterion
            assert by_look_up == by_search, criterion

    async def test_an_element_without_values_is_found_by_its_presence_alone(
        self, store: Store
    ) -> None:
        empty = found_by(("code", None, None), ("date", None, None))
        full = found_by(("code", "a", "s"), ("date", 100, 200), ("code", None, None))
        none = found_by(("status", "a", "s"))
        await add_all(store, [empty, full, none])

        assert await store.latest(LAB, empty.id) == empty
        for name in ("code", "date"):
            assert await find_ids(store, wanting(has(name, ANYTHING))) == {empty.id, full.id}
            lacking = has(name, ANYTHING, negated=True)
            assert await find_ids(store, wanting(lacking)) == {none.id}
        for criterion in (
            has("code", token("a")),
            has("code", token("a", "s")),
            has("code", token(None, "s")),
            has("date", TimeMatch()),
            has("date", TimeMatch(from_=0)),
            has("date", TimeMatch(before=900)),
            has("date", TimeMatch(after=0)),
            has("date", TimeMatch(until=900)),
        ):
            assert await find_ids(store, wanting(criterion)) == {full.id}, criterion
            others = replace(criterion, negated=True)
            assert await find_ids(store, wanting(others)) == {empty.id, none.id}, criterion
        for never in (token(""), token("", ""), token("null"), token(None, "")):
            assert await find_ids(store, wanting(has("code", never))) == set(), never

    async def test_all_criteria_must_hold(self, store: Store) -> None:
        both = found_by(("code", "a", ""), ("status", "final", ""))
        one = found_by(("code", "a", ""), ("status", "partial", ""))
        other = found_by(("code", "b", ""), ("status", "final", ""))
        await add_all(store, [both, one, other])
        code, status = has("code", token("a")), has("status", token("final"))

        assert await find_ids(store, wanting(code, status)) == {both.id}
        assert await find_ids(store, wanting(code, code, status)) == {both.id}
        assert await find_ids(store, wanting(code, replace(status, negated=True))) == {one.id}

    async def test_only_the_newest_version_is_found_by_its_values(self, store: Store) -> None:
        first = found_by(("status", "partial", ""), ("date", 1, 2))
        newer = encode([("status", "final", ""), ("date", 5, 6)])
        second = successor(first, search=newer)
        await add_all(store, [first, second, found_by(("status", "x", ""))])

        for old in (has("status", token("partial")), has("date", TimeMatch(after=0, until=2))):
            assert await store.search(LAB, wanting(old)) == Page((), 0, more=False)
        for new in (has("status", token("final")), has("date", TimeMatch(after=5))):
            assert await store.search(LAB, wanting(new)) == Page((second,), 1, more=False)
        assert second.id in await find_ids(
            store, wanting(has("status", token("partial"), negated=True))
        )

    async def test_values_are_the_tenants_own_and_the_types(self, store: Store) -> None:
        mine = found_by(("code", "a", ""))
        await store.add(LAB, mine)
        await store.add(OTHER, found_by(("code", "a", "")))
        await store.add(LAB, found_by(("code", "a", ""), type="Observation"))

        assert await find_ids(store, wanting(has("code", token("a")))) == {mine.id}

    @pytest.mark.parametrize(
        "text", ['a"b', '["code","x","y"]', "a\\b", "ä", "a,b", "a b", "%", "\x1f"]
    )
    async def test_values_match_exactly_or_not_at_all(self, store: Store, text: str) -> None:
        # Characters with a meaning in JSON or in a query of the engine.
        exact = found_by(("code", text, text))
        await add_all(
            store, [exact, found_by(("code", f"{text}x", "")), found_by(("code", "A", "A"))]
        )

        for right in (token(text), token(text, text), token(None, text)):
            assert await find_ids(store, wanting(has("code", right))) == {exact.id}
            both = has("code", right, token("y", "y"))
            assert await find_ids(store, wanting(both)) == {exact.id}
        for wrong in ("x", "y", "a", "b", "B"):
            assert await find_ids(store, wanting(has("code", token(wrong)))) == set()

    async def test_a_version_that_matches_twice_is_found_once(self, store: Store) -> None:
        version = found_by(("code", "a", "s"), ("code", "a", "t"), ("code", "b", "s"))
        await store.add(LAB, version)

        for criterion in (has("code", token("a")), has("code", token("a"), token("b"))):
            page = await store.search(LAB, wanting(criterion))
            assert page == Page((version,), 1, more=False)

    async def test_a_version_may_have_thousands_of_values(self, store: Store) -> None:
        version = found_by(*(("code", f"c{number}", "s") for number in range(5_000)))
        await store.add(LAB, version)

        assert await store.latest(LAB, version.id) == version
        assert await find_ids(store, wanting(has("code", token("c4999")))) == {version.id}

    async def test_a_changed_value_is_seen_at_once(self, store: Store, other_store: Store) -> None:
        current = found_by(("status", "s0", ""))
        await store.add(LAB, current)
        for number in range(1, 10):
            before = f"s{number - 1}"
            values = encode([("status", f"s{number}", "")])
            current = successor(current, search=values)
            await (store, other_store)[number % 2].add(LAB, current)

            assert await find_ids(store, wanting(has("status", token(f"s{number}")))) == {
                current.id
            }
            assert await find_ids(other_store, wanting(has("status", token(before)))) == set()
