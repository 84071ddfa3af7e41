"""Units of UCUM in base units, compared with the definitions of UCUM."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.units.ucum import unit_of
from tests.collector import computing_less_than


@pytest.mark.parametrize(
    ("code", "dimension", "factor"),
    [
        ("mg/dL", "g.m-3", "10"),
        ("g/L", "g.m-3", "1000"),
        ("g%", "g.m-3", "10000"),
        ("mmol/L", "m-3.mol", "1"),
        ("10*9/L", "m-3", "1e12"),
        ("10^3/uL", "m-3", "1e12"),
        ("{cells}/uL", "m-3", "1e9"),
        ("mm[Hg]", "g.m-1.s-2", "133322"),
        ("kPa", "g.m-1.s-2", "1000000"),
        ("mL/min/{1.73_m2}", "m3.s-1", "1/60000000"),
        ("U/L", "m-3.mol.s-1", "1/60000"),
        ("m[IU]/L", "[iU].m-3", "1"),
        ("meq/L", "eq.m-3", "1"),
        ("mosm/kg", "g-1.osm", "1/1000000"),
        ("kg/m2", "g.m-2", "1000"),
        ("kg.m-2", "g.m-2", "1000"),
        ("mg/(24.h)", "g.s-1", "1/86400000"),
        ("[lb_av]", "g", "453.59237"),
        ("%", "1", "0.01"),
        ("1", "1", "1"),
        ("/h", "s-1", "1/3600"),
        ("ug/mg{creat}", "1", "0.001"),
        ("mg/({a}.L)", "g.m-3", "1"),
        ("a", "s", "31557600"),
    ],
)
def test_a_unit_is_so_many_base_units(code: str, dimension: str, factor: str) -> None:
    unit = unit_of(code)

    assert unit is not None
    assert (unit.dimension, unit.factor) == (dimension, Fraction(factor))


@pytest.mark.parametrize(
    "code",
    [
        "",
        "x",
        "mg//L",
        "/0",
        "mg/",
        "(mg",
        "mg)",
        "m0",
        "m99",
        "mins",
        "kkg",
        "mg L",
        "{a",
        "B[SPL]",
        "m" * 65,
        "m." * 31 + "(",
        "10*99.10*99.10*99.10*99",
        "Mg[Hg]",
        "l1e9",
        "é",
    ],
)
def test_what_is_not_known_is_not_converted(code: str) -> None:
    assert unit_of(code) is None


def test_units_that_are_not_comparable_have_other_dimensions() -> None:
    codes = ("mmol/L", "meq/L", "mosm/L", "[iU]/L", "[arb'U]/L", "10*9/L", "g/L")

    assert len({unit.dimension for code in codes if (unit := unit_of(code))}) == len(codes)


def test_temperatures_have_an_offset() -> None:
    celsius, fahrenheit, kelvin = unit_of("Cel"), unit_of("[degF]"), unit_of("K")
    assert celsius and fahrenheit and kelvin  # noqa: PT018

    expected = Decimal("310.15")
    assert celsius.to_base(37) == fahrenheit.to_base(98.6) == kelvin.to_base(expected) == expected


@pytest.mark.parametrize("number", [13.2, Decimal("13.2"), Decimal("13.20")])
def test_a_number_is_converted_exactly_however_it_was_read(number: Decimal | float) -> None:
    unit = unit_of("g/dL")

    assert unit is not None
    assert unit.to_base(number) == 132_000


@pytest.mark.parametrize(
    "number", ["1e999999999", "-1e999999999", "1e-999999999", "7" * 100_000, "0." + "3" * 100_000]
)
def test_a_hostile_number_takes_no_time(number: str) -> None:
    unit = unit_of("mg/dL")
    assert unit is not None
    hostile = Decimal(number)

    with computing_less_than(0.1):
        float(unit.to_base(hostile))


@given(st.text("mgLlskd./()0123456789{}[]*^%-+aUH", max_size=64))
def test_any_text_is_a_unit_or_none(code: str) -> None:
    unit = unit_of(code)

    assert unit is None or unit.factor > 0


@pytest.mark.parametrize("code", ["m." * 31 + "m", "(" * 31 + "m" + ")" * 31, "V9/F." * 12 + "S"])
def test_a_code_of_dozens_of_parts_is_not_converted(code: str) -> None:
    assert unit_of(code) is None


def test_a_code_of_at_most_64_characters_is_read() -> None:
    assert unit_of(f"{{{'x' * 62}}}") is not None
    assert unit_of(f"{{{'x' * 63}}}") is None


# The tables, as UCUM has them


@pytest.mark.parametrize(
    ("prefix", "power"),
    [
        *(("Y", 24), ("Z", 21), ("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3)),
        *(("h", 2), ("da", 1), ("d", -1), ("c", -2), ("m", -3), ("u", -6), ("n", -9)),
        *(("p", -12), ("f", -15), ("a", -18), ("z", -21), ("y", -24)),
    ],
)
def test_a_prefix_is_a_power_of_ten(prefix: str, power: int) -> None:
    unit = unit_of(f"{prefix}g")

    assert unit is not None
    assert (unit.dimension, unit.factor) == ("g", Fraction(10) ** power)


@pytest.mark.parametrize(
    ("code", "dimension", "factor"),
    [
        *(("l", "m3", "1/1000"), ("t", "g", "1000000"), ("Hz", "s-1", "1")),
        *(("N", "g.m.s-2", "1000"), ("Pa", "g.m-1.s-2", "1000"), ("bar", "g.m-1.s-2", "1e8")),
        *(("m[H2O]", "g.m-1.s-2", "9806650"), ("atm", "g.m-1.s-2", "101325000")),
        *(("J", "g.m2.s-2", "1000"), ("W", "g.m2.s-3", "1000"), ("cal", "g.m2.s-2", "4184")),
        *(("A", "C.s-1", "1"), ("V", "C-1.g.m2.s-2", "1000"), ("S", "C2.g-1.m-2.s", "1/1000")),
        *(("Ohm", "C-2.g.m2.s-1", "1000"), ("F", "C2.g-1.m-2.s2", "1/1000"), ("sr", "rad2", "1")),
        *(("Bq", "s-1", "1"), ("Ci", "s-1", "37000000000"), ("Gy", "m2.s-2", "1")),
        *(("Sv", "m2.s-2", "1"), ("kat", "mol.s-1", "1"), ("[Cal]", "g.m2.s-2", "4184000")),
        *(("[ppth]", "1", "1e-3"), ("[ppm]", "1", "1e-6"), ("[ppb]", "1", "1e-9")),
        *(("10*", "1", "10"), ("10^2", "1", "100"), ("min", "s", "60"), ("h", "s", "3600")),
        *(("d", "s", "86400"), ("wk", "s", "604800"), ("mo", "s", "2629800")),
        *(("[in_i]", "m", "0.0254"), ("[ft_i]", "m", "0.3048"), ("[oz_av]", "g", "28.349523125")),
        *(("deg", "rad", "0.01745329251994329577"), ("eq", "eq", "1"), ("osm", "osm", "1")),
        *(("cd", "cd", "1"), ("mol", "mol", "1"), ("K", "K", "1"), ("[IU]", "[iU]", "1")),
    ],
)
def test_a_named_unit_is_so_many_base_units(code: str, dimension: str, factor: str) -> None:
    unit = unit_of(code)

    assert unit is not None
    assert (unit.dimension, unit.factor) == (dimension, Fraction(factor))


@pytest.mark.parametrize("code", ["[CFU]", "[PFU]", "[arb'U]", "[anti'Xa'U]", "[AU]", "[EU]"])
def test_an_arbitrary_unit_is_compared_with_itself_alone(code: str) -> None:
    unit = unit_of(f"{code}/mL")

    assert unit is not None
    assert unit.dimension == f"{code}.m-3"


@pytest.mark.parametrize("code", ["kmin", "k[ft_i]", "m%", "k[CFU]", "mCel"])
def test_a_unit_that_takes_no_prefix_is_not_converted_with_one(code: str) -> None:
    assert unit_of(code) is None


@pytest.mark.parametrize(
    ("code", "factor"),
    [("g/m/s", "1"), ("g/(m.s)", "1"), ("g/m.s", "1"), ("kg/(m.ks2)", "1/1000"), ("m9", "1")],
)
def test_a_division_holds_for_what_follows_it_directly(code: str, factor: str) -> None:
    expected = {"g/m.s": "g.m-1.s", "kg/(m.ks2)": "g.m-1.s-2", "m9": "m9"}.get(code, "g.m-1.s-1")
    unit = unit_of(code)

    assert unit is not None
    assert (unit.dimension, unit.factor) == (expected, Fraction(factor))


@pytest.mark.parametrize(("code", "is_known"), [("m9", True), ("m10", False), ("10*99", True)])
def test_a_power_has_one_digit_but_of_ten(code: str, *, is_known: bool) -> None:
    assert (unit_of(code) is not None) is is_known


@pytest.mark.parametrize("code", ["ym9.ym9", "Ym9.Ym9", "(ym9)/(Ym9)"])
def test_a_unit_of_more_than_300_digits_is_not_converted(code: str) -> None:
    assert unit_of(code) is None


@pytest.mark.parametrize(("parts", "is_known"), [(8, True), (9, False)])
def test_a_code_has_at_most_16_items(parts: int, *, is_known: bool) -> None:
    assert (unit_of("/m" * parts) is not None) is is_known


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e301", "-1e301", "1e-301"])
def test_what_cannot_be_converted_is_returned_as_it_is(number: str) -> None:
    unit = unit_of("kg")

    assert unit is not None
    assert str(unit.to_base(Decimal(number))) == str(Decimal(number))
