"""Each parameter is understood or refused in its own words, and never taken for an unknown one."""

from __future__ import annotations

import pytest

from fhirpub.audit.search import MAX_BLOCKS
from fhirpub.errors import SearchTooCostly
from tests.unit.audit.test_search import TERMS, read, wrong

RIGHT = {
    "_id": f"{TERMS.prefix}-1-0",
    "_lastUpdated": "2027",
    "action": "R",
    "agent": "c",
    "agent:identifier": "|c",
    "date": "2027",
    "entity": "Observation/1",
    "entity:Observation": "1",
    "entity:identifier": "r-1",
    "outcome": "0",
    "patient": "1",
    "patient:Patient": "1",
    "subtype": "read",
    "_count": "5",
    "_elements": "id",
    "_sort": "-date",
    "_summary": "false",
    "_total": "none",
}
CODE = "must be value, system|value, system| or |value"
REFUSED = {
    "_id": "must be ids, separated by commas",
    "action": CODE,
    "agent": "must be the id of a client or the name of a user",
    "agent:identifier": "must be the id of a client or the name of a user",
    "entity": "must be Type/id, an id or a URL",
    "entity:Observation": "must be Type/id, an id or a URL",
    "entity:identifier": "must be the id of a request",
    "outcome": CODE,
    "patient": "must be an id, Patient/id or a URL",
    "subtype": CODE,
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_parameter_is_among_those_that_are_used(name: str) -> None:
    search = read((name, RIGHT[name]))

    assert (search.understood, search.unknown) == ([(name, RIGHT[name])], [])
    assert search.issues == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_list_with_a_lone_backslash_is_refused_in_the_words_of_its_parameter(name: str) -> None:
    base = name.partition(":")[0]

    assert wrong((name, "a\\x")) == {base: REFUSED[name]}
    assert read((name, "a\\x")).unknown == []


def test_a_date_with_a_lone_backslash_is_refused_in_its_own_words() -> None:
    for name in ("date", "_lastUpdated"):
        (issue,) = read((name, "a\\x")).issues
        assert issue.expression == name
        assert issue.diagnostics


@pytest.mark.parametrize("name", [one for one in RIGHT if ":" not in one])
def test_a_modifier_that_is_refused_makes_no_unknown_parameter(name: str) -> None:
    search = read((f"{name}:x", RIGHT[name]))

    assert search.unknown == []
    assert {issue.expression for issue in search.issues} == {name}


@pytest.mark.parametrize("name", ["patient", "entity"])
def test_a_reference_of_slashes_alone_is_none(name: str) -> None:
    assert wrong((name, "//")) == {name: REFUSED[name]}


def test_a_wrong_value_of_a_page_is_refused_and_not_unknown() -> None:
    for name, value in (("_count", "x"), ("_summary", "x"), ("_elements", "," * 200)):
        search = read((name, value))
        assert search.unknown == []
        assert [issue.expression for issue in search.issues] == [name]


def test_a_total_that_is_none_of_fhir_is_refused() -> None:
    assert wrong(("_total", "many")) == {"_total": "must be none, estimate or accurate"}


def test_ids_of_two_parameters_narrow_each_other_in_any_order() -> None:
    one, other = (f"{TERMS.prefix}-{number}-0" for number in (1, 2))
    both = ("_id", f"{one},{other}")

    assert read(both, ("_id", one)).ids == read(("_id", one), both).ids == frozenset({(1, 0)})


def test_too_many_ids_are_refused_with_the_number_that_is_possible() -> None:
    ids = ",".join(f"{TERMS.prefix}-{number}-0" for number in range(1, MAX_BLOCKS + 2))

    with pytest.raises(SearchTooCostly) as refused:
        read(("_id", ids), max_values=99)

    (issue,) = refused.value.issues
    assert issue.expression == "_id"
    said = f"ids of at most {MAX_BLOCKS} blocks are searched at a time: send fewer"
    assert issue.diagnostics == said


def test_the_name_of_a_costly_parameter_has_no_modifier() -> None:
    with pytest.raises(SearchTooCostly) as refused:
        read(("entity:Observation", "a,b"), max_values=1)

    assert [issue.expression for issue in refused.value.issues] == ["entity"]
