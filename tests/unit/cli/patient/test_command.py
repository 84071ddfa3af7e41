"""``fhirpub patient relink``: what it asks for, and what it prints."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import patients
from fhirpub.cli.patient.command import patient
from tests.unit.cli.bureau import Bureau

REPORT, OTHER = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
RELINK = ("relink", REPORT, "--tenant", "t-1", "--reason", "why", "--operator", "ana")
MOVED = {"report": f"DiagnosticReport/{REPORT}", "is_needed": True}
COMMON = {
    "tenant": "t-1",
    "reports": [REPORT],
    "reason": "why",
    "operator": "ana",
    "dry_run": False,
}


@pytest.mark.parametrize(
    ("words", "way"),
    [
        (("--identifier", "urn:x|4711"), {"identifier": "urn:x|4711"}),
        (("--patient", "p-1"), {"patient": "p-1"}),
        (("--apart",), {"apart": True}),
    ],
)
def test_reports_are_moved_to_the_patient_that_is_named(
    bureau: Bureau, words: tuple[str, ...], way: dict[str, Any]
) -> None:
    bureau.answer(patients.RELINK, {"moved": [MOVED], "left": []})

    shown = bureau.json(patient, *RELINK, *words)

    assert bureau.only() == ("patient relink", COMMON | way)
    assert shown == [{"report": MOVED["report"], "outcome": "moved"}]


@pytest.mark.parametrize(
    ("words", "is_needed", "outcome"),
    [
        ((), True, "moved"),
        ((), False, "belongs to it already"),
        (("--dry-run",), True, "would be moved"),
        (("--dry-run",), False, "belongs to it already"),
    ],
)
def test_what_became_of_each_report_is_printed(
    bureau: Bureau, words: tuple[str, ...], outcome: str, *, is_needed: bool
) -> None:
    bureau.answer(
        patients.RELINK, {"moved": [{**MOVED, "is_needed": is_needed}], "left": ["one is left"]}
    )

    result = bureau.run(patient, *RELINK, "--patient", "p-1", *words)

    assert result.stdout.splitlines()[-1].split("  ")[-1] == outcome
    assert result.stderr == "one is left\n"
    assert bureau.only()[1]["dry_run"] is bool(words)


def test_each_report_is_moved_once_in_the_order_given(bureau: Bureau) -> None:
    bureau.answer(patients.RELINK, {"moved": [], "left": []})

    bureau.json(patient, *RELINK, OTHER, f"DiagnosticReport/{REPORT}", OTHER, "--patient", "p-1")

    assert bureau.only()[1]["reports"] == [REPORT, OTHER]


@pytest.mark.parametrize(
    "words", [(), ("--apart", "--patient", "p"), ("--patient", "p", "--identifier", "a|b")]
)
def test_exactly_one_patient_must_be_named(bureau: Bureau, words: tuple[str, ...]) -> None:
    result = bureau.run(patient, *RELINK, *words)

    assert (result.exit_code, bureau.asked) == (2, [])
    assert "name one of --identifier, --patient and --apart" in result.stderr


def test_only_one_report_is_moved_apart(bureau: Bureau) -> None:
    result = bureau.run(patient, *RELINK, OTHER, "--apart")

    assert (result.exit_code, bureau.asked) == (2, [])
    assert "--apart takes one report: move it first" in result.stderr


@pytest.mark.parametrize("option", ["--tenant", "--reason"])
def test_tenant_and_reason_must_be_given(bureau: Bureau, option: str) -> None:
    place = RELINK.index(option)
    words = RELINK[:place] + RELINK[place + 2 :]

    assert bureau.run(patient, *words, "--apart").exit_code == 2
