from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest

from fhirpub.audit.conditions import END_OF_TIME
from fhirpub.audit.record import key_of
from fhirpub.audit.search import AuditSearch, Terms, read_parameters
from fhirpub.errors import SearchTooCostly
from tests.audit_trail import NOON

TERMS = Terms(
    tenant="t",
    prefix="0123456789ab",
    fhir_url="https://fhir.example.org/fhir/r4",
    issuer="https://issuer.example.org",
    zone=UTC,
    now=NOON,
    page_size=20,
    page_size_max=100,
    max_values=50,
    cursor="_cursor",
)
DAY = 86_400_000


def read(*parameters: tuple[str, str], **terms: Any) -> AuditSearch:
    return read_parameters(parameters, replace(TERMS, **terms))


def wrong(*parameters: tuple[str, str]) -> dict[str, str]:
    return {issue.expression: issue.diagnostics for issue in read(*parameters).issues}


def key(kind: str, value: str) -> int:
    return key_of("t", kind, value)


def test_a_search_without_conditions_looks_at_every_block() -> None:
    search = read()

    assert search.keys == ((),)
    assert (search.since, search.until, search.count) == (0, None, 20)


def test_one_agent_is_one_key() -> None:
    assert read(("agent", "a")).keys == ((key("agent", "a"),),)


def test_a_patient_is_found_by_what_was_accessed_and_by_whom_it_concerned() -> None:
    name = "Patient/1"
    expected = {(key("entity", name),), (key("patient", name),)}

    for value in ("1", name, f"{TERMS.fhir_url}/{name}"):
        assert {*read(("patient", value)).keys} == expected
    assert {*read(("entity", f"{name}/_history/2")).keys} == expected


def test_values_of_a_list_are_alternatives() -> None:
    keys = read(("agent", "a,b"), ("entity", "Observation/1")).keys

    entity = key("entity", "Observation/1")
    assert {frozenset(each) for each in keys} == {
        frozenset({entity, key("agent", "a")}),
        frozenset({entity, key("agent", "b")}),
    }


def test_long_lists_are_left_to_the_comparison_with_each_record() -> None:
    many = ",".join(f"a{number}" for number in range(9))

    assert read(("agent", many)).keys == ((),)
    assert read(("agent", many), ("agent", "a1")).keys == ((key("agent", "a1"),),)


def test_nothing_is_looked_at_for_what_cannot_be_there() -> None:
    assert read(("patient", "Observation/1")).keys == ()


def test_an_id_alone_needs_every_block() -> None:
    assert read(("entity", "1")).keys == ((),)
    assert read(("entity:Observation", "1")).keys == ((key("entity", "Observation/1"),),)


def test_dates_narrow_the_blocks() -> None:
    search = read(("date", "ge2027-01-15"), ("date", "lt2027-01-16"))

    midnight = NOON - NOON % DAY
    assert (search.since, search.until) == (midnight, midnight + DAY - 1)


@pytest.mark.parametrize(
    ("value", "since", "until"),
    [
        ("1970-01-02", DAY, 2 * DAY - 1),
        ("gt1970-01-02", 2 * DAY, END_OF_TIME - 1),
        ("sa1970-01-02", 2 * DAY, END_OF_TIME - 1),
        ("ge1970-01-02", DAY, END_OF_TIME - 1),
        ("lt1970-01-02", 0, DAY - 1),
        ("eb1970-01-02", 0, DAY - 1),
        ("le1970-01-02", 0, 2 * DAY - 1),
        ("ne1970-01-02", 0, END_OF_TIME - 1),
        ("1970-01-02,1970-01-05", DAY, 5 * DAY - 1),
    ],
)
def test_a_prefix_means_a_time(value: str, since: int, until: int) -> None:
    search = read(("date", value))

    assert (search.since, search.until) == (since, until)
    assert search.matches({"at": since})
    assert search.matches({"at": until})
    assert not search.matches({"at": since - 1})
    assert not search.matches({"at": until + 1})


def test_about_a_date_allows_a_tenth_of_the_distance_to_now() -> None:
    search = read(("date", "ap1970-01-11"), now=0)

    assert (search.since, search.until) == (
        10 * DAY - DAY * 11 // 10,
        11 * DAY + DAY * 11 // 10 - 1,
    )


@pytest.mark.parametrize(
    ("value", "places"),
    [
        ("0123456789ab-1-0", {(1, 0)}),
        ("0123456789ab-1-0,0123456789ab-7-12", {(1, 0), (7, 12)}),
        ("aaaaaaaaaaaa-1-0", set()),
        ("0123456789ab-0-0", set()),
        ("0123456789ab-1-01", set()),
        ("0123456789ab-1", set()),
        (f"0123456789ab-{'9' * 30}-1", set()),
    ],
)
def test_an_id_leads_to_a_block_and_a_place(value: str, places: set[tuple[int, int]]) -> None:
    assert read(("_id", value)).ids == frozenset(places)


def test_ids_of_two_parameters_must_both_be_meant() -> None:
    one, other = "0123456789ab-1-0", "0123456789ab-2-0"

    assert read(("_id", f"{one},{other}"), ("_id", other)).ids == frozenset({(2, 0)})


def test_everything_that_is_wrong_is_found_at_once() -> None:
    found = wrong(
        ("date", "yesterday"),
        ("_count", "-1"),
        ("_summary", "count"),
        ("action", "|"),
        ("agent:not", "a"),
        ("patient", "/"),
        ("entity:missing", "true"),
        ("_elements", "," * 200),
        ("_total", "many"),
        ("_id", "\\x"),
    )

    assert found.keys() == {
        *("date", "_count", "_summary", "action", "agent", "patient", "entity", "_elements"),
        *("_total", "_id"),
    }
    assert found["agent"] == "does not support this modifier; it has :identifier"


def test_a_summary_cannot_go_with_elements() -> None:
    assert wrong(("_summary", "true"), ("_elements", "id")) == {
        "_summary": "cannot go with _elements"
    }


def test_what_is_not_known_and_what_is_empty_is_kept_apart_from_what_is_used() -> None:
    search = read(
        ("nonsense", "1"),
        ("agent.name", "x"),
        ("_sort", "date"),
        ("_total", "accurate"),
        ("patient", ""),
        ("_format", "json"),
        ("_cursor", "abc"),
        ("_count", "5"),
        ("_count", "500"),
        ("_sort", "-date"),
    )

    assert search.unknown == ["nonsense", "agent.name", "_sort", "_total"]
    assert search.empty == ["patient"]
    assert search.understood == [("_count", "500"), ("_sort", "-date")]
    assert (search.cursor, search.count) == ("abc", 100)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: read(("agent", ",".join("a" * 51))),
        lambda: read(*[("agent", "a,b")] * 26),
        lambda: read(*[("action", "C")] * 51, max_values=1_000),
        lambda: read(
            ("_id", ",".join(f"0123456789ab-{n}-0" for n in range(1, 52))), max_values=99
        ),
    ],
)
def test_too_many_values_or_conditions_are_refused(ask: Callable[[], AuditSearch]) -> None:
    with pytest.raises(SearchTooCostly):
        ask()
