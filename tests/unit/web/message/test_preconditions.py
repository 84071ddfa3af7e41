"""Conditions on a version that a request states in its headers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.errors import PreconditionRequired, VersionConflict, VersionReplaced
from fhirpub.fhir.times import http_date, instant
from fhirpub.storage.contract import Version
from fhirpub.testing.samples import a_version
from fhirpub.web.message.preconditions import (
    MalformedPrecondition,
    Preconditions,
    check_if_match,
    includes_tag,
)


@pytest.mark.parametrize(
    "values",
    [
        [],
        ["*"],
        [" * "],
        ['W/"3"'],
        ['"3"'],
        ['"1", W/"3"'],
        ['"1"', 'W/"3"'],
        ['"1",,"3"'],
        ['\t"3" ,'],
    ],
)
def test_a_tag_of_the_current_version_matches(values: list[str]) -> None:
    check_if_match(values, 3)


@pytest.mark.parametrize(
    ("values", "named"),
    [(['W/"2"'], "2"), (['"1", "2"'], "1"), (['"7", "2"'], "7"), (['"2", "7"'], "2")],
)
def test_an_earlier_version_was_replaced(values: list[str], named: str) -> None:
    with pytest.raises(VersionReplaced) as refused:
        check_if_match(values, 3)

    assert named in str(refused.value)
    assert "3" in str(refused.value)


@pytest.mark.parametrize("values", [['W/"4"'], ['"abc"'], ['""'], ['"03"'], ['"0"'], ['"3 "']])
def test_a_version_that_there_is_not_is_a_conflict_and_no_earlier_one(values: list[str]) -> None:
    with pytest.raises(VersionConflict) as refused:
        check_if_match(values, 3)

    assert not isinstance(refused.value, (VersionReplaced, MalformedPrecondition))


@pytest.mark.parametrize("values", [["3"], ["W/3"], ['"3'], ['"1" "3" x'], ["w/3"], [""]])
def test_what_is_no_tag_matches_nothing_and_names_the_right_one(values: list[str]) -> None:
    with pytest.raises(MalformedPrecondition) as refused:
        check_if_match(values, 3)

    assert 'send If-Match: W/"3"' in str(refused.value)


def test_no_more_than_64_characters_of_a_header_are_repeated() -> None:
    with pytest.raises(MalformedPrecondition) as refused:
        check_if_match(["x" * 65], 3)

    assert "x" * 64 in str(refused.value)
    assert "x" * 65 not in str(refused.value)


@pytest.mark.parametrize(
    ("header", "includes"),
    [
        ('W/"3"', True),
        ('"3"', True),
        ('"1", W/"3"', True),
        ("*", True),
        (" * ", True),
        ('"13"', False),
        ('"3x"', False),
        ("3", False),
        ("", False),
    ],
)
def test_a_tag_is_included_by_weak_comparison(header: str, *, includes: bool) -> None:
    assert includes_tag(header, "3") is includes


SECOND = 1_795_000_000_000


def version(updated: int = SECOND) -> Version:
    return replace(a_version(), updated=updated)


def test_without_conditions_any_version_will_do() -> None:
    Preconditions().check(version())


def test_the_current_version_satisfies_its_own_tag() -> None:
    latest = version()

    Preconditions([f'W/"{latest.tag}"']).check(latest)


def test_another_tag_is_a_conflict() -> None:
    with pytest.raises(VersionConflict):
        Preconditions(['W/"77"']).check(version())


@pytest.mark.parametrize("updated", [SECOND - 1, SECOND, SECOND + 999])
def test_a_version_of_the_same_second_is_not_newer(updated: int) -> None:
    Preconditions(unmodified_since=http_date(SECOND)).check(version(updated))


def test_a_version_of_the_next_second_is_newer() -> None:
    with pytest.raises(VersionConflict, match=http_date(SECOND)):
        Preconditions(unmodified_since=http_date(SECOND)).check(version(SECOND + 1_000))


def test_a_date_that_cannot_be_read_is_no_condition() -> None:
    Preconditions(unmodified_since="yesterday").check(version())


def test_a_tag_goes_before_a_date() -> None:
    latest = version(SECOND + 5_000)

    Preconditions([f'"{latest.tag}"'], http_date(SECOND)).check(latest)


@pytest.mark.parametrize("values", [["*"], ['W/"{tag}"'], ['"9"', '"{tag}"']])
def test_a_version_that_the_client_excludes_is_a_conflict(values: list[str]) -> None:
    latest = version()
    excluded = [value.replace("{tag}", str(latest.tag)) for value in values]

    with pytest.raises(VersionConflict, match="other than the current"):
        Preconditions(if_none_match=excluded).check(latest)


def test_both_conditions_must_hold() -> None:
    latest = version()

    with pytest.raises(VersionConflict):
        Preconditions([f'"{latest.tag}"'], if_none_match=["*"]).check(latest)
    Preconditions([f'"{latest.tag}"'], if_none_match=['"77"']).check(latest)


@pytest.mark.parametrize("given", [Preconditions(), Preconditions(unmodified_since="x")])
def test_a_date_or_nothing_does_not_do_where_a_tag_is_required(given: Preconditions) -> None:
    with pytest.raises(PreconditionRequired):
        given.require_if_match()


def test_any_tag_does_where_one_is_required() -> None:
    Preconditions(["*"]).require_if_match()


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (['W/"2"'], "target version 2, current version 3"),
        (['"abc"'], "target version 'abc', current version 3"),
        (['"٣"'], "target version '٣', current version 3"),
        ([f'"{"a" * 65}"'], f"target version '{'a' * 64}', current version 3"),
        (
            ["x"],
            "target version 'x', current version 3: send If-Match: W/\"3\"",
        ),
    ],
)
def test_a_conflict_names_both_versions(values: list[str], text: str) -> None:
    with pytest.raises(VersionConflict) as refused:
        check_if_match(values, 3)

    assert str(refused.value) == text


@pytest.mark.parametrize("values", [['"1"'], ['"abc"']])
def test_what_is_no_number_has_no_earlier_versions(values: list[str]) -> None:
    with pytest.raises(VersionConflict) as refused:
        check_if_match(values, "abcd")

    assert not isinstance(refused.value, VersionReplaced)


def test_other_conflicts_name_the_current_version() -> None:
    latest = replace(version(SECOND + 1_000), version=7)

    with pytest.raises(VersionConflict) as excluded:
        Preconditions(if_none_match=["*"]).check(latest)
    with pytest.raises(VersionConflict) as newer:
        Preconditions(unmodified_since=http_date(SECOND)).check(latest)

    assert str(excluded.value) == "target version other than the current, current version 7"
    assert str(newer.value) == f"target version of {http_date(SECOND)}, current version 7"


@pytest.mark.parametrize(
    ("updated", "is_newer"), [(SECOND + 5, False), (SECOND + 6, False), (SECOND + 7, True)]
)
def test_an_instant_is_compared_to_the_millisecond(updated: int, *, is_newer: bool) -> None:
    given = Preconditions(unmodified_since=instant(SECOND + 6))

    if is_newer:
        with pytest.raises(VersionConflict):
            given.check(version(updated))
    else:
        given.check(version(updated))
