"""Numbers as integers in the same order, and quantities of searches (R4 search, 3.1.1.4.11)."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any

from fhirpub.fhir.date_value import PREFIXES

NUMBER_RULE = "must be a number such as 5.4, with a prefix such as ge and |system|code if need be"

_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?P<power>[eE][+-]?[0-9]{1,3})?")
_EXACT = Context(prec=200)
_HIGHEST, _LOWEST = float("inf"), float("-inf")

NumberRange = tuple[int, int]
"""The place of the first number in the order of all, and the first place behind the last."""


def place_of(number: Decimal | float) -> int:
    """Return an integer of 64 bits that compares with those of others as the numbers do.

    It is the place of the nearest IEEE 754 double among all doubles: numbers that differ in no
    more than the 16th digit may have the same.
    """
    try:
        nearest = float(number)
    except OverflowError:
        nearest = _HIGHEST if number > 0 else _LOWEST
    bits: int = struct.unpack(">q", struct.pack(">d", abs(nearest)))[0]
    return -bits if nearest < 0 else bits


_FIRST, _BEHIND_ALL = place_of(_LOWEST), place_of(_HIGHEST) + 1
Place = Callable[[Decimal], int]
"""Returns the place of a number, as `place_of` does, such as after its conversion."""


def range_of(quantity: Mapping[str, Any], place_of: Place = place_of) -> NumberRange | None:
    """Return the numbers that a Quantity may be: one, or all below or above it."""
    if "value" not in quantity:
        return None
    place = place_of(quantity["value"])
    match quantity.get("comparator"):
        case "<":
            return _FIRST, place
        case "<=":
            return _FIRST, place + 1
        case ">=":
            return place, _BEHIND_ALL
        case ">":
            return place + 1, _BEHIND_ALL
    return place, place + 1


def split_number(text: str) -> tuple[str, Decimal] | None:
    """Read a value of a search: a prefix, ``eq`` if there is none, and a number."""
    prefix, digits = (text[:2], text[2:]) if text[:2] in PREFIXES else ("eq", text)
    # An unescaped plus sign in a URL has been decoded as a blank.
    digits = digits.replace(" ", "+")
    return (prefix, Decimal(digits)) if _NUMBER.fullmatch(digits) else None


def equal_to(number: Decimal, place_of: Place = place_of) -> NumberRange:
    """Return the numbers that are equal to one as exactly as it is written: 5.4 is 5.35 to 5.45.

    R4's example for a power of ten is 1e2, which is 95 to 105.
    """
    exponent = int(number.as_tuple().exponent)
    half = Decimal(5).scaleb(exponent - (2 if exponent > 0 else 1))
    return _between(number, half, place_of)


def about(number: Decimal, place_of: Place = place_of) -> NumberRange:
    """Return the numbers that are at most a tenth of it away from a number."""
    start, end = _between(number, abs(number) / 10, place_of)
    return start, end + 1


def _between(number: Decimal, distance: Decimal, place_of: Place) -> NumberRange:
    place = place_of(number)
    start = place_of(_EXACT.subtract(number, distance))
    end = place_of(_EXACT.add(number, distance))
    return min(start, place), max(end, place + 1)
