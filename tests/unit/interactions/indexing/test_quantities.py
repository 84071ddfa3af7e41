"""Quantities as numbers with units, as they are written and in base units."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fhirpub.interactions.indexing.numbers import place_of
from fhirpub.interactions.indexing.quantities import (
    base_of,
    may_be_several,
    numbers_under,
    ranges_of,
    units_under,
    written_unit,
)

UCUM = "http://unitsofmeasure.org"


def quantity(value: Any = Decimal(5), **changes: Any) -> dict[str, Any]:
    return {"value": value, "unit": "milligrams", "system": UCUM, "code": "mg", **changes}


def at(number: Any) -> tuple[int, int]:
    place = place_of(Decimal(number))
    return place, place + 1


def base(code: str, system: str = UCUM) -> str:
    known = base_of(system, code)
    assert known is not None
    return known[0]


def test_a_unit_that_is_converted_leaves_out_its_system() -> None:
    ranges, units = ranges_of(quantity())

    assert ranges == {"": at(5), base("mg"): at("0.005")}
    assert units == ("|mg", "|milligrams")


def test_units_of_one_dimension_have_one_name_and_one_scale() -> None:
    milligrams, _ = ranges_of(quantity(Decimal(1_000)))
    grams, _ = ranges_of(quantity(Decimal(1), unit="g", code="g"))

    assert base("mg") == base("g") != base("s")
    assert milligrams[base("g")] == grams[base("g")]
    assert milligrams[""] != grams[""]


def test_a_comparator_holds_in_base_units_as_well() -> None:
    ranges, _units = ranges_of(quantity(comparator=">"))

    assert ranges[""][0] == at(5)[1]
    assert ranges[base("mg")][0] == at("0.005")[1]
    assert ranges[""][1] == ranges[base("mg")][1]


@pytest.mark.parametrize(("system", "code"), [("urn:x", "mg"), (UCUM, "drops"), ("", "mg")])
def test_a_unit_that_is_not_converted_has_its_number_alone(system: str, code: str) -> None:
    ranges, units = ranges_of(quantity(system=system, code=code))

    assert ranges == {"": at(5)}
    assert units == (f"|{code}", "|milligrams", *((f"{system}|{code}",) if system else ()))
    assert base_of(system, code) is None


def test_a_unit_that_is_written_twice_counts_once() -> None:
    assert ranges_of(quantity(unit="mg"))[1] == ("|mg",)


@pytest.mark.parametrize(
    ("changes", "units"),
    [
        ({"unit": "", "system": "", "code": ""}, ()),
        ({"system": "urn:x", "code": ""}, ("|milligrams",)),
        ({"unit": "", "system": "", "code": "mg"}, ("|mg",)),
    ],
)
def test_what_is_not_written_is_no_unit(changes: dict[str, str], units: tuple[str, ...]) -> None:
    assert ranges_of(quantity(**changes)) == ({"": at(5)}, units)


def test_a_number_without_a_unit_is_a_number() -> None:
    assert ranges_of({"value": Decimal(5)}) == ({"": at(5)}, ())


def test_a_unit_without_a_number_is_nothing() -> None:
    assert ranges_of({"unit": "mg", "system": UCUM, "code": "mg"}) == ({}, ())


@pytest.mark.parametrize("length", [100, 190, 500])
def test_a_long_unit_is_read_as_a_short_one(length: int) -> None:
    ranges, units = ranges_of(quantity(system="urn:x", code="c" * length, unit="u"))

    assert ranges == {"": at(5)}
    assert units == ("|" + "c" * length, "|u", "urn:x|" + "c" * length)


def test_a_unit_is_written_without_doubt() -> None:
    assert written_unit("a|b", "c") == r"a\|b|c"
    assert written_unit("a\\", "b") == r"a\\|b"
    assert written_unit("a\\|b", "c|d") == r"a\\\|b|c|d"
    assert written_unit("", "c") == "|c"


def test_a_unit_beyond_what_is_kept_is_made_short() -> None:
    assert len(written_unit("", "c" * 511)) == 512
    assert len(written_unit("", "c" * 512)) == 64 + 1 + 64


def test_numbers_and_units_stand_under_names_of_their_own() -> None:
    assert numbers_under("valueQuantity", "") == "valueQuantity"
    assert numbers_under("valueQuantity", "|mg") == "valueQuantity:|mg"
    assert units_under("valueQuantity") == "valueQuantity:unit"


def test_only_below_an_element_there_may_be_several() -> None:
    assert not may_be_several("valueQuantity")
    assert may_be_several("component.valueQuantity")
    assert may_be_several("valueQuantity|component.valueQuantity")
