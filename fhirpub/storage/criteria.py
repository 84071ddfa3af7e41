"""What a version is found by, and what a search demands of it.

The values that a version is found by are taken from it when it is made, and are stored with it.
Engines may index them as they like; :func:`holds` says what each criterion means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import orjson

IDENTIFIER, ID, LAST_UPDATED = "identifier", "_id", "_lastUpdated"
"""Names that stand for what every version has anyway; no value is stored under them."""

EARLIEST, LATEST = -(2**60), 2**60
"""Ends of a period that has none, in milliseconds."""


SearchValue = tuple[str, str | int, str | int]
"""One value that a version is found by, under a name, which stands first.

A token is its code and its system, empty if it has none. A time is its first millisecond and
the first that comes after it, since 1970-01-01 UTC. A token without a code need not be indexed:
it says that the resource has something of its own there, whose code follows from its id.
"""


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """One form of the token search: None matches anything (D-128).

    ``of`` restricts it to the resource of this id; only for values that are stored.
    """

    system: str | None
    value: str | None
    of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMatch:
    """Bounds, in milliseconds, all of which hold; None is no bound.

    A time from ``start`` to before ``end`` matches if ``from_ <= start < before`` and
    ``after < end <= until``.
    """

    from_: int | None = None
    before: int | None = None
    after: int | None = None
    until: int | None = None


ANYTHING = TokenMatch(None, None)
"""Matches every value, of whatever type."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """At least one value under ``name`` matches one of the alternatives; ``negated``: none does.

    So a version without a value fulfils what is negated, and nothing else.
    """

    name: str
    any_of: tuple[TokenMatch | TimeMatch, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """Sort by a name: by its lowest value, or from its highest one down.

    Versions without a value come last.
    """

    name: str
    descending: bool = False


NEWEST_FIRST = (Order(LAST_UPDATED, descending=True),)

SortKey = tuple[str | int | None, ...]


class Findable(Protocol):
    """What of a version is looked at."""

    @property
    def id(self) -> str: ...
    @property
    def system(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def updated(self) -> int: ...
    @property
    def search(self) -> bytes: ...


@lru_cache(maxsize=4096)
def field_number(tenant: str, type_name: str, name: str) -> int:
    """Return a short number for the values under a name, to begin an index with.

    Should two names have one number, an index leads to some candidates too many.
    """
    digest = hashlib.blake2b(orjson.dumps([tenant, type_name, name]), digest_size=6).digest()
    return int.from_bytes(digest)


def encode(values: Iterable[SearchValue]) -> bytes:
    """Return values as they are stored: a JSON array, each value once."""
    return orjson.dumps(list(dict.fromkeys(values)))


def decode(search: bytes) -> list[SearchValue]:
    """Return the values that were stored."""
    return [(name, first, second) for name, first, second in orjson.loads(search)]


def values_under(name: str, of: Findable) -> list[SearchValue]:
    """Return the values that a version has under a name."""
    if name == ID:
        return [(name, of.id, "")]
    if name == IDENTIFIER:
        return [(name, of.value, of.system)]
    if name == LAST_UPDATED:
        return [(name, of.updated, of.updated + 1)]
    return [item for item in decode(of.search) if item[0] == name]


def holds(criterion: Criterion, of: Findable) -> bool:
    """Return whether a version fulfils a criterion."""
    found = any(
        _matches(item, value, of.id)
        for value in values_under(criterion.name, of)
        for item in criterion.any_of
    )
    return found is not criterion.negated


def sort_key(order: Sequence[Order], of: Findable) -> SortKey:
    """Return where a version stands in an order: a value for each of its names, then the id."""
    return (*(_extreme(item, of) for item in order), of.id)


def comes_after(key: SortKey, other: SortKey, order: Sequence[Order]) -> bool:
    """Return whether the first of two places in an order comes after the second."""
    for mine, theirs, item in zip(key, other, (*order, Order(ID)), strict=True):
        if mine != theirs:
            if mine is None or theirs is None:
                return mine is None
            return (mine > theirs) is not item.descending  # type: ignore[operator]
    return False


def _extreme(order: Order, of: Findable) -> str | int | None:
    values = [first for _name, first, _second in values_under(order.name, of)]
    choose = max if order.descending else min
    return choose(values, default=None)


def _matches(wanted: TokenMatch | TimeMatch, value: SearchValue, resource_id: str) -> bool:
    _name, start, end = value
    if isinstance(wanted, TokenMatch):
        known = ((wanted.value, start), (wanted.system, end), (wanted.of, resource_id))
        return all(mine in (None, theirs) for mine, theirs in known)
    if not (isinstance(start, int) and isinstance(end, int)):
        return False
    return (
        (wanted.from_ is None or wanted.from_ <= start)
        and (wanted.before is None or start < wanted.before)
        and (wanted.after is None or wanted.after < end)
        and (wanted.until is None or end <= wanted.until)
    )
