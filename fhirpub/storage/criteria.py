"""The search values of a version, and the criteria of a search.

The values of a version are computed when it is created, and are stored with it. Engines may index
them in any way (ADR 18); `holds` defines the meaning of each criterion. All times are milliseconds
since 1970-01-01 UTC.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import orjson

IDENTIFIER, ID, LAST_UPDATED = "identifier", "_id", "_lastUpdated"
"""Names of properties that every version has; no value is stored under them."""

EARLIEST, LATEST = -(2**60), 2**60
"""The start and the end of a period that has none, in milliseconds."""


SearchValue = tuple[str, str | int | None, str | int | None]
"""A value by which a version is found: the name of its search parameter, then two parts.

A token (FHIR R4, search, token) is its code and its system, which is empty if there is none. A
time is its first millisecond and the first one after it. A number is stored like a time: integers
of 64 bits that compare as the numbers do. A text is itself, normalized, and its kind, such as the
part of a name that it is; the kind is empty if there is only one. A token with an empty code need
not be indexed: it means that the resource refers to a part of its own, whose id follows from the
id of the resource (ADR 15). Two times None, which need not be indexed either, is an element that
has nothing to search by, such as a code in words: only `ANYTHING` matches it, and sorting skips
it.
"""

_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """One form of a token search (FHIR R4, search, token; D-128).

    Attributes:
        system: The system to match, empty for tokens without one; None matches any.
        value: The code to match; None matches any.
        of: The id of the only resource that can match, or None; only for values that are stored.
    """

    system: str | None
    value: str | None
    of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMatch:
    """Bounds of a time, or of a number's place, all of which must hold; None is no bound.

    A time from ``start`` up to, and not including, ``end`` matches if ``from_ <= start < before``
    and ``after < end <= until``.

    Attributes:
        from_: The lowest start, in milliseconds.
        before: The start must be below it, in milliseconds.
        after: The end must be above it, in milliseconds.
        until: The highest end, in milliseconds.
    """

    from_: int | None = None
    before: int | None = None
    after: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class TextMatch:
    """The beginning of a text (FHIR R4, search, string), compared by its code points.

    Attributes:
        beginning: How the text begins, normalized as the stored ones are; not empty.
        kind: The kind of the text; None matches any.
        anywhere: Whether the text may have this anywhere, and need not begin so.
    """

    beginning: str
    kind: str | None = None
    anywhere: bool = False

    @property
    def end(self) -> str | None:
        """The first text behind all that begin so, by their code points; None if there is none."""
        stem = self.beginning.rstrip(chr(sys.maxunicode))
        if not stem:
            return None
        following = ord(stem[-1]) + 1
        if following in _SURROGATES:  # no text that can be stored has one
            following = _SURROGATES.stop
        return stem[:-1] + chr(following)


Match = TokenMatch | TimeMatch | TextMatch
"""What a search value is compared with."""

ANYTHING = TokenMatch(None, None)
"""Matches every value, of any type, and an element that has none to search by."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A condition on the values of a version.

    A version without a value under the name fulfils a negated criterion only.

    Attributes:
        name: The name of the search parameter.
        any_of: Alternatives, of which at least one must match one of the values.
        negated: Whether none of the alternatives may match any of the values.
    """

    name: str
    any_of: tuple[Match, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Either:
    """Groups of criteria, of which one must hold: all criteria of a group together.

    None of the matches of its criteria has an owner (``TokenMatch.of``).

    Attributes:
        groups: The groups. Each begins with the criterion that most likely finds the fewest.
    """

    groups: tuple[tuple[Criterion, ...], ...]


Condition = Criterion | Either
"""What a version must fulfil to be found."""


@dataclass(frozen=True, slots=True)
class Order:
    """A sort order by the values under a name; versions without a value come last.

    Attributes:
        name: The name of the search parameter.
        descending: Whether to sort by the highest value of each version, from the highest to the
            lowest. Otherwise the order is ascending by the lowest value of each version.
        kind: The second part that values must have to be sorted by, such as the kind of a text;
            None is any.
    """

    name: str
    descending: bool = False
    kind: str | None = None


NEWEST_FIRST = (Order(LAST_UPDATED, descending=True),)
"""The default order of a search."""

SortKey = tuple[str | int | None, ...]
"""The place of a version in an order: a value for each of its names, then the id."""


class Findable(Protocol):
    """The fields of a version used for matching and sorting.

    Attributes:
        id: The id of the resource.
        system: The system of its identifier.
        value: The value of its identifier.
        updated: When the version was created, in milliseconds.
        search: Its search values, as `encode` writes them.
    """

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
    """Return a short number for the values under a name, with which an index can begin.

    Two names may have the same number; an index then finds candidates that do not match (ADR 18).

    Args:
        tenant: The id of the tenant.
        type_name: The FHIR type.
        name: The name of the search parameter.

    Returns:
        A number of 48 bits that is the same in every process.
    """
    digest = hashlib.blake2b(orjson.dumps([tenant, type_name, name]), digest_size=6).digest()
    return int.from_bytes(digest)


def encode(values: Iterable[SearchValue]) -> bytes:
    """Encode values for storage.

    Returns:
        A JSON array that contains each value once, in the order of its first occurrence.
    """
    return orjson.dumps(list(dict.fromkeys(values)))


def decode(search: bytes) -> list[SearchValue]:
    """Return the values that `encode` wrote."""
    return [(name, first, second) for name, first, second in orjson.loads(search)]


def values_under(name: str, of: Findable) -> list[SearchValue]:
    """Return the values of a version under a name.

    Args:
        name: The name of a search parameter, or ``ID``, ``IDENTIFIER`` or ``LAST_UPDATED``.
        of: The version.

    Returns:
        The values, in the order in which they are stored; empty if there are none.
    """
    if name == ID:
        return [(name, of.id, "")]
    if name == IDENTIFIER:
        return [(name, of.value, of.system)]
    if name == LAST_UPDATED:
        return [(name, of.updated, of.updated + 1)]
    return [item for item in decode(of.search) if item[0] == name]


def holds(condition: Condition, of: Findable) -> bool:
    """Return whether a version fulfils a condition."""
    if isinstance(condition, Either):
        return any(all(holds(one, of) for one in group) for group in condition.groups)
    criterion = condition
    found = any(
        _matches(item, value, of.id)
        for value in values_under(criterion.name, of)
        for item in criterion.any_of
    )
    return found is not criterion.negated


def sort_key(order: Sequence[Order], of: Findable) -> SortKey:
    """Return the place of a version in an order.

    Returns:
        The value for each name, None where the version has none, followed by the id.
    """
    return (*(_extreme(item, of) for item in order), of.id)


def comes_after(key: SortKey, other: SortKey, order: Sequence[Order]) -> bool:
    """Return whether the first of two places in an order is behind the second.

    Args:
        key: The first place.
        other: The second place.
        order: The order of both.

    Returns:
        Whether ``key`` is behind ``other``; False if they are equal.
    """
    for mine, theirs, item in zip(key, other, (*order, Order(ID)), strict=True):
        if mine != theirs:
            if mine is None or theirs is None:
                return mine is None
            return (mine > theirs) is not item.descending  # type: ignore[operator]
    return False


def _extreme(order: Order, of: Findable) -> str | int | None:
    values = [
        first
        for _name, first, second in values_under(order.name, of)
        if first is not None and order.kind in (None, second)
    ]
    choose = max if order.descending else min
    return choose(values, default=None)


def _matches(wanted: Match, value: SearchValue, resource_id: str) -> bool:
    _name, start, end = value
    if isinstance(wanted, TextMatch):
        if not isinstance(start, str) or wanted.kind not in (None, end):
            return False
        return wanted.beginning in start if wanted.anywhere else start.startswith(wanted.beginning)
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
