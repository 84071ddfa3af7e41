"""Numbers as integers in the same order."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.interactions.indexing.numbers import about, equal_to, place_of, range_of, split_number

NUMBERS = st.decimals(allow_nan=False, allow_infinity=False)


@given(NUMBERS, NUMBERS)
def test_places_are_in_the_order_of_the_numbers(one: Decimal, other: Decimal) -> None:
    lower, higher = sorted((one, other))

    assert place_of(lower) <= place_of(higher)


@given(st.decimals(places=3, min_value=-(10**9), max_value=10**9))
def test_numbers_of_15_digits_have_places_of_their_own(one: Decimal) -> None:
    assert place_of(one) < place_of(one + Decimal("0.001"))


@pytest.mark.parametrize("number", [Decimal("1e999"), Decimal("-1e999"), 5e-324, -0.0, 1.8e308])
def test_a_place_has_64_bits(number: Decimal | float) -> None:
    assert -(2**63) < place_of(number) < 2**63 - 1


def test_there_is_one_zero() -> None:
    assert place_of(0.0) == place_of(-0.0) == place_of(Decimal(0)) == 0


@given(NUMBERS)
def test_a_number_is_equal_to_itself_however_exact_it_is(number: Decimal) -> None:
    start, end = equal_to(number)

    assert start <= place_of(number) < end


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("100", ["99.5", "100.4999"], ["99.4999", "100.5"]),
        ("100.00", ["99.995", "100.00499"], ["99.9949", "100.005"]),
        ("1e2", ["95", "104.99"], ["94.99", "105"]),
        ("-5.4", ["-5.45", "-5.351"], ["-5.451", "-5.35"]),
        ("0", ["-0.5", "0.49"], ["0.5"]),
        ("13.2", ["13.15", "13.2", "13.249999"], ["13.25", "13.149999"]),
    ],
)
def test_equality_depends_on_the_digits(text: str, inside: list[str], outside: list[str]) -> None:
    _prefix, number = split_number(text) or ("", Decimal())
    start, end = equal_to(number)

    assert all(start <= place_of(Decimal(one)) < end for one in inside)
    assert not any(start <= place_of(Decimal(one)) < end for one in outside)


def test_about_is_a_tenth_around_a_number() -> None:
    start, end = about(Decimal(-100))

    assert (start, end) == (place_of(-110), place_of(-90) + 1)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("5.4", ("eq", Decimal("5.4"))),
        ("ge-5", ("ge", Decimal(-5))),
        ("ap1.0e-3", ("ap", Decimal("0.0010"))),
        ("1e 2", ("eq", Decimal("1e2"))),
        ("5,4", None),
        ("NaN", None),
        ("gt", None),
        ("1e9999", None),
        ("٣", None),
    ],
)
def test_a_value_is_a_number_with_or_without_a_prefix(
    text: str, read: tuple[str, Decimal] | None
) -> None:
    assert split_number(text) == read


@pytest.mark.parametrize(
    ("comparator", "holds"),
    [
        ("<", [4.9]),
        ("<=", [4.9, 5]),
        (">=", [5, 5.1]),
        (">", [5.1]),
    ],
)
def test_a_comparator_stands_for_all_numbers_on_one_side(
    comparator: str, holds: list[float]
) -> None:
    start, end = range_of({"value": 5, "comparator": comparator}) or (0, 0)

    assert [one for one in (4.9, 5, 5.1) if start <= place_of(one) < end] == holds


def test_a_quantity_without_a_value_is_no_number() -> None:
    assert range_of({"unit": "g/dL"}) is None
