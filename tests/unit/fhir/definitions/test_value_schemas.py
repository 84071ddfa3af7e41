"""The limits of values at their edges, as the fast engine applies them."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from fhirpub.fhir.definitions.value_schemas import HASH, LIMITS, Schema, shape, text, whole
from fhirpub.fhir.schema import own_schemas

SCHEMAS = own_schemas()


@pytest.mark.parametrize(
    "day",
    [
        "0001",
        "9999-12",
        "2024-01-31",
        "2023-02-28",
        "2024-02-29",
        "2000-02-29",
        "2023-04-30",
        "2023-06-30",
        "2023-09-30",
        "2023-11-30",
        "2023-12-31",
    ],
)
def test_a_day_of_the_calendar_is_a_date(day: str) -> None:
    assert SCHEMAS.accepts_primitive("date", day)


@pytest.mark.parametrize(
    "day",
    [
        "0000",
        "2023-00",
        "2023-13",
        "2023-01-32",
        "2023-02-29",
        "1900-02-29",
        "2023-04-31",
        "2023-06-31",
        "2023-09-31",
        "2023-11-31",
        "2023-01-00",
        "2023-1-1",
        "2023\n",
        "",
    ],
)
def test_another_day_is_no_date(day: str) -> None:
    assert not SCHEMAS.accepts_primitive("date", day)


@pytest.mark.parametrize(
    ("moment", "accepted"),
    [
        ("2024-02-29T00:00:00Z", True),
        ("2024-02-29T23:59:60+14:00", True),
        ("2024-02-29T23:59:59.123456-13:59", True),
        ("2024-02-29T24:00:00Z", False),
        ("2024-02-29T23:60:00Z", False),
        ("2024-02-29T23:59:61Z", False),
        ("2024-02-29T23:59:00+14:01", False),
        ("2024-02-29T23:59:00+15:00", False),
        ("2024-02-29T23:59:00.Z", False),
        ("2024-02-29T23:59Z", False),
        ("2024-02-29T23:59:00", False),
        ("2024-02-29", False),
    ],
)
def test_an_instant_has_a_day_a_time_and_an_offset(moment: str, *, accepted: bool) -> None:
    assert SCHEMAS.accepts_primitive("instant", moment) is accepted


@pytest.mark.parametrize(
    ("type_name", "number", "accepted"),
    [
        ("integer", -(2**31), True),
        ("integer", -(2**31) - 1, False),
        ("integer", 2**31 - 1, True),
        ("integer", 2**31, False),
        ("positiveInt", 1, True),
        ("positiveInt", 0, False),
        ("unsignedInt", 0, True),
        ("unsignedInt", -1, False),
        ("unsignedInt", 2.0, False),
    ],
)
def test_a_whole_number_keeps_within_its_limits(
    type_name: str, number: float, *, accepted: bool
) -> None:
    assert SCHEMAS.accepts_primitive(type_name, number) is accepted


@pytest.mark.parametrize(
    ("type_name", "value", "accepted"),
    [
        ("string", "tab \t, CR \r and LF \n", True),
        ("string", "\u0000", False),
        ("string", "\u000b", False),
        ("string", "\u001f", False),
        ("string", "\u007f", True),
        ("uri", "urn:x", True),
        ("uri", "urn: x", False),
        ("uri", "urn:\nx", False),
        ("code", "two words", True),
        ("code", "two  spaces", False),
        ("code", " leading", False),
        ("code", "trailing ", False),
        ("id", "A-z.0", True),
        ("id", "a" * 64, True),
        ("id", "a" * 65, False),
        ("id", "a_b", False),
        ("oid", "urn:oid:2.0.10", True),
        ("oid", "urn:oid:3.1", False),
        ("oid", "urn:oid:2.01", False),
        ("oid", "urn:oid:2", False),
        ("uuid", "urn:uuid:0123abcd-0123-4567-89ab-0123456789ab", True),
        ("uuid", "urn:uuid:0123ABCD-0123-4567-89ab-0123456789ab", False),
        ("uuid", "0123abcd-0123-4567-89ab-0123456789ab", False),
        ("time", "08:15:00", True),
        ("time", "08:15", False),
        ("time", "08:15:00Z", False),
    ],
)
def test_a_text_has_the_characters_and_the_shape_of_its_type(
    type_name: str, value: str, *, accepted: bool
) -> None:
    assert SCHEMAS.accepts_primitive(type_name, value) is accepted


@pytest.mark.parametrize(
    ("length", "accepted"), [(1, True), (1_048_576, True), (1_048_577, False)]
)
def test_a_string_has_at_most_a_megabyte(length: int, *, accepted: bool) -> None:
    assert SCHEMAS.accepts_primitive("string", "x" * length) is accepted


def fits(schema: Schema, value: Any) -> bool:
    return jsonschema_rs.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ab", True),
        ("ba", True),
        ("abc", False),
        ("a", False),
        ("ab\n", False),
        ("", False),
        (1, False),
    ],
)
def test_a_shape_is_of_a_whole_text(value: Any, *, expected: bool) -> None:
    assert fits(shape("[a-b]{2}", "ab"), value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a", True), ("", False), ("x" * 1_048_577, False), ("a!", False), (1, False)],
)
def test_a_text_has_no_forbidden_character_and_a_limited_length(
    value: Any, *, expected: bool
) -> None:
    assert fits(text("!"), value) is expected


def test_more_may_be_demanded_of_a_text() -> None:
    schema = text("!", maxLength=64)

    assert (schema["type"], schema["minLength"], schema["maxLength"]) == ("string", 1, 64)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, False), (1, True), (2_147_483_647, True), (2_147_483_648, False), (1.5, False)],
)
def test_a_whole_number_has_a_least_and_a_largest_value(value: Any, *, expected: bool) -> None:
    assert fits(whole(1), value) is expected
    assert whole(1)["fhirInteger"] is True


@pytest.mark.parametrize(
    ("name", "right", "wrong", "words"),
    [
        ("one", "1", "2", "must be 1"),
        ("positive", 0.1, 0, "must be more than 0"),
        ("ucum", "http://unitsofmeasure.org", "urn:x", "must be http://unitsofmeasure.org"),
        ("unsigned", 0, -0.1, "must not be negative"),
        ("whole", 2, 2.5, "must be a whole number"),
    ],
)
def test_a_limit_demands_what_its_words_are(name: str, right: Any, wrong: Any, words: str) -> None:
    said, schema = LIMITS[name]

    assert said == words
    assert (fits(schema, right), fits(schema, wrong)) == (True, False)


def test_a_hash_is_any_text_that_is_not_empty() -> None:
    assert (fits(HASH, "any"), fits(HASH, ""), fits(HASH, 1)) == (True, False, False)
