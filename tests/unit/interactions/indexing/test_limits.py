"""The limits of search values: at the limit they are stored, one beyond it they are refused."""

from __future__ import annotations

import pytest

from fhirpub.errors import TooLarge
from fhirpub.interactions.indexing.limits import (
    MAX_SEARCH_BYTES,
    MAX_SEARCH_VALUES,
    encode_limited,
    refuse_excess,
)
from fhirpub.storage.criteria import SearchValue, decode, encode

AS_MANY: list[SearchValue] = [("n", str(number), "") for number in range(MAX_SEARCH_VALUES)]


def refusal(number: int, size: int) -> str:
    with pytest.raises(TooLarge) as refused:
        refuse_excess(number, size)
    (issue,) = refused.value.issues
    assert issue.details == "search-values-too-many"
    return issue.diagnostics


def test_the_limits_are_those_of_the_documentation() -> None:
    assert (MAX_SEARCH_VALUES, MAX_SEARCH_BYTES) == (2_000, 256 * 1_024)


def test_as_many_as_the_limits_are_accepted() -> None:
    refuse_excess(MAX_SEARCH_VALUES, MAX_SEARCH_BYTES)

    assert encode_limited(AS_MANY, limited=True) == encode(AS_MANY)


def test_one_value_more_is_refused_by_its_number() -> None:
    said = refusal(MAX_SEARCH_VALUES + 1, 0)

    assert said.startswith("has more than 2000 search values, which are the codings")
    assert said.endswith("send fewer of them, or divide the content among several resources")


def test_one_byte_more_is_refused_by_its_size() -> None:
    assert refusal(0, MAX_SEARCH_BYTES + 1).startswith("has more than 256 KiB of search values,")


def test_too_many_values_are_named_before_too_many_bytes() -> None:
    assert "2000" in refusal(MAX_SEARCH_VALUES + 1, MAX_SEARCH_BYTES + 1)


def test_values_that_repeat_count_each() -> None:
    with pytest.raises(TooLarge):
        encode_limited([*AS_MANY, AS_MANY[0]], limited=True)


def test_what_is_stored_already_has_no_limit() -> None:
    more = [*AS_MANY, ("m", "1", "")]

    assert decode(encode_limited(more, limited=False)) == more


@pytest.mark.parametrize(("beyond", "is_refused"), [(0, False), (1, True)])
def test_the_bytes_are_those_of_the_stored_form(beyond: int, *, is_refused: bool) -> None:
    frame = len(encode([("n", "", "")]))
    values: list[SearchValue] = [("n", "x" * (MAX_SEARCH_BYTES - frame + beyond), "")]

    if is_refused:
        with pytest.raises(TooLarge):
            encode_limited(values, limited=True)
    else:
        assert len(encode_limited(values, limited=True)) == MAX_SEARCH_BYTES


def test_as_many_values_as_the_limit_that_are_too_long_are_refused_by_their_size() -> None:
    assert "256 KiB" in refusal(MAX_SEARCH_VALUES, MAX_SEARCH_BYTES + 1)
