"""A condition matches exactly the records that are meant, and its keys find their blocks."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.audit.conditions import (
    END_OF_TIME,
    Condition,
    alternatives,
    by_agent,
    by_code,
    by_entity,
    by_patient,
    by_request,
    by_time,
    intervals_of,
)
from fhirpub.audit.record import key_of
from fhirpub.fhir.search_value import Token

REPORT = "DiagnosticReport/a"


def anything(_record: Any) -> bool:
    return True


def keyed(*keys: int) -> Condition:
    return Condition(anything, frozenset(keys))


@pytest.mark.parametrize(("at", "matches"), [(9, False), (10, True), (19, True), (20, False)])
def test_an_interval_begins_with_its_first_moment_and_ends_before_its_last(
    at: int, *, matches: bool
) -> None:
    assert by_time([(10, 20)]).matches({"at": at}) is matches


def test_a_record_of_any_of_the_intervals_matches() -> None:
    condition = by_time([(10, 20), (30, 40)])

    assert [at for at in (15, 25, 35) if condition.matches({"at": at})] == [15, 35]


def test_a_time_is_found_by_no_key() -> None:
    assert by_time([(10, 20)]).keys is None


def test_an_agent_is_a_client_or_the_user_of_a_command() -> None:
    condition = by_agent("t", ["c", "root"])

    assert condition.matches({"client": "c"})
    assert condition.matches({"user": "root"})
    assert not condition.matches({"client": "d"})
    assert not condition.matches({})


def test_the_keys_of_a_condition_are_those_of_its_tenant() -> None:
    for by in (by_agent, by_patient, by_entity):
        ours, theirs = by("t", ["Patient/1"]).keys, by("u", ["Patient/1"]).keys

        assert ours
        assert theirs
        assert not {*ours} & {*theirs}


def test_an_agent_without_a_name_has_no_key() -> None:
    assert by_agent("t", ["", "c"]).keys == {key_of("t", "agent", "c")}


def test_a_patient_that_was_read_and_one_that_a_resource_is_about_both_match() -> None:
    condition = by_patient("t", ["Patient/1"])

    assert condition.matches({"what": ["Patient/1/_history/2"]})
    assert condition.matches({"patients": ["Patient/1"]})
    assert not condition.matches({"patients": ["Patient/12"], "what": [REPORT]})


def test_a_patient_has_the_keys_of_a_resource_and_of_a_patient() -> None:
    expected = {key_of("t", kind, "Patient/1") for kind in ("entity", "patient")}

    assert by_patient("t", ["Patient/1"]).keys == expected


def test_a_resource_without_a_version_matches_each_of_its_versions() -> None:
    condition = by_entity("t", [REPORT])

    assert condition.matches({"what": [REPORT]})
    assert condition.matches({"what": [f"{REPORT}/_history/3"]})
    assert not condition.matches({"what": [f"{REPORT}b"]})
    assert not condition.matches({})


def test_a_version_matches_no_other_version() -> None:
    condition = by_entity("t", [f"{REPORT}/_history/2"])

    assert condition.matches({"what": [f"{REPORT}/_history/2"]})
    assert not condition.matches({"what": [f"{REPORT}/_history/3", REPORT]})


def test_a_version_is_found_by_the_key_of_its_resource() -> None:
    assert by_entity("t", [f"{REPORT}/_history/2"]).keys == {key_of("t", "entity", REPORT)}


def test_an_id_alone_matches_a_resource_of_any_type_and_a_patient() -> None:
    condition = by_entity("t", ["a"])

    assert condition.matches({"what": [f"{REPORT}/_history/1"]})
    assert condition.matches({"what": ["Observation/a"]})
    assert condition.matches({"patients": ["Patient/a"]})
    assert not condition.matches({"what": ["Observation/b/_history/a"]})


def test_an_id_alone_beside_a_name_leaves_no_key_to_look_by() -> None:
    condition = by_entity("t", ["b", REPORT])

    assert condition.keys is None
    assert condition.matches({"what": [REPORT]})
    assert condition.matches({"what": ["Observation/b"]})
    assert not condition.matches({"what": ["Observation/a"]})


@pytest.mark.parametrize(
    ("request_id", "matches"),
    [
        ("r-1", True),
        ("r-1-12", True),
        ("r-1-x", False),
        ("r-1-", False),
        ("r-1-2-3", False),
        ("r-12", False),
        ("r", False),
        ("", False),
    ],
)
def test_a_request_is_found_with_its_numbered_parts(request_id: str, *, matches: bool) -> None:
    assert by_request(["r-1"]).matches({"request": request_id}) is matches


def test_a_record_without_a_request_is_of_none() -> None:
    assert not by_request(["r-1"]).matches({})


@pytest.mark.parametrize(
    ("token", "matches"),
    [
        (Token(None, "R"), True),
        (Token("s", "R"), True),
        (Token("s", None), True),
        (Token("", "R"), False),
        (Token("other", "R"), False),
        (Token("other", None), False),
        (Token("s", "C"), False),
        (Token(None, "C"), False),
    ],
)
def test_a_code_matches_with_its_system_and_value_if_they_are_given(
    token: Token, *, matches: bool
) -> None:
    condition = by_code(lambda _record: [("x", "Y"), ("s", "R")], [Token("none", "none"), token])

    assert condition.matches({}) is matches


def test_without_conditions_every_block_is_looked_at() -> None:
    assert alternatives([]) == ((),)
    assert alternatives([Condition(anything)]) == ((),)


def test_a_condition_that_nothing_meets_leaves_no_block_to_look_at() -> None:
    assert alternatives([keyed(1, 2), keyed()]) == ()


def test_each_alternative_has_one_key_of_each_condition() -> None:
    assert {*alternatives([keyed(3, 1), keyed(2)])} == {(2, 1), (2, 3)}


@pytest.mark.parametrize(("count", "found"), [(8, 8), (9, 1)])
def test_blocks_are_found_by_at_most_eight_alternatives(count: int, found: int) -> None:
    assert len(alternatives([keyed(*range(count))])) == found


def test_what_would_make_too_many_alternatives_is_left_to_the_comparison() -> None:
    chosen = alternatives([keyed(*range(10, 15)), keyed(1, 2)])

    assert chosen == ((1,), (2,))


@pytest.mark.parametrize("count", [3, 4])
def test_at_most_three_keys_narrow_the_search(count: int) -> None:
    assert alternatives([keyed(number) for number in range(count)]) == ((0, 1, 2),)


@pytest.mark.parametrize(
    ("prefix", "intervals"),
    [
        ("eq", [(10, 20)]),
        ("ne", [(0, 10), (20, END_OF_TIME)]),
        ("gt", [(20, END_OF_TIME)]),
        ("sa", [(20, END_OF_TIME)]),
        ("ge", [(10, END_OF_TIME)]),
        ("lt", [(0, 10)]),
        ("eb", [(0, 10)]),
        ("le", [(0, 20)]),
    ],
)
def test_a_prefix_means_moments(prefix: str, intervals: list[tuple[int, int]]) -> None:
    assert intervals_of(prefix, (10, 20), now=99) == intervals


@pytest.mark.parametrize(("now", "slack"), [(2_000, 100), (0, 110), (1_050, 5), (1_005, 9)])
def test_about_allows_a_tenth_of_the_longer_distance_to_now(now: int, slack: int) -> None:
    assert intervals_of("ap", (1_000, 1_100), now=now) == [(1_000 - slack, 1_100 + slack)]
