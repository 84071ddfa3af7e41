"""``fhirpub patient conflicts``: all pages are read, and each conflict is shown once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fhirpub.administration import patients
from fhirpub.cli import progress_line
from fhirpub.cli.patient.command import patient
from fhirpub.interactions.patients.all_conflicts import MAX_CONFLICTS
from tests.unit.cli.bureau import Bureau, run_without_store

CONFLICTS = ("conflicts", "--tenant", "t-1")


def page(*identifiers: str, following: str | None = None, **member: Any) -> dict[str, Any]:
    found = [{"identifier": one, **member} for one in identifiers]
    return {"conflicts": found, "read": 5, "versions": 9, "following": following}


def test_every_page_is_asked_for_from_where_the_last_one_ended(bureau: Bureau) -> None:
    bureau.answer(patients.CONFLICTS, page("a", following="x"), page("b"))

    shown = bureau.json(patient, *CONFLICTS)

    assert shown == [{"identifier": "a"}, {"identifier": "b"}]
    assert [one.arguments for one in bureau.asked] == [
        {"tenant": "t-1", "after": ""},
        {"tenant": "t-1", "after": "x"},
    ]


def test_a_conflict_on_two_pages_is_shown_as_it_was_found_last(bureau: Bureau) -> None:
    bureau.answer(
        patients.CONFLICTS, page("a", "b", following="x", patients=2), page("a", patients=3)
    )

    assert bureau.json(patient, *CONFLICTS) == [
        {"identifier": "a", "patients": 3},
        {"identifier": "b", "patients": 2},
    ]


def test_without_conflicts_one_sentence_is_printed(bureau: Bureau) -> None:
    bureau.answer(patients.CONFLICTS, page())

    result = bureau.run(patient, *CONFLICTS)

    assert result.stdout == "No identifier belongs to several Patients.\n"
    assert result.stderr == ""


CUT = f"There may be more than these {MAX_CONFLICTS:,}.\n"


@pytest.mark.parametrize(
    ("count", "pages", "shown", "note"),
    [
        (MAX_CONFLICTS - 1, 2, MAX_CONFLICTS - 1, ""),
        (MAX_CONFLICTS, 1, MAX_CONFLICTS, CUT),
        (MAX_CONFLICTS + 1, 1, MAX_CONFLICTS, CUT),
    ],
)
def test_no_page_is_asked_for_beyond_the_limit(
    bureau: Bureau, count: int, pages: int, shown: int, note: str
) -> None:
    names = [f"i-{number}" for number in range(count)]
    bureau.answer(patients.CONFLICTS, page(*names, following="x"), page())

    result = bureau.run(patient, *CONFLICTS, "--json")

    assert result.stderr == note
    assert len(bureau.asked) == pages
    assert result.stdout.count("i-") == shown


def test_no_store_is_created_to_find_nothing_in_it(tmp_path: Path) -> None:
    assert not run_without_store(tmp_path, patient, *CONFLICTS).exists()


def test_a_line_states_how_much_was_read_of_all_pages(
    bureau: Bureau, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_line, "_SECONDS_BETWEEN_LINES", 0)
    bureau.answer(patients.CONFLICTS, page("a", following="x"), page("b"))

    result = bureau.run(patient, *CONFLICTS)

    assert result.stderr == "5 of 9 versions\n10 of 9 versions\n"
