"""Where what a value means is looked for: numbers by their units, and pairs of two values."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from decimal import Decimal

import pytest

from fhirpub.interactions.indexing.numbers import place_of
from fhirpub.interactions.indexing.quantities import numbers_under, units_under
from fhirpub.interactions.search.sought import (
    READERS,
    Asking,
    Sought,
    numbers_meant_by,
    times_meant_by,
)
from fhirpub.storage.criteria import Criterion, TextMatch, TimeMatch, TokenMatch

NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z
MINUTE, HOUR = 60_000, 3_600_000
NUMBER = TimeMatch(from_=1, until=2)
UTC_NOW = Asking(zone=UTC, now=NOON)


def sought(kind: str, text: str, asked: Asking = UTC_NOW) -> Sought | None:
    _rule, read = READERS[kind]
    return read(text, asked)


def test_a_number_without_a_unit_is_looked_for_under_its_name() -> None:
    assert Sought((NUMBER,)).stored_under("value") == (
        Criterion(numbers_under("value", ""), (NUMBER,)),
    )


def test_a_number_of_a_base_unit_is_looked_for_with_it() -> None:
    assert Sought((NUMBER,), "=g").stored_under("value") == (
        Criterion(numbers_under("value", "=g"), (NUMBER,)),
    )


def test_a_number_with_a_unit_as_written_has_a_second_condition() -> None:
    assert Sought((NUMBER,), "drops").stored_under("value") == (
        Criterion("value", (NUMBER,)),
        Criterion(units_under("value"), (TokenMatch("drops", ""),)),
    )


@pytest.mark.parametrize("unit", ["drops", "=g"])
def test_one_of_several_numbers_is_looked_for_with_its_own_unit(unit: str) -> None:
    assert Sought((NUMBER,), unit).stored_under("component.value") == (
        Criterion(numbers_under("component.value", unit), (NUMBER,)),
    )


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a", TokenMatch(None, "a")),
        ("urn:s|a", TokenMatch("urn:s", "a")),
        ("urn:s|", TokenMatch("urn:s", None)),
        ("|a", TokenMatch("", "a")),
    ],
)
def test_a_token_is_a_code_with_or_without_a_system(text: str, match: TokenMatch) -> None:
    assert sought("token", text) == Sought((match,))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("token", "|"),
        ("date", "x"),
        ("date", "zz2026"),
        ("number", "x"),
        ("number", "gt"),
        ("quantity", "x|urn:s|g"),
        ("quantity", ""),
        ("quantity", "1|g"),
        ("quantity", "1|urn:s|"),
        ("quantity", "|urn:s|g"),
        ("string", "\u0301"),
        ("uri", ""),
    ],
)
def test_what_is_no_value_of_its_kind_means_nothing(kind: str, text: str) -> None:
    assert sought(kind, text) is None


def test_a_date_without_an_offset_is_in_the_zone_that_is_asked_in() -> None:
    ahead = Asking(zone=timezone(timedelta(hours=2)), now=NOON)
    first, last = NOON - 2 * HOUR, NOON - 2 * HOUR + MINUTE

    assert sought("date", "2026-01-01T12:00", ahead) == Sought(
        (TimeMatch(from_=first, until=last),)
    )


def test_about_a_date_depends_on_the_time_now() -> None:
    asked = Asking(zone=UTC, now=NOON + 10 * HOUR)

    assert sought("date", "ap2026-01-01T12:00:00Z", asked) == Sought(
        (TimeMatch(before=NOON + 1_000 + HOUR, after=NOON - HOUR),)
    )


@pytest.mark.parametrize("kind", [None, "family"])
def test_a_text_is_compared_in_its_normal_form_and_kind(kind: str | None) -> None:
    asked = Asking(zone=UTC, now=NOON, kind=kind)

    assert sought("string", "Ló\\,PEZ", asked) == Sought((TextMatch("lo,pez", kind),))


def test_a_uri_is_a_token_of_any_system() -> None:
    assert sought("uri", "urn:a\\,b") == Sought((TokenMatch(None, "urn:a,b"),))


def test_a_quantity_of_a_known_unit_is_in_base_units() -> None:
    found = sought("quantity", "1|http://unitsofmeasure.org|kg")
    same = sought("quantity", "1000|http://unitsofmeasure.org|g")

    assert found is not None
    assert same is not None
    assert found.unit == same.unit
    assert found.unit[:1] == "="


def test_a_quantity_of_a_known_unit_is_compared_in_base_units() -> None:
    found = [
        sought("quantity", f"gt{text}")
        for text in ("2|http://unitsofmeasure.org|kg", "2000|http://unitsofmeasure.org|g")
    ]

    assert found[0] == found[1]
    assert found[0] != sought("quantity", "gt2|http://unitsofmeasure.org|g")


def test_quantities_of_two_other_units_are_different() -> None:
    drops, cups = (sought("quantity", f"1|urn:units|{unit}") for unit in ("drop", "cup"))

    assert drops != cups


def test_a_quantity_of_another_unit_is_as_it_was_written() -> None:
    found = sought("quantity", "1|urn:units|drop")

    assert found == Sought(tuple(numbers_meant_by("eq", Decimal(1))), "urn:units|drop")


def test_a_unit_without_a_system_is_as_it_was_written() -> None:
    found = sought("quantity", "le1||drop")

    assert found == Sought(tuple(numbers_meant_by("le", Decimal(1))), "|drop")


@pytest.mark.parametrize("text", ["5.4", "5.4||"])
def test_a_quantity_without_a_unit_is_a_number(text: str) -> None:
    assert sought("quantity", text) == sought("number", "5.4")


@pytest.mark.parametrize("prefix", ["eq", "ne", "gt", "lt", "ge", "le", "sa", "eb", "ap"])
def test_a_number_with_a_prefix_means_what_that_means(prefix: str) -> None:
    expected = Sought(tuple(numbers_meant_by(prefix, Decimal("5.4"))))

    assert sought("number", f"{prefix}5.4") == expected


def test_rules_for_values_are_given_in_words() -> None:
    assert {name: rule for name, (rule, _read) in READERS.items() if name != "date"} == {
        "token": "must be value, system|value, system| or |value",
        "number": "must be a number such as 5.4, with or without a prefix such as ge",
        "quantity": READERS["quantity"][0],
        "string": "must be how a text begins, such as a name: letters or digits",
        "uri": "must be a URI",
    }
    assert READERS["date"][0].endswith(", with or without a prefix such as ge")


def place(number: Decimal) -> int:
    """Return a place that is easy to count with."""
    return int(number * 10)


def test_a_number_is_above_another_by_what_it_is() -> None:
    number = Decimal("5.0")

    assert numbers_meant_by("gt", number, place=place) == [TimeMatch(after=51)]
    assert numbers_meant_by("lt", number, place=place) == [TimeMatch(before=50)]
    assert numbers_meant_by("eq", number, place=place) != numbers_meant_by("eq", number)
    assert numbers_meant_by("ap", number, place=place) != numbers_meant_by("ap", number)
    assert numbers_meant_by("sa", number, place=place) == [TimeMatch(from_=51)]
    assert numbers_meant_by("eb", number, place=place) == [TimeMatch(until=50)]
    assert numbers_meant_by("le", number, place=place) == [
        TimeMatch(before=50),
        TimeMatch(until=51),
    ]
    assert numbers_meant_by("ge", number, place=place) == [
        TimeMatch(after=51),
        TimeMatch(from_=50),
    ]


def test_equality_looks_at_how_exactly_a_number_is_written() -> None:
    exact = numbers_meant_by("eq", Decimal("5.00"))
    rough = numbers_meant_by("eq", Decimal(5))

    ((inner,), (outer,)) = exact, rough
    assert outer.from_ is not None
    assert inner.from_ is not None
    assert outer.from_ < inner.from_
    ne = numbers_meant_by("ne", Decimal(5))
    assert ne == [TimeMatch(before=outer.from_), TimeMatch(after=outer.until)]


def test_about_a_number_is_at_most_a_tenth_of_it_away() -> None:
    assert numbers_meant_by("ap", Decimal(100)) == [
        TimeMatch(from_=place_of(90.0), until=place_of(110.0) + 1)
    ]


def test_about_a_number_is_measured_before_its_conversion() -> None:
    assert numbers_meant_by("ap", Decimal(100), place=place) == [TimeMatch(from_=900, until=1_101)]


@pytest.mark.parametrize(
    ("start", "end", "now", "slack"),
    [
        (100, 200, 100, 10),
        (100, 200, 200, 10),
        (100, 200, 1_100, 100),
        (100, 200, 1_109, 100),
        (1_000, 1_100, 0, 110),
    ],
)
def test_about_allows_a_tenth_of_the_way_to_the_farther_end(
    start: int, end: int, now: int, slack: int
) -> None:
    assert times_meant_by("ap", (start, end), now=now) == [
        TimeMatch(before=end + slack, after=start - slack)
    ]
