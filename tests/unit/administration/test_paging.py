from __future__ import annotations

import pytest

from fhirpub.administration.paging import read_numbers
from fhirpub.errors import InvalidContent


@pytest.mark.parametrize(
    ("parts", "numbers"), [(["0"], [0]), (["007", "12"], [7, 12]), (["9" * 18], [10**18 - 1])]
)
def test_a_place_consists_of_numbers(parts: list[str], numbers: list[int]) -> None:
    assert read_numbers(parts, count=len(parts), name="from") == numbers


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        ([], 1),
        (["1"], 2),
        (["1", "2"], 1),
        ([""], 1),
        (["-1"], 1),
        (["1.5"], 1),
        (["x"], 1),
        (["٣"], 1),
        (["²"], 1),
        (["9" * 19], 1),
        (["1", "x"], 2),
    ],
)
def test_what_is_no_place_is_refused_under_its_name(parts: list[str], count: int) -> None:
    with pytest.raises(InvalidContent) as refused:
        read_numbers(parts, count=count, name="from")

    (issue,) = refused.value.issues
    assert issue.expression == "from"
    assert issue.diagnostics == "must be what the response before it has in `following`"
