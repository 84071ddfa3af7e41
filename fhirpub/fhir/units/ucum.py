"""Units of UCUM in their base units, as far as laboratories and clinics use them (ADR 42).

What is not in the tables below is not converted. Units that UCUM calls arbitrary, such as `[iU]`,
are compared with themselves alone, and so are amounts of substance, equivalents and osmoles, which
UCUM takes for one: how much of one is how much of another depends on the substance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice

SYSTEM = "http://unitsofmeasure.org"
_MAX_CODE = 64
_MAX_ITEMS = 16
"""So many signs, symbols and numbers a code may have: laboratories send less than half of that,
and hundreds of codes of one resource are read on the event loop."""
_MAX_POWER = 9
_MAX_MAGNITUDE = 300
_EXACT = Context(prec=60)

_PREFIXES: Mapping[str, Fraction] = {
    prefix: Fraction(10) ** power
    for prefix, power in {
        "Y": 24,
        "Z": 21,
        "E": 18,
        "P": 15,
        "T": 12,
        "G": 9,
        "M": 6,
        "k": 3,
        "h": 2,
        "da": 1,
        "d": -1,
        "c": -2,
        "m": -3,
        "u": -6,
        "n": -9,
        "p": -12,
        "f": -15,
        "a": -18,
        "z": -21,
        "y": -24,
    }.items()
}
_BASE = ("m", "s", "g", "K", "cd", "C", "rad", "mol", "eq", "osm", "[iU]")
"""Units that take prefixes and are not made of others."""
_ARBITRARY = (
    "[pH] [arb'U] [USP'U] [GPL'U] [MPL'U] [APL'U] [beth'U] [anti'Xa'U] [todd'U] [dye'U] [smgy'U] "
    "[bdsk'U] [ka'U] [knk'U] [mclg'U] [tb'U] [CCID_50] [TCID_50] [EID_50] [PFU] [FFU] [CFU] [BAU] "
    "[AU] [Amb'a'1'U] [PNU] [Lf] [D'ag'U] [ELU] [EU]"
).split()
_METRIC: Mapping[str, tuple[str, str]] = {
    "L": ("1", "dm3"),
    "l": ("1", "dm3"),
    "t": ("1000", "kg"),
    "g%": ("1", "g/dL"),
    "Hz": ("1", "s-1"),
    "N": ("1", "kg.m/s2"),
    "Pa": ("1", "N/m2"),
    "bar": ("100000", "Pa"),
    "m[Hg]": ("133.3220", "kPa"),
    "m[H2O]": ("9.80665", "kPa"),
    "J": ("1", "N.m"),
    "W": ("1", "J/s"),
    "cal": ("4.184", "J"),
    "A": ("1", "C/s"),
    "V": ("1", "J/C"),
    "Ohm": ("1", "V/A"),
    "S": ("1", "Ohm-1"),
    "F": ("1", "C/V"),
    "sr": ("1", "rad2"),
    "Bq": ("1", "s-1"),
    "Ci": ("37000000000", "Bq"),
    "Gy": ("1", "J/kg"),
    "Sv": ("1", "J/kg"),
    "kat": ("1", "mol/s"),
    "U": ("1", "umol/min"),
    "[IU]": ("1", "[iU]"),
}
"""Units that take prefixes: how many of which others each is."""
_OTHER: Mapping[str, tuple[str, str]] = {
    "10*": ("10", "1"),
    "10^": ("10", "1"),
    "%": ("0.01", "1"),
    "[ppth]": ("0.001", "1"),
    "[ppm]": ("0.000001", "1"),
    "[ppb]": ("0.000000001", "1"),
    "atm": ("101325", "Pa"),
    "min": ("60", "s"),
    "h": ("60", "min"),
    "d": ("24", "h"),
    "wk": ("7", "d"),
    "mo": ("30.4375", "d"),
    "a": ("365.25", "d"),
    "[Cal]": ("1", "kcal"),
    "[in_i]": ("2.54", "cm"),
    "[ft_i]": ("12", "[in_i]"),
    "[lb_av]": ("453.59237", "g"),
    "[oz_av]": ("28.349523125", "g"),
    "deg": ("0.01745329251994329577", "rad"),
}
_ITEM = re.compile(
    r"(?P<sign>[./()])"
    r"|(?P<symbol>10[*^]|(?:\[[^]\[(){}]*\]|[A-Za-z%'])+)(?P<power>[+-]?[0-9]{1,2})?"
    r"|(?P<number>[0-9]{1,9})"
    r"|\{[^{}]*\}"
)


@dataclass(frozen=True)
class Unit:
    """A unit as a number of base units, which ``dimension`` names, behind an offset of them."""

    dimension: str
    factor: Fraction
    offset: Decimal = Decimal(0)

    def to_base(self, number: Decimal | float) -> Decimal:
        """Return a number of these units as one of base units, to 60 digits.

        What is beyond the numbers of 300 digits is returned as it is: no unit makes it smaller.
        """
        known = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
        if not known.is_finite() or abs(known.adjusted()) > _MAX_MAGNITUDE:
            return known
        over, under = self._ratio
        times = _EXACT.multiply(_EXACT.add(known, self.offset), over)
        return _EXACT.divide(times, under) if under != 1 else times

    @cached_property
    def _ratio(self) -> tuple[Decimal, Decimal]:
        return Decimal(self.factor.numerator), Decimal(self.factor.denominator)


_TEMPERATURES: Mapping[str, Unit] = {
    "Cel": Unit("K", Fraction(1), Decimal("273.15")),
    "[degF]": Unit("K", Fraction(5, 9), Decimal("459.67")),
}


def unit_of(code: str) -> Unit | None:
    """Return the unit of a code of UCUM, or None if it is none, or is not converted."""
    return _unit_of(code) if 0 < len(code) <= _MAX_CODE else None


@lru_cache(maxsize=512)
def _unit_of(code: str) -> Unit | None:
    if code in _TEMPERATURES:
        return _TEMPERATURES[code]
    try:
        factor, powers = _Term(code).read()
    except (KeyError, ValueError, IndexError):
        return None
    least, most = Fraction(10) ** -_MAX_MAGNITUDE, Fraction(10) ** _MAX_MAGNITUDE
    if not least < factor < most:
        return None
    named = [f"{name}{power if power != 1 else ''}" for name, power in sorted(powers.items())]
    return Unit(".".join(named) or "1", factor)


_Measure = tuple[Fraction, dict[str, int]]
"""A number, and the powers of base units that it is multiplied by."""


class _Term:
    """Reads the items of a code from left to right; ValueError or IndexError if it is none."""

    def __init__(self, code: str) -> None:
        self._items = [*islice(_items_of(code), _MAX_ITEMS + 1)]
        if len(self._items) > _MAX_ITEMS:
            raise ValueError(code)
        self._at = 0

    def read(self) -> _Measure:
        found = self._term()
        if self._at < len(self._items):
            raise ValueError(self._at)
        return found

    def _term(self) -> _Measure:
        sign = 1
        if self._next_is("/"):
            sign = -1
        found = _to_power(self._component(), sign)
        while self._next_is(".", "/"):
            sign = -1 if self._items[self._at - 1][0] == "/" else 1
            found = _multiply(found, _to_power(self._component(), sign))
        return found

    def _next_is(self, *signs: str) -> bool:
        is_one = self._at < len(self._items) and self._items[self._at][0] in signs
        self._at += is_one
        return is_one

    def _component(self) -> _Measure:
        if self._next_is("("):
            found = self._term()
            if not self._next_is(")"):
                raise ValueError(self._at)
            return found
        sign, measure = self._items[self._at]
        if measure is None:
            raise ValueError(sign)
        self._at += 1
        return measure


def _items_of(code: str) -> Iterator[tuple[str, _Measure | None]]:
    """Yield the signs of a code, and the measures between them."""
    at, before = 0, ""
    while at < len(code):
        match = _ITEM.match(code, at)
        if match is None:
            raise ValueError(at)
        at = match.end()
        if match["sign"]:
            yield match["sign"], None
        elif match["symbol"]:
            yield "", _to_power(_measure_of(match["symbol"]), _power_of(match))
        elif match["number"]:
            yield "", (_whole(match["number"]), {})
        elif before in ("", ".", "/", "("):  # a note alone is one, behind a unit it is nothing
            yield "", (Fraction(1), {})
        before = match[0]


def _whole(text: str) -> Fraction:
    number = int(text)
    if not number:
        raise ValueError(text)
    return Fraction(number)


def _power_of(match: re.Match[str]) -> int:
    power = int(match["power"] or 1)
    if not power or (abs(power) > _MAX_POWER and match["symbol"] not in ("10*", "10^")):
        raise ValueError(power)
    return power


@lru_cache(maxsize=256)
def _measure_of(symbol: str) -> _Measure:
    """Return what a symbol stands for, with a prefix or without; KeyError if it is not known."""
    if symbol in _BASE or symbol in _ARBITRARY:
        return Fraction(1), {symbol: 1}
    defined = _METRIC.get(symbol) or _OTHER.get(symbol)
    if defined:
        number, of = defined
        return _multiply((Fraction(number), {}), _Term(of).read())
    for length in (1, 2):
        prefix, rest = symbol[:length], symbol[length:]
        if prefix in _PREFIXES and (rest in _BASE or rest in _METRIC):
            return _multiply((_PREFIXES[prefix], {}), _measure_of(rest))
    raise KeyError(symbol)


def _multiply(one: _Measure, other: _Measure) -> _Measure:
    powers = dict(one[1])
    for name, power in other[1].items():
        powers[name] = powers.get(name, 0) + power
    return one[0] * other[0], {name: power for name, power in powers.items() if power}


def _to_power(measure: _Measure, power: int) -> _Measure:
    factor, powers = measure
    return factor**power, {name: each * power for name, each in powers.items()}
