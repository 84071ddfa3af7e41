"""Random searches, compared with a scan of all versions."""

from __future__ import annotations

from collections.abc import (
    Sequence,
)
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random

import pytest

from fhirpub.storage.contract import (
    SearchQuery,
    Version,
)
from fhirpub.storage.criteria import (
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    LATEST,
    Condition,
    Criterion,
    Either,
    Match,
    Order,
    SearchValue,
    TextMatch,
    TimeMatch,
    TokenMatch,
    comes_after,
    encode,
    holds,
    sort_key,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.queries import (
    all_pages,
    found_by,
    wanting,
)
from fhirpub.testing.samples import (
    LAB,
    SYSTEM,
    a_version,
    new_id,
    new_member_id,
    successor,
)


class RandomSearchContract:
    """A search returns what `criteria.holds` finds in a scan of all versions."""

    @pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
    async def test_whatever_is_asked_the_answer_is_that_of_a_look_at_everything(
        self, store: Store, share: float
    ) -> None:
        random = Random(2026)
        stored: dict[str, Version] = {}
        for number in range(50):
            values = _random_values(random)
            as_member = random.random() < share
            version = found_by(
                *values,
                id=new_member_id() if as_member else new_id(),
                value=f"v{number % 7}",
                updated=1_000 + number % 40,
            )
            add = partial(_add, store, a_version(type="Panel"), as_member=as_member)
            await add(version)
            if random.random() < 0.3:
                values = _random_values(random)
                version = successor(version, search=encode(values))
                await add(version)
            stored[version.id] = version

        for _ in range(60):
            wanted = _random_query(random, list(stored))
            wanted = replace(wanted, has_members=share > 0)
            matches = [
                item
                for item in stored.values()
                if all(holds(one, item) for one in wanted.criteria)
                and (wanted.ids is None or item.id in wanted.ids)
            ]
            pages = await all_pages(store, wanted)

            seen = [item for page in pages for item in page.versions]
            assert sorted(item.id for item in seen) == sorted(item.id for item in matches), wanted
            assert all(stored[item.id] == item for item in seen)
            assert {page.total for page in pages} == {len(matches)}
            places = [sort_key(wanted.order, item) for item in seen]
            for one, next_one in pairwise(places):
                assert comes_after(next_one, one, wanted.order), wanted


async def _add(store: Store, carrier: Version, version: Version, *, as_member: bool) -> None:
    """Add a version alone, or as a member of the same version of another resource."""
    if as_member:
        version = replace(
            carrier, version=version.version, updated=version.updated, members=(version,)
        )
    assert await store.add(LAB, version)


def _random_values(random: Random) -> list[SearchValue]:
    values: list[SearchValue] = [
        (name, random.choice("abc"), random.choice(["", "s", "t"]))
        for name in ("code", "status", "category")
        for _ in range(random.choice([0, 1, 1, 2]))
    ]
    for _ in range(random.choice([0, 1, 1, 2])):
        start = random.randrange(50)
        values.append(("date", start, start + random.choice([1, 5, 30, LATEST])))
    values += [
        ("name", _random_text(random), random.choice(["family", "given"]))
        for _ in range(random.choice([0, 1, 1, 3]))
    ]
    names = [name for name in ("code", "status", "date", "name") if random.random() < 0.2]
    values += [(name, None, None) for name in names]
    return values


def _random_text(random: Random) -> str:
    return "".join(random.choices("ab\U0010ffff", k=random.choice([1, 2, 3])))


def _random_query(random: Random, ids: Sequence[str]) -> SearchQuery:
    criteria = [_random_condition(random) for _ in range(random.choice([0, 1, 1, 2, 3]))]
    names = ["code", "date", "status", "name", LAST_UPDATED, ID]
    order = tuple(
        Order(name, random.choice([True, False]), _random_kind(random) if name == "name" else None)
        for name in random.sample(names, k=random.choice([1, 1, 2]))
    )
    some = frozenset(random.sample(ids, k=random.choice([2, 30])))
    return wanting(
        *criteria,
        ids=random.choice([None, None, some]),
        limit=random.choice([3, 7, 50]),
        max_seconds=random.choice([None, 60.0]),
        **random.choice([{}, {"order": order}]),
    )


def _random_kind(random: Random) -> str | None:
    return random.choice([None, None, "family", "given"])


def _random_condition(random: Random) -> Condition:
    if random.random() < 0.8:
        return _random_criterion(random)
    groups = [
        tuple(_random_criterion(random) for _ in range(random.choice([1, 1, 2])))
        for _ in range(random.choice([1, 2, 2, 3]))
    ]
    return Either(tuple(groups))


def _random_criterion(random: Random) -> Criterion:
    names = ["code", "status", "category", "date", "date", "name", "name"]
    name = random.choice([*names, LAST_UPDATED, IDENTIFIER])
    negated = random.random() < 0.25
    count = random.choice([1, 1, 2, 3])
    if name == "name":
        texts: list[Match] = [
            TextMatch(_random_text(random), _random_kind(random), random.choice([True, False]))
            for _ in range(count)
        ]
        tokens = [TokenMatch(_random_kind(random), random.choice([None, _random_text(random)]))]
        return Criterion(name, (*texts, *random.choice([[], [], tokens])), negated)
    if name not in ("date", LAST_UPDATED):
        values = [None, *("abc" if name != IDENTIFIER else ("v1", "v2", "v3"))]
        systems = [None, None, "", "s", SYSTEM]
        some = [TokenMatch(random.choice(systems), random.choice(values)) for _ in range(count)]
        return Criterion(name, tuple(some), negated)
    base = 1_000 if name == LAST_UPDATED else 0

    def bound() -> int | None:
        return random.choice([None, base + random.randrange(60)])

    times = [
        TimeMatch(from_=bound(), before=bound(), after=bound(), until=bound())
        for _ in range(count)
    ]
    return Criterion(name, tuple(times), negated)
