"""The values that each kind of element is found by."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone, tzinfo
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.fhir.date_value import parse_range
from fhirpub.interactions.indexing.numbers import place_of
from fhirpub.interactions.indexing.values import (
    TAKE,
    Searched,
    encode_typed_code,
    extract_typed,
    split_reference,
    take_for,
    values_at,
    without_scheme,
)
from fhirpub.storage.criteria import EARLIEST, LATEST, SearchValue

LIMA = timezone(timedelta(hours=-5))
HERE = "fhir.example/fhir/r4/"


def searched(zone: tzinfo = UTC) -> Searched:
    found = SimpleNamespace(systems={"status": "urn:status"}, zone=zone, relative_to=HERE)
    return cast("Searched", found)


def taken(type_: str, item: Any, *, name: str = "n", zone: tzinfo = UTC) -> list[SearchValue]:
    values: list[SearchValue] = []
    take_for(type_, name)(values, name, item, searched(zone))
    return values


def time_of(text: str, zone: tzinfo = UTC) -> tuple[int, int]:
    found = parse_range(text, default_zone=zone)
    assert found is not None
    return found


# Elements


@pytest.mark.parametrize(
    ("holder", "head", "rest", "found"),
    [
        ({"a": 1}, "a", "", [1]),
        ({"a": [1, 2]}, "a", "", [1, 2]),
        ({"a": {"b": 1}}, "a", "b", [1]),
        ({"a": [{"b": 1}, {}, {"b": [2, 3]}]}, "a", "b", [1, 2, 3]),
        ({"a": [{"b": [{"c": 1}, {"d": 2}]}]}, "a", "b.c", [1]),
        ({"a": {"c": 1}}, "a", "b", []),
        ({"a": []}, "a", "", []),
    ],
)
def test_elements_are_found_through_lists(
    holder: dict[str, Any], head: str, rest: str, found: list[Any]
) -> None:
    assert [*values_at(holder, head, rest)] == found


# Tokens


@pytest.mark.parametrize(
    ("item", "values"),
    [
        ("final", [("final", "")]),
        (True, [("true", "")]),
        (False, [("false", "")]),
        ({"code": "a", "system": "s"}, [("a", "s")]),
        ({"code": "a"}, [("a", "")]),
        ({"value": "1", "system": "s"}, [("1", "s")]),
        ({"system": "s"}, []),
        ({"coding": [{"code": "a", "system": "s"}, {"code": "b"}]}, [("a", "s"), ("b", "")]),
        ({"coding": [{"display": "a"}], "text": "b"}, []),
        ({"coding": []}, []),
        ({"text": "b"}, []),
    ],
)
def test_tokens_are_codes_with_their_systems(item: Any, values: list[tuple[str, str]]) -> None:
    assert taken("token", item) == [("n", *one) for one in values]


def test_a_code_without_a_system_has_that_of_its_values() -> None:
    assert taken("token", "final", name="status") == [("status", "final", "urn:status")]
    assert taken("token", {"code": "a"}, name="status") == [("status", "a", "")]


def test_the_types_of_an_identifier_stand_with_its_value() -> None:
    values: list[SearchValue] = []
    types = [{"code": "MR", "system": "t"}, {"code": "PI"}, {"display": "x"}]

    extract_typed(values, "n", {"value": "1", "system": "s", "type": {"coding": types}})
    extract_typed(values, "n", {"type": {"coding": types}})
    extract_typed(values, "n", {"value": "1", "type": {"text": "x"}})
    extract_typed(values, "n", {"value": "1"})

    assert values == [("n", "MR|1", "t"), ("n", "PI|1", "")]


def test_a_type_and_a_value_are_one_text_without_doubt() -> None:
    assert encode_typed_code("a|b", "c") == r"a\|b|c"
    assert encode_typed_code("a\\", "b|c") == r"a\\|b|c"
    assert encode_typed_code("a", "b|c") != encode_typed_code("a|b", "c")


# Times


def test_a_time_is_from_its_first_moment_to_its_last() -> None:
    assert taken("date", "2026-11") == [("n", *time_of("2026-11"))]
    assert taken("date", "2026-11-20", zone=LIMA) == [("n", *time_of("2026-11-20", LIMA))]
    assert taken("date", "yesterday") == []


@pytest.mark.parametrize(
    ("item", "first", "last"),
    [
        ({"start": "2026-01", "end": "2026-03"}, time_of("2026-01")[0], time_of("2026-03")[1]),
        ({"start": "2026-01"}, time_of("2026-01")[0], LATEST),
        ({"end": "2026-03"}, EARLIEST, time_of("2026-03")[1]),
        (
            {"repeat": {"boundsPeriod": {"start": "2026-01", "end": "2026-02"}}},
            time_of("2026-01")[0],
            time_of("2026-02")[1],
        ),
        ({"event": ["2026-03", "2026-01"]}, time_of("2026-01")[0], time_of("2026-03")[1]),
        (
            {"event": ["2026-03"], "repeat": {"boundsPeriod": {"start": "2026-05"}}},
            time_of("2026-03")[0],
            LATEST,
        ),
        ({"event": ["never", "2026-01"]}, *time_of("2026-01")),
    ],
)
def test_a_period_is_from_its_start_to_its_end(
    item: dict[str, Any], first: int, last: int
) -> None:
    assert taken("date", item) == [("n", first, last)]


@pytest.mark.parametrize("item", [{}, {"event": []}, {"repeat": {"count": 3}}, {"start": "x"}])
def test_a_period_without_a_time_is_nothing(item: dict[str, Any]) -> None:
    assert taken("date", item) == []


@pytest.mark.parametrize("zone", [UTC, LIMA])
def test_the_date_of_a_period_is_of_the_zone_of_the_time_beside_it(zone: tzinfo) -> None:
    until = {"start": "2026-01-01", "end": "2026-01-02T10:00:00-05:00"}
    since = {"start": "2026-01-01T10:00:00-05:00", "end": "2026-01-02"}

    (of_start,), (of_end,) = taken("date", until, zone=zone), taken("date", since, zone=zone)

    assert of_start[1] == time_of("2026-01-01", LIMA)[0]
    assert of_end[2] == time_of("2026-01-02", LIMA)[1]


# References


@pytest.mark.parametrize(
    ("literal", "found"),
    [
        ("Patient/7", ("Patient", "7")),
        ("Patient/7/_history/2", ("Patient", "7")),
        (f"https://{HERE}Patient/7", ("Patient", "7")),
        (f"http://{HERE}Patient/7/_history/2", ("Patient", "7")),
        ("https://other.example/Patient/7", ("", "https://other.example/Patient/7")),
        (f"ftp://{HERE}Patient/7", ("", f"ftp://{HERE}Patient/7")),
        ("urn:uuid:7", ("", "urn:uuid:7")),
        ("7", ("", "7")),
    ],
)
def test_a_reference_is_a_type_and_an_id(literal: str, found: tuple[str, str]) -> None:
    type_name, resource_id = found

    assert split_reference(literal, searched()) == found
    assert taken("reference", {"reference": literal}) == [("n", resource_id, type_name)]


@pytest.mark.parametrize("item", [{}, {"reference": "#p1"}, {"display": "x"}])
def test_what_leads_nowhere_else_is_no_reference(item: dict[str, Any]) -> None:
    assert taken("reference", item) == []


def test_a_scheme_makes_no_difference() -> None:
    assert without_scheme("https://a/b") == without_scheme("http://a/b") == "a/b"
    assert without_scheme("urn:a") == "urn:a"


# Numbers and quantities


def test_the_only_quantity_has_its_units_beside_it() -> None:
    place = place_of(5)

    found = taken("quantity", {"value": 5, "unit": "drops", "code": "drp"}, name="value")

    assert found == [
        ("value", place, place + 1),
        ("value:unit", "", "|drp"),
        ("value:unit", "", "|drops"),
    ]


def test_one_of_several_quantities_stands_under_its_units() -> None:
    place = place_of(5)

    found = taken("quantity", {"value": 5, "unit": "drops"}, name="component.value")

    assert found == [
        ("component.value", place, place + 1),
        ("component.value:|drops", place, place + 1),
    ]


def test_only_quantities_are_taken_apart_where_there_may_be_several() -> None:
    assert take_for("number", "component.value") is TAKE["number"]
    assert take_for("quantity", "value") is TAKE["quantity"]
    assert take_for("quantity", "component.value") is not TAKE["quantity"]


def test_a_number_is_a_place() -> None:
    assert taken("number", 5) == [("n", place_of(5), place_of(5) + 1)]
    assert taken("number", 0) == [("n", 0, 1)]
    assert taken("number", None) == []


# Texts


@pytest.mark.parametrize("item", [None, ""])
def test_a_gap_among_uris_or_texts_is_nothing(item: str | None) -> None:
    assert taken("uri", item) == []
    assert taken("string", item) == []


def test_a_uri_is_kept_as_it_is() -> None:
    assert taken("uri", "urn:A") == [("n", "urn:A", "")]


def test_a_text_is_kept_as_it_is_compared_and_as_it_was_written() -> None:
    assert taken("string", "Ána") == [("n", "ana", ""), ("n:exact", "", "|Ána")]


def test_the_parts_of_a_name_are_kept_with_their_kinds() -> None:
    assert taken("string", {"family": "Ash", "given": ["Ana", None], "text": "A Ash"}) == [
        ("n", "ash", "family"),
        ("n", "ana", "given"),
        ("n", "a ash", "text"),
        ("n", "ash", "text"),
        ("n:exact", "", "family|Ash"),
        ("n:exact", "", "given|Ana"),
        ("n:exact", "", "text|A Ash"),
    ]


def test_a_text_of_blanks_is_nothing() -> None:
    assert taken("string", "  ") == []


def test_one_of_several_quantities_stands_under_each_way_to_write_its_unit() -> None:
    item = {"value": 5, "unit": "tablets", "code": "TAB", "system": "urn:units"}

    names = [name for name, *_place in taken("quantity", item, name="a.b")]

    assert names == ["a.b", "a.b:|TAB", "a.b:|tablets", "a.b:urn:units|TAB"]
