"""Values of parameters: those at a limit, those beyond it, and the words that refuse them."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.audit.record import key_of
from fhirpub.audit.search import MAX_CONDITIONS
from fhirpub.errors import SearchTooCostly
from tests.unit.audit.test_search import DAY, TERMS, read, wrong

COUNT = "must be a whole number of at least 1: events are not counted"
CODE = "must be value, system|value, system| or |value"


def matches(*parameters: tuple[str, str], **record: Any) -> bool:
    search = read(*parameters)
    assert search.issues == []
    return search.matches({"at": 5, "action": "read", "status": 200, **record})


@pytest.mark.parametrize(
    ("value", "count"), [("1", 1), ("99", 99), ("100", 100), ("101", 100), ("9" * 9, 100)]
)
def test_a_page_has_as_many_entries_as_are_asked_for_up_to_its_limit(
    value: str, count: int
) -> None:
    assert read(("_count", value)).count == count


@pytest.mark.parametrize("value", ["0", "00", "-1", "1.0", "9" * 10, "٣", "²", "x", " 1"])
def test_a_count_that_is_no_number_of_entries_is_refused(value: str) -> None:
    assert wrong(("_count", value)) == {"_count": COUNT}


def test_the_last_count_is_the_one_that_is_used_though_smaller() -> None:
    search = read(("_count", "5"), ("_count", "3"))

    assert (search.count, search.understood) == (3, [("_count", "3")])


@pytest.mark.parametrize(
    ("name", "values"), [("_summary", ("true", "false")), ("_elements", ("id", "agent"))]
)
def test_the_last_form_of_the_page_is_the_one_that_is_used(
    name: str, values: tuple[str, str]
) -> None:
    search = read(*((name, value) for value in values))

    assert getattr(search, name.removeprefix("_")) == values[1]
    assert search.understood == [(name, values[1])]


@pytest.mark.parametrize("value", ["none", "estimate", "accurate"])
def test_a_total_is_none_whatever_is_wished(value: str) -> None:
    search = read(("_total", value))

    assert search.issues == []
    assert search.unknown == ([] if value == "none" else ["_total"])


@pytest.mark.parametrize("value", ["true", "text", "data", "false"])
def test_summaries_are_those_of_fhir_without_a_count(value: str) -> None:
    assert read(("_summary", value)).summary == value


def test_a_count_alone_is_no_summary_of_events() -> None:
    rule = "must be true, text, data or false: events are not counted"

    assert wrong(("_summary", "count")) == {"_summary": rule}


def test_elements_go_with_no_summary_that_is_not_false() -> None:
    assert wrong(("_summary", "false"), ("_elements", "id")) == {}
    assert wrong(("_elements", "id"), ("_summary", "data")) == {
        "_summary": "cannot go with _elements"
    }


def test_two_hundred_elements_can_be_named_and_no_more() -> None:
    names = ",".join("a" * 200)

    assert read(("_elements", names)).elements == names
    assert wrong(("_elements", f"{names},a")) == {"_elements": "must not have more than 200 names"}


@pytest.mark.parametrize("value", ["-date", "-_lastUpdated"])
def test_the_newest_come_first(value: str) -> None:
    assert read(("_sort", value)).understood == [("_sort", value)]


@pytest.mark.parametrize("value", ["date", "_lastUpdated", "-recorded", "-date,-_lastUpdated"])
def test_another_order_is_not_known(value: str) -> None:
    search = read(("_sort", value))

    assert (search.understood, search.unknown, search.issues) == ([], ["_sort"], [])


@pytest.mark.parametrize(
    "name", ["_id", "_lastUpdated", "action", "date", "outcome", "subtype", "_count", "_sort",
             "_summary", "_total", "_elements"]
)  # fmt: skip
def test_a_modifier_where_there_is_none_is_refused(name: str) -> None:
    values = {"_count": "1", "_summary": "true", "_total": "none", "date": "2027"}

    found = wrong((f"{name}:x", values.get(name, "2027")))

    assert found[name] == "does not support this modifier; it has none"


@pytest.mark.parametrize(
    ("name", "modifier"), [("agent", "identifier"), ("patient", "Patient"), ("entity", "Patient")]
)
def test_the_modifiers_that_there_are_are_named(name: str, modifier: str) -> None:
    rule = f"does not support this modifier; it has :{modifier}"

    assert wrong((f"{name}:text", "x")) == {name: rule}


def test_a_value_of_a_date_that_is_none_is_refused_with_the_rule() -> None:
    for name in ("date", "_lastUpdated"):
        (issue,) = read((name, "xx2027")).issues
        assert issue.expression == name
        assert issue.diagnostics.endswith("with or without a prefix such as ge")


def test_when_a_record_was_updated_is_when_it_was_recorded() -> None:
    search = read(("_lastUpdated", "1970-01-02"))

    assert (search.since, search.until) == (DAY, 2 * DAY - 1)
    assert search.matches({"at": DAY})
    assert not search.matches({"at": 2 * DAY})


def test_dates_of_two_parameters_narrow_each_other_in_any_order() -> None:
    first, second = ("date", "ge1970-01-03"), ("date", "ge1970-01-02")

    assert read(first, second).since == read(second, first).since == 2 * DAY
    first, second = ("date", "lt1970-01-03"), ("date", "lt1970-01-05")
    assert read(first, second).until == read(second, first).until == 2 * DAY - 1


def test_a_client_is_found_by_its_issuer_as_an_identifier() -> None:
    for value in ("c", f"{TERMS.issuer}|c", "|c"):
        assert matches(("agent:identifier", value), client="c")


def test_an_identifier_of_another_issuer_is_no_client_of_this_service() -> None:
    assert not matches(("agent:identifier", "https://other.example.org|c"), client="c")
    assert not matches(("agent:identifier", f"{TERMS.issuer}|d"), client="c")


def test_a_system_alone_is_no_identifier_of_an_agent() -> None:
    rule = "must be value, system|value or |value with :identifier"

    assert wrong(("agent:identifier", f"{TERMS.issuer}|")) == {"agent": rule}
    assert wrong(("agent:identifier", "|")) == {"agent": rule}


def test_an_agent_without_a_modifier_may_have_a_bar_in_its_name() -> None:
    assert matches(("agent", "a|b"), user="a|b")


def test_an_escaped_comma_is_part_of_a_name() -> None:
    assert matches(("agent", "a\\,b"), user="a,b")
    assert not matches(("agent", "a\\,b"), user="a")


def test_a_patient_is_no_resource_of_another_type() -> None:
    assert matches(("patient", "1"), patients=["Patient/1"])
    assert matches(("patient:Patient", "1"), patients=["Patient/1"])
    assert not matches(("patient", "Observation/1"), what=["Observation/1"])


def test_a_url_of_another_service_is_no_resource_of_this_one() -> None:
    other = "https://other.example.org/fhir/r4"

    assert matches(("entity", f"{TERMS.fhir_url}/Observation/1"), what=["Observation/1"])
    assert not matches(("entity", f"{other}/Observation/1"), what=["Observation/1"])


def test_a_type_in_the_modifier_must_be_that_of_the_value() -> None:
    assert matches(("entity:Observation", "Observation/1"), what=["Observation/1"])
    assert matches(("entity:Observation", "1"), what=["Observation/1"])
    assert not matches(("entity:Specimen", "Observation/1"), what=["Observation/1"])
    assert not matches(("entity:Specimen", "1"), what=["Observation/1"])


def test_an_entity_by_its_identifier_is_a_request() -> None:
    assert matches(("entity:identifier", "r-1,r-2"), request="r-2-7")
    assert not matches(("entity:identifier", "r-1"), request="r-2")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("action", "R"),
        ("action", "http://hl7.org/fhir/audit-event-action|R"),
        ("outcome", "0"),
        ("outcome", "http://hl7.org/fhir/audit-event-outcome|0"),
        ("subtype", "read"),
        ("subtype", "http://hl7.org/fhir/restful-interaction|read"),
        ("subtype", "urn:fhirpub:audit-action|"),
        ("action", "C,R"),
    ],
)
def test_a_code_is_found_with_or_without_its_system(name: str, value: str) -> None:
    assert matches((name, value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("action", "C"),
        ("action", "|R"),
        ("action", "http://hl7.org/fhir/audit-event-outcome|R"),
        ("outcome", "4"),
        ("subtype", "vread"),
        ("subtype", "urn:fhirpub:audit-action|vread"),
    ],
)
def test_a_code_of_another_system_or_value_is_not_found(name: str, value: str) -> None:
    assert not matches((name, value))


def test_a_code_that_is_none_is_refused_with_the_rule() -> None:
    for name in ("action", "outcome", "subtype"):
        assert wrong((name, "|")) == {name: CODE}


def test_conditions_must_all_be_met() -> None:
    asked = [("action", "R"), ("agent", "c")]

    assert matches(*asked, client="c")
    assert not matches(*asked, client="d")
    assert not matches(*asked, client="c", action="update")


def test_values_over_all_parameters_are_counted() -> None:
    half = ",".join("a" * 25)

    assert read(("agent", half), ("entity", half)).issues == []
    with pytest.raises(SearchTooCostly) as refused:
        read(("agent", half), ("entity", f"{half},a"))
    (issue,) = refused.value.issues
    assert issue.expression == "entity"
    assert "at most 50 values over all of its parameters: send fewer" in issue.diagnostics


def test_an_escaped_comma_makes_no_second_value() -> None:
    assert read(("agent", "a\\,b"), max_values=1).issues == []


def test_a_comma_behind_an_escaped_backslash_ends_a_value() -> None:
    assert read(("agent", "a\\\\,b"), max_values=2).issues == []
    with pytest.raises(SearchTooCostly):
        read(("agent", "a\\\\,b"), max_values=1)


def test_fifty_conditions_can_be_asked_for() -> None:
    assert MAX_CONDITIONS == 50
    asked = [("action", "R")] * 50

    assert len(read(*asked, max_values=99).conditions) == 50
    with pytest.raises(SearchTooCostly) as refused:
        read(*asked, ("action", "R"), max_values=99)
    assert "at most 50 conditions" in refused.value.issues[0].diagnostics


def test_ids_of_fifty_blocks_can_be_asked_for() -> None:
    ids = [f"{TERMS.prefix}-{number}-0" for number in range(1, 52)]

    found = read(("_id", ",".join([*ids[:50], f"{TERMS.prefix}-1-1"])), max_values=99)

    assert len(found.ids or ()) == 51
    with pytest.raises(SearchTooCostly):
        read(("_id", ",".join(ids)), max_values=99)


def test_without_ids_every_record_is_meant() -> None:
    assert read(("agent", "a")).ids is None


def test_a_name_with_a_chain_or_of_another_case_is_not_known() -> None:
    search = read(("patient.name", "x"), ("Agent", "c"), (":x", "y"), ("", "z"))

    assert search.unknown == ["patient.name", "Agent", ":x", ""]
    assert search.conditions == []


def test_a_parameter_is_empty_before_it_is_unknown() -> None:
    search = read(("nonsense", ""), ("_cursor", ""), ("_format", ""))

    assert (search.empty, search.unknown, search.cursor) == (["nonsense", "_cursor"], [], "")


def test_keys_are_those_of_the_tenant_that_asks() -> None:
    assert read(("agent", "a"), tenant="u").keys == ((key_of("u", "agent", "a"),),)
    assert read(("patient", "1"), tenant="u").keys[0][0] in {
        key_of("u", kind, "Patient/1") for kind in ("entity", "patient")
    }
    assert read(("entity", "Observation/1"), tenant="u").keys == (
        (key_of("u", "entity", "Observation/1"),),
    )
