"""What the values of search parameters match, one by one (R4 search, 3.1.1.4 and 3.1.1.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal

from fhirpub.fhir.date_value import TIME_RULE, split_prefix
from fhirpub.fhir.search_value import plain, quantity_of, token_of
from fhirpub.interactions.indexing.numbers import (
    NUMBER_RULE,
    Place,
    about,
    equal_to,
    place_of,
    split_number,
)
from fhirpub.interactions.indexing.pairs import Pairing
from fhirpub.interactions.indexing.quantities import (
    base_of,
    may_be_several,
    numbers_under,
    units_under,
    written_unit,
)
from fhirpub.interactions.indexing.texts import normalize_text, shorten
from fhirpub.storage.criteria import Criterion, Match, TextMatch, TimeMatch, TokenMatch


@dataclass(frozen=True, slots=True)
class Sought:
    """What one value of a parameter matches.

    ``unit`` is set for numbers of a unit: that of base units, which begins with an equals sign, or
    as it was written.
    """

    matches: tuple[Match, ...]
    unit: str = ""

    def stored_under(self, name: str) -> tuple[Criterion, ...]:
        """Return the criteria on values under a name."""
        if self.unit and self.unit[0] != "=" and not may_be_several(name):
            unit = Criterion(units_under(name), (TokenMatch(self.unit, ""),))
            return Criterion(name, self.matches), unit
        return (Criterion(numbers_under(name, self.unit), self.matches),)


@dataclass(frozen=True, slots=True)
class Pair:
    """One value of a composite: a code, and what the other value matches."""

    code: TokenMatch
    other: Sought

    def found_in(self, pairing: Pairing) -> tuple[Criterion, ...]:
        """Return the criteria on a resource that has the pair; the first leads to it."""
        code, unit = self.code, self.other.unit
        if not pairing.is_alone:
            name = pairing.stored_under(code.value or "", code.system, unit)
            return (Criterion(name, self.other.matches),)
        base = unit if unit[:1] == "=" else ""
        name = pairing.stored_under(code.value or "", None, base)
        exact = self.other.stored_under(pairing.second) if unit != base else ()
        system = (Criterion(pairing.first, (code,)),) if code.system is not None else ()
        return (Criterion(name, self.other.matches), *system, *exact)


@dataclass(frozen=True, slots=True)
class Asking:
    """What the meaning of a value depends on: a time zone, the time, and a kind of texts."""

    zone: tzinfo
    now: int
    kind: str | None = None


def _token(text: str, _asked: Asking) -> Sought | None:
    token = token_of(text)
    return None if token is None else Sought((TokenMatch(token.system, token.value),))


def _time(text: str, asked: Asking) -> Sought | None:
    read = split_prefix(text, default_zone=asked.zone)
    return None if read is None else Sought(tuple(times_meant_by(*read, now=asked.now)))


def _number(text: str, _asked: Asking) -> Sought | None:
    number = split_number(plain(text))
    return None if number is None else Sought(tuple(numbers_meant_by(*number)))


def _quantity(text: str, _asked: Asking) -> Sought | None:
    read = quantity_of(text)
    number = split_number(read[0]) if read else None
    if read is None or number is None:
        return None
    _digits, system, code = read
    base = base_of(system, code)
    if base is not None:
        unit, place = base
        return Sought(tuple(numbers_meant_by(*number, place=place)), unit)
    unit = written_unit(system, code) if code else ""
    return Sought(tuple(numbers_meant_by(*number)), unit)


def _text(text: str, asked: Asking) -> Sought | None:
    normalized = normalize_text(plain(text))
    return Sought((TextMatch(normalized, asked.kind),)) if normalized else None


def _uri(text: str, _asked: Asking) -> Sought | None:
    return Sought((TokenMatch(None, shorten(plain(text))),)) if text else None


READERS: dict[str, tuple[str, Callable[[str, Asking], Sought | None]]] = {
    "token": ("must be value, system|value, system| or |value", _token),
    "date": (f"{TIME_RULE}, with or without a prefix such as ge", _time),
    "number": (
        "must be a number such as 5.4, with or without a prefix such as ge",
        _number,
    ),
    "quantity": (NUMBER_RULE, _quantity),
    "string": (
        "must be how a text begins, such as a name: letters or digits",
        _text,
    ),
    "uri": ("must be a URI", _uri),
}
"""What a value of a type must be, and what reads it."""


def numbers_meant_by(prefix: str, number: Decimal, *, place: Place = place_of) -> list[TimeMatch]:
    """Return what a prefix means for numbers (R4 search, 3.1.1.4.11).

    Only equality looks at how exactly a number is written.
    """
    if prefix == "ap":
        return times_meant_by("eq", about(number, place), now=0)
    start = place(number)
    exact = (start, start + 1)
    meant = equal_to(number, place) if prefix in ("eq", "ne") else exact
    return times_meant_by(prefix, meant, now=0)


def times_meant_by(prefix: str, stretch: tuple[int, int], *, now: int) -> list[TimeMatch]:
    """Return what a prefix means for times that begin and end somewhere (R4 search, 3.1.1.5.4)."""
    start, end = stretch
    slack = 0
    if prefix == "ap":  # a tenth of the distance to now, as R4 suggests
        slack = max(abs(now - start), abs(now - end)) // 10
    return {
        "eq": [TimeMatch(from_=start, until=end)],
        "ne": [TimeMatch(before=start), TimeMatch(after=end)],
        "gt": [TimeMatch(after=end)],
        "lt": [TimeMatch(before=start)],
        "ge": [TimeMatch(after=end), TimeMatch(from_=start)],
        "le": [TimeMatch(before=start), TimeMatch(until=end)],
        "sa": [TimeMatch(from_=end)],
        "eb": [TimeMatch(until=start)],
        "ap": [TimeMatch(before=end + slack, after=start - slack)],
    }[prefix]
