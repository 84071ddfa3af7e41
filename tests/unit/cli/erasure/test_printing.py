"""What is shown of erasures, and what is left to know after them."""

from __future__ import annotations

import pytest

from fhirpub.cli.erasure.printing import records_of, rest_of
from tests.unit.cli.erasure.records import erased


def test_an_erasure_is_a_row_with_its_numbers() -> None:
    assert records_of([erased(id="1", documents_kept=5, bytes=6)]) == [
        {
            "resource": "DiagnosticReport/1",
            "versions": 2,
            "results": 3,
            "documents": 4,
            "documents kept": 5,
            "bytes": 6,
        }
    ]


def test_nothing_is_left_to_know_of_a_complete_erasure() -> None:
    assert list(rest_of([erased(), erased()])) == []


def test_documents_that_are_deleted_later_are_added_up() -> None:
    (line,) = rest_of([erased(documents_later=1_000), erased(documents_later=234)])

    assert line.startswith("1,234 documents were added within the last hour")


@pytest.mark.parametrize(("later", "lines"), [(0, 1), (2, 1)])
def test_an_incomplete_erasure_is_named_by_what_it_waits_for(later: int, lines: int) -> None:
    found = list(rest_of([erased(is_complete=False, documents_later=later)]))

    assert len(found) == lines
    assert found[0].startswith("Something is left" if not later else "2 documents")


def test_both_reasons_are_named_if_they_are_of_two_erasures() -> None:
    found = [erased(is_complete=False), erased(is_complete=False, documents_later=2)]

    assert len(list(rest_of(found))) == 2
