"""What values of each type of parameter demand, and with which modifiers."""

from __future__ import annotations

import pytest

from fhirpub.storage.criteria import (
    ANYTHING,
    Criterion,
    Either,
    TextMatch,
    TimeMatch,
    TokenMatch,
)
from tests.unit.interactions.reading import problems, read

DAY = 86_400_000
BOOL_RULE = "takes true or false with :missing"
DATE = "effectiveDateTime|effectivePeriod"


def no_modifier(has: str) -> str:
    return f"does not support this modifier; it has {has}"


def test_a_token_is_one_of_a_list() -> None:
    assert read(("code", "a,urn:s|b")).criteria == [
        Criterion("code", (TokenMatch(None, "a"), TokenMatch("urn:s", "b")))
    ]


def test_a_token_is_none_of_a_list() -> None:
    assert read(("code:not", "a,b")).criteria == [
        Criterion("code", (TokenMatch(None, "a"), TokenMatch(None, "b")), negated=True)
    ]


def test_a_token_over_two_elements_is_in_either() -> None:
    match = (TokenMatch(None, "a"),)

    assert read(("combo", "a")).criteria == [
        Either(((Criterion("code", match),), (Criterion("category", match),)))
    ]


def test_a_token_that_two_elements_must_not_have_is_in_neither() -> None:
    match = (TokenMatch(None, "a"),)

    assert read(("combo:not", "a")).criteria == [
        Criterion("code", match, negated=True),
        Criterion("category", match, negated=True),
    ]


def test_a_value_is_there_or_is_missing() -> None:
    assert read(("code:missing", "false")).criteria == [Criterion("code", (ANYTHING,))]
    assert read(("code:missing", "true")).criteria == [
        Criterion("code", (ANYTHING,), negated=True)
    ]


def test_a_value_of_two_elements_is_missing_if_it_is_in_neither() -> None:
    names = ("code", "category")

    assert read(("combo:missing", "true")).criteria == [
        Criterion(name, (ANYTHING,), negated=True) for name in names
    ]
    assert read(("combo:missing", "false")).criteria == [
        Either(tuple((Criterion(name, (ANYTHING,)),) for name in names))
    ]


@pytest.mark.parametrize("name", ["code", "date", "value-string", "subject", "combo", "_id"])
@pytest.mark.parametrize("value", ["yes", "TRUE", "true,false", "True"])
def test_missing_takes_two_words_alone(name: str, value: str) -> None:
    reading = read((f"{name}:missing", value))

    assert problems(reading) == [(name, BOOL_RULE)]
    assert reading.criteria == []


def test_a_date_is_found_under_all_of_its_elements() -> None:
    assert read(("date", "1970-01-02")).criteria == [
        Criterion(DATE, (TimeMatch(from_=DAY, until=2 * DAY),))
    ]


def test_dates_of_a_list_are_one_criterion() -> None:
    ((criterion),) = read(("date", "1970-01-02,lt1970-01-01")).criteria

    assert criterion == Criterion(DATE, (TimeMatch(from_=DAY, until=2 * DAY), TimeMatch(before=0)))


def test_the_time_of_the_last_update_is_a_date() -> None:
    assert read(("_lastUpdated", "gt1970-01-02")).criteria == [
        Criterion("_lastUpdated", (TimeMatch(after=2 * DAY),))
    ]


def test_a_value_that_is_wrong_demands_nothing_and_is_understood() -> None:
    reading = read(("date", "yesterday"))

    assert (reading.criteria, reading.understood) == ([], [("date", "yesterday")])
    assert [place for place, _rule in problems(reading)] == ["date"]


def test_a_text_is_how_one_begins() -> None:
    assert read(("value-string", "Ab")).criteria == [Criterion("valueString", (TextMatch("ab"),))]


def test_a_text_is_anywhere_with_contains() -> None:
    assert read(("value-string:contains", "Ab,c")).criteria == [
        Criterion("valueString", (TextMatch("ab", anywhere=True), TextMatch("c", anywhere=True)))
    ]


def test_an_exact_text_is_found_by_its_beginning_and_compared_as_it_is_written() -> None:
    (first, second) = read(("value-string:exact", "Ab")).criteria

    assert first == Criterion("valueString", (TextMatch("ab"),))
    assert isinstance(second, Criterion)
    assert second.name == "valueString:exact"
    assert TokenMatch("|Ab", "") in second.any_of


def test_a_uri_is_itself_or_below_another() -> None:
    url = "http://x.example/a"

    assert read(("rules", url)).criteria == [Criterion("implicitRules", (TokenMatch(None, url),))]
    assert read(("rules:below", url)).criteria == [
        Criterion("implicitRules", (TokenMatch(None, url), TextMatch(f"{url}/")))
    ]
    assert read(("rules:above", url)).criteria == [
        Criterion("implicitRules", (TokenMatch(None, url), TokenMatch(None, "http://x.example")))
    ]


def test_a_pair_is_a_criterion_of_its_own() -> None:
    reading = read(("code-value", "urn:s|a$5"))

    assert len(reading.criteria) > 0
    assert problems(reading) == []


def test_a_pair_that_is_wrong_demands_nothing() -> None:
    reading = read(("code-value", "a"))

    assert reading.criteria == []
    assert [place for place, _rule in problems(reading)] == ["code-value"]


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("code:exact", ":missing, :not"),
        ("code:of-type", ":missing, :not"),
        ("combo:exact", ":missing, :not"),
        ("identifier:exact", ":missing, :not, :of-type"),
        ("_id:of-type", ":missing, :not"),
        ("date:not", ":missing"),
        ("_lastUpdated:exact", ":missing"),
        ("value-count:not", ":missing"),
        ("value-quantity:below", ":missing"),
        ("value-string:not", ":missing, :exact, :contains"),
        ("value-string:below", ":missing, :exact, :contains"),
        ("rules:contains", ":missing, :below, :above"),
        ("code-value:missing", "none"),
        ("subject:exact", ":missing, :Patient"),
        ("encounter:not", ":missing, :Patient"),
        ("patient:identifier", ":missing, :Patient"),
        ("patient.identifier:not", "none"),
    ],
)
def test_a_modifier_that_is_not_supported_is_refused_with_those_that_are(
    name: str, has: str
) -> None:
    reading = read((name, "true"))

    expected = name.partition(":")[0].partition(".")[0]
    assert problems(reading) == [(expected, no_modifier(has))]
    assert reading.criteria == []
    assert reading.unknown == []


def test_a_reference_is_read_with_the_type_that_it_must_have() -> None:
    assert read(("encounter", "Encounter/7")).criteria == [
        Criterion("encounter", (TokenMatch("Encounter", "7"),))
    ]
    assert read(("encounter:Encounter", "7")).criteria == [
        Criterion("encounter", (TokenMatch("Encounter", "7"),))
    ]


def test_a_patient_is_a_subject_of_that_type() -> None:
    assert read(("patient", "7")).criteria == [Criterion("subject", (TokenMatch("Patient", "7"),))]
    assert read(("patient:Patient", "7")).criteria == [
        Criterion("subject", (TokenMatch("Patient", "7"),))
    ]


def test_a_patient_of_another_type_is_none() -> None:
    reading = read(("patient:Group", "7"))

    assert reading.criteria == [Criterion("subject", ())]
    assert problems(reading) == []


def test_a_reference_is_missing_or_there() -> None:
    assert read(("encounter:missing", "true")).criteria == [
        Criterion("encounter", (ANYTHING,), negated=True)
    ]
    assert read(("patient:missing", "false")).criteria == [
        Criterion("subject", (TokenMatch("Patient", None),))
    ]


@pytest.mark.parametrize(
    "name", ["patient.identifier", "subject:Patient.identifier", "subject.identifier"]
)
def test_a_patient_is_found_by_an_identifier(name: str) -> None:
    assert read((name, "urn:s|1")).criteria == [
        Criterion("subject:Patient.identifier", (TokenMatch("urn:s", "1"),))
    ]
