"""``fhirpub patient show``: what it asks for, and what it prints."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import patients
from fhirpub.cli.patient.command import patient
from tests.unit.cli.bureau import Bureau

SHOW = ("show", "--tenant", "t-1")


def shown(count: int) -> dict[str, Any]:
    return {"patient": "p-1", "statements": [{"report": f"r-{n}"} for n in range(count)]}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (("p-1",), {"patient": "p-1", "names": False}),
        (("p-1", "--names"), {"patient": "p-1", "names": True}),
        (("--identifier", "urn:x|4711"), {"identifier": "urn:x|4711", "names": False}),
    ],
)
def test_a_patient_is_named_by_its_id_or_an_identifier(
    bureau: Bureau, words: tuple[str, ...], arguments: dict[str, Any]
) -> None:
    bureau.answer(patients.SHOW, shown(1))

    assert bureau.json(patient, *SHOW, *words) == shown(1)
    assert bureau.only() == ("patient show", {"tenant": "t-1", **arguments})


@pytest.mark.parametrize("words", [(), ("p-1", "--identifier", "urn:x|4711")])
def test_a_patient_is_named_in_one_way(bureau: Bureau, words: tuple[str, ...]) -> None:
    result = bureau.run(patient, *SHOW, *words)

    assert (result.exit_code, bureau.asked) == (2, [])
    assert "name either a PATIENT_ID or --identifier" in result.stderr


def test_statements_are_printed_below_the_patient(bureau: Bureau) -> None:
    bureau.answer(patients.SHOW, shown(2))

    assert bureau.run(patient, *SHOW, "p-1").stdout == "Patient/p-1\nreport\nr-0\nr-1\n"


def test_a_patient_of_whom_nothing_was_stated_has_no_table(bureau: Bureau) -> None:
    bureau.answer(patients.SHOW, shown(0))

    result = bureau.run(patient, *SHOW, "p-1")

    assert result.stdout == "Patient/p-1\nNothing was stated about it.\n"


@pytest.mark.parametrize(("count", "is_cut"), [(999, False), (1_000, True)])
def test_a_cut_list_is_marked_as_cut(bureau: Bureau, count: int, *, is_cut: bool) -> None:
    bureau.answer(patients.SHOW, shown(count))

    text = bureau.run(patient, *SHOW, "p-1").stdout

    assert text.endswith("Only the newest 1,000 statements are shown.\n") is is_cut
