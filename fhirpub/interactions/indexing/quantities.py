"""Quantities as numbers with units, compared as they are written and by UCUM (ADR 42)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fhirpub.fhir.units import ucum
from fhirpub.interactions.indexing.numbers import NumberRange, Place, place_of, range_of
from fhirpub.interactions.indexing.texts import shorten

_MAX_CACHED_LENGTH = 200
"""Units are few and short; what is longer would only fill the cache."""


def ranges_of(quantity: Mapping[str, Any]) -> tuple[dict[str, NumberRange], tuple[str, ...]]:
    """Return the numbers that a quantity may be, and each way to write its unit.

    The numbers stand under an empty name as they are, and under that of the base units of UCUM if
    the unit can be converted. The ways to write the unit leave out what that stands for.
    """
    known = range_of(quantity)
    if known is None:
        return {}, ()
    system, code = quantity.get("system", ""), quantity.get("code", "")
    texts = system, code, quantity.get("unit", "")
    is_short = sum(map(len, texts)) <= _MAX_CACHED_LENGTH
    units, base = (_cached_units if is_short else _units_of)(*texts)
    if base is None:
        return {"": known}, units
    name, place = base
    return {"": known, name: range_of(quantity, place) or known}, units


Base = tuple[str, Place]
"""The name of base units, and what finds the place of a number of other units in them."""


def base_of(system: str, code: str) -> Base | None:
    """Return the base units of a unit; None if it is not converted."""
    unit = ucum.unit_of(code) if system == ucum.SYSTEM else None
    if unit is None:
        return None
    convert = unit.to_base
    return f"={unit.dimension}", lambda number: place_of(convert(number))


def _units_of(system: str, code: str, unit: str) -> tuple[tuple[str, ...], Base | None]:
    """Return each way to write a unit, and its base units, which leave one of them out."""
    base = base_of(system, code)
    units = [written_unit("", one) for one in (code, unit) if one]
    if code and system and base is None:
        units.append(written_unit(system, code))
    return tuple(dict.fromkeys(units)), base


_cached_units = lru_cache(maxsize=512)(_units_of)


def written_unit(system: str, code: str) -> str:
    """Return a unit as it is stored: by its code, or by its text."""
    escaped = system.replace("\\", "\\\\").replace("|", "\\|")
    return shorten(f"{escaped}|{code}")


def numbers_under(name: str, unit: str) -> str:
    """Return the name under which numbers of a unit are stored, those under a name; of any too."""
    return f"{name}:{unit}" if unit else name


def units_under(name: str) -> str:
    """Return the name under which the units of the numbers under a name are stored."""
    return f"{name}:unit"


def may_be_several(name: str) -> bool:
    """Return whether a resource may have several quantities under a name, each with its unit."""
    return "." in name
