"""Tests of searching by how texts begin."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Criterion,
    Order,
    SearchValue,
    TextMatch,
    comes_after,
    encode,
    sort_key,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.queries import (
    all_pages,
    find_ids,
    found_by,
    has,
    part,
    text,
    token,
    wanting,
)
from fhirpub.testing.contracts.store.records import add_all
from fhirpub.testing.samples import LAB, OTHER, new_id, successor

_LAST = "\U0010ffff"
SPECIAL = ("a", "A", "b", *"\"'\\%_.*^$([{|?+,/ \n\x01\x1f\x7f", "é", "\ud7ff", "\ue000", "\uffff")
BEYOND = ("\U00010000", "\U0001f9ea", "\U0010fffe", _LAST)
"""Characters with a meaning for an engine, and at the limits of how they are encoded."""


class TextContract:
    """Searches by texts find exactly the newest versions with a text that begins so."""

    async def test_texts_are_found_by_how_they_begin(self, store: Store) -> None:
        ids = [new_id() for _ in range(5)]
        values: list[list[SearchValue]] = [
            [("name", "ashdown", "family"), ("name", "juniper", "given")],
            [("name", "ash", "given"), ("name", "june", "family"), ("code", "ashes", "")],
            [("name", "b ashdown", "text"), ("name", None, None)],
            [("name", None, None), ("name", 5, 6), ("code", "a", "s")],
            [("other", "ashdown", "family")],
        ]
        stored = [
            found_by(*each, id=id_, value=f"v{number}")
            for number, (id_, each) in enumerate(zip(ids, values, strict=True))
        ]
        await add_all(store, stored)
        names = {id_: str(number) for number, id_ in enumerate(ids)}

        for criterion, expected in (
            (has("name", text("ash")), "01"),
            (has("name", text("ashd")), "0"),
            (has("name", text("ashdown")), "0"),
            (has("name", text("ashdowns")), ""),
            (has("name", text("as", "family")), "0"),
            (has("name", text("as", "given")), "1"),
            (has("name", text("as", "")), ""),
            (has("name", text("june", "given")), ""),
            (has("name", text("shd")), ""),
            (has("name", text("ASH")), ""),
            (has("name", text("null")), ""),
            (has("name", text("5")), ""),
            (has("name", text("b"), text("juni", "given")), "02"),
            (has("name", text("b a"), text("june", "family"), text("x")), "12"),
            (has("name", text("ash"), negated=True), "234"),
            (has("name", text("as", "family"), text("b"), negated=True), "134"),
            (has("name", text("b"), token("ash")), "12"),
            (has("name", text("b"), token(None, "given")), "012"),
            (has("name", text("b"), ANYTHING), "0123"),
            (has("code", text("a")), "13"),
            (has("code", text("a", "s")), "3"),
            (has(IDENTIFIER, text("v1"), text("v", "x")), "1"),
            (has(IDENTIFIER, text("v"), negated=True), ""),
            (has(ID, text(ids[2][:20]), text(ids[3], "")), "23"),
            (has(ID, text(ids[2], "x")), ""),
            (has(LAST_UPDATED, text("1")), ""),
            (has("name", part("shd")), "02"),
            (has("name", part("shd", "text")), "2"),
            (has("name", part("june"), part("b a")), "12"),
            (has("name", part("june"), text("ash")), "01"),
            (has("name", part("ash"), negated=True), "34"),
            (has("name", part("SHD")), ""),
            (has("name", part("5")), ""),
            (has(IDENTIFIER, part("1")), "1"),
            (has(ID, part(ids[2][3:20])), "2"),
        ):
            await self._check(store, criterion, names, expected)

    @staticmethod
    async def _check(store: Store, criterion: Criterion, names: dict[str, str], to: str) -> None:
        by_search = await find_ids(store, wanting(criterion))
        by_look_up = await find_ids(store, wanting(criterion, ids=frozenset(names)))

        assert "".join(sorted(names[id_] for id_ in by_search)) == to, criterion
        assert by_look_up == by_search, criterion

    async def test_every_character_of_a_text_stands_for_itself(self, store: Store) -> None:
        random = Random(2026)
        stored: dict[str, str] = {}
        for first in (*SPECIAL, *BEYOND):
            for _ in range(3):
                some = [
                    random.choice((*SPECIAL, *BEYOND)) for _ in range(random.choice([0, 1, 3]))
                ]
                name = first + "".join(some)
                version = found_by(("name", name, name))
                await store.add(LAB, version)
                stored[version.id] = name

        for name in sorted({name[:end] for name in stored.values() for end in (1, 2, 9)}):
            for kind in (None, name):
                expected = {
                    id_
                    for id_, one in stored.items()
                    if one.startswith(name) and kind in (None, one)
                }
                wanted = wanting(has("name", TextMatch(name, kind)), limit=100)
                assert await find_ids(store, wanted) == expected, (name, kind)
            having = {id_ for id_, one in stored.items() if name in one}
            wanted = wanting(has("name", part(name)), limit=100)
            assert await find_ids(store, wanted) == having, name

    async def test_a_text_that_begins_with_the_last_character_of_all_is_found(
        self, store: Store
    ) -> None:
        names = (f"a{_LAST}", f"a{_LAST}b", "b", _LAST, f"{_LAST}{_LAST}x")
        versions = [found_by(("name", name, "")) for name in names]
        await add_all(store, [*versions, found_by(("name", 7, 8))])

        for beginning, expected in ((f"a{_LAST}", "01"), (_LAST, "34"), (_LAST * 2, "4")):
            found = await find_ids(store, wanting(has("name", text(beginning))))

            assert found == {versions[int(number)].id for number in expected}, beginning

    async def test_only_the_newest_version_is_found_by_its_texts(self, store: Store) -> None:
        first = found_by(("name", "ashdown", "family"))
        second = successor(first, search=encode([("name", "birch", "family")]))
        theirs = found_by(("name", "ashdown", "family"))
        await add_all(store, [first, second])
        await store.add(OTHER, theirs)
        await store.add(LAB, replace(theirs, id=new_id(), type="Observation"))

        assert await find_ids(store, wanting(has("name", text("ash")))) == set()
        assert await find_ids(store, wanting(has("name", text("bir", "family")))) == {first.id}
        assert await find_ids(store, wanting(has("name", text("ash"))), OTHER) == {theirs.id}

        await store.replace_search(LAB, second.id, 2, encode([("name", "cedar", "family")]))

        assert await find_ids(store, wanting(has("name", text("bir")))) == set()
        assert await find_ids(store, wanting(has("name", text("cedar")))) == {first.id}

    async def test_a_version_with_many_texts_that_begin_so_is_found_once(
        self, store: Store
    ) -> None:
        version = found_by(*(("name", f"ash{number}", "") for number in range(50)))
        await store.add(LAB, version)

        page = await store.search(LAB, wanting(has("name", text("ash"), text("ash1"))))

        assert page.versions == (version,)
        assert page.total == 1

    async def test_versions_are_sorted_by_their_texts_of_one_kind(self, store: Store) -> None:
        random = Random(2026)
        versions: list[Version] = []
        for _ in range(30):
            values: list[SearchValue] = [
                ("name", random.choice(("a", "b", "é", "\uffff", "\U00010000")), kind)
                for kind in random.choices(("family", "given"), k=random.choice([0, 1, 2, 3]))
            ]
            versions.append(found_by(*values, ("name", None, None)))
        await add_all(store, versions)

        for kind in (None, "family", "none"):
            for descending in (False, True):
                order = (Order("name", descending, kind), Order("name"))
                wanted = wanting(order=order, limit=7)
                pages = await all_pages(store, wanted)

                seen = [version for page in pages for version in page.versions]
                places = [sort_key(order, version) for version in seen]
                assert sorted(version.id for version in seen) == sorted(v.id for v in versions)
                assert all(comes_after(b, a, order) for a, b in pairwise(places)), order
