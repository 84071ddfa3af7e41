"""The prefixes of dates, compared with the text of R4 (search, 3.1.1.4.7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.interactions.search.sought import times_meant_by
from fhirpub.storage.criteria import Criterion, encode, holds
from fhirpub.testing.store_contract import a_version

NOW = 200
stretches = st.tuples(st.integers(0, 40), st.integers(1, 15)).map(lambda s: (s[0], s[0] + s[1]))
TimeRange = tuple[int, int]

# Sets of times instead of comparisons: slower, and hard to get wrong.


def moments(stretch: TimeRange) -> set[int]:
    return set(range(*stretch))


def above(sought: TimeRange) -> set[int]:
    return set(range(sought[1], 100))


def below(sought: TimeRange) -> set[int]:
    return set(range(-100, sought[0]))


def contains(sought: TimeRange, target: TimeRange) -> bool:
    return moments(target) <= moments(sought)


MEANINGS: dict[str, Callable[[TimeRange, TimeRange], bool]] = {
    "eq": contains,
    "ne": lambda sought, target: not contains(sought, target),
    "gt": lambda sought, target: bool(above(sought) & moments(target)),
    "lt": lambda sought, target: bool(below(sought) & moments(target)),
    "ge": lambda s, t: bool(above(s) & moments(t)) or contains(s, t),
    "le": lambda s, t: bool(below(s) & moments(t)) or contains(s, t),
    "sa": lambda sought, target: moments(target) <= above(sought),
    "eb": lambda sought, target: moments(target) <= below(sought),
}


@pytest.mark.parametrize("prefix", MEANINGS)
@given(sought=stretches, target=stretches)
def test_a_prefix_means_what_r4_says(prefix: str, sought: TimeRange, target: TimeRange) -> None:
    version = a_version(search=encode([("date", *target)]))
    demanded = Criterion("date", tuple(times_meant_by(prefix, sought, now=NOW)))

    assert holds(demanded, version) == MEANINGS[prefix](sought, target)


@given(sought=stretches, target=stretches)
def test_about_allows_a_tenth_of_the_distance_to_now(sought: TimeRange, target: TimeRange) -> None:
    version = a_version(search=encode([("date", *target)]))
    demanded = Criterion("date", tuple(times_meant_by("ap", sought, now=NOW)))
    slack = (NOW - sought[0]) // 10

    wide = (sought[0] - slack, sought[1] + slack)
    assert holds(demanded, version) == bool(moments(wide) & moments(target))
