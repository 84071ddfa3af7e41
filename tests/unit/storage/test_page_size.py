"""A page ends with the row by which it reaches its size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fhirpub.storage.contract import MAX_PAGE_BYTES
from fhirpub.storage.page_size import up_to_size


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1, [3]), (3, [3]), (4, [3, 4]), (7, [3, 4]), (8, [3, 4, 5]), (99, [3, 4, 5])],
)
def test_a_page_ends_with_the_row_that_reaches_its_size(most: int, expected: list[int]) -> None:
    assert [*up_to_size([3, 4, 5], int, most=most)] == expected


def test_a_page_of_no_size_has_one_row() -> None:
    assert [*up_to_size([1, 2], int, most=0)] == [1]


def test_rows_without_a_size_end_no_page() -> None:
    assert [*up_to_size([0, 0, 0], int, most=1)] == [0, 0, 0]


def test_no_rows_are_an_empty_page() -> None:
    assert [*up_to_size([], int)] == []


def test_a_page_has_the_size_of_every_page_unless_another_is_given() -> None:
    half = MAX_PAGE_BYTES // 2

    assert [*up_to_size([half, half - 1, 1, 1], int)] == [half, half - 1, 1]


def test_no_row_behind_the_end_is_read() -> None:
    read = []

    def rows() -> Iterator[int]:
        for row in (2, 2, 2):
            read.append(row)
            yield row

    assert [*up_to_size(rows(), int, most=4)] == [2, 2]
    assert read == [2, 2]
