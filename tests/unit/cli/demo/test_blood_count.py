"""The blood count of the demo: what is registered, and what its correction changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fhirpub.cli.demo.blood_count import first_submission, results_in, revised_submission


def interpretations(body: dict[str, Any]) -> dict[str, str]:
    return {
        result["id"]: result["interpretation"][0]["coding"][0]["code"]
        for result in results_in(body)
        if "interpretation" in result
    }


def test_the_report_refers_to_each_of_its_twelve_results(tmp_path: Path) -> None:
    submission = first_submission(tmp_path)

    sent = [f"Observation/{result['id']}" for result in results_in(submission.body)]
    assert len(sent) == 12
    assert [one["reference"] for one in submission.entry["resource"]["result"]] == sent


def test_what_lies_outside_of_its_range_is_marked(tmp_path: Path) -> None:
    body = first_submission(tmp_path).body

    assert interpretations(body) == {"wbc": "H", "neut": "H", "plt": "L"}


def test_the_correction_changes_one_result(tmp_path: Path) -> None:
    first = {one["id"]: one for one in results_in(first_submission(tmp_path).body)}
    revised = revised_submission(tmp_path)

    changed = [one for one in results_in(revised.body) if one != first[one["id"]]]

    assert [(one["code"]["text"], one["status"]) for one in changed] == [
        ("Platelets", "corrected")
    ]
    assert "interpretation" not in changed[0]
    assert revised.entry["resource"]["presentedForm"][0]["title"] == "corrected.pdf"


def test_the_corrected_report_states_what_was_corrected_and_why(tmp_path: Path) -> None:
    first = first_submission(tmp_path).entry["resource"]
    revised = revised_submission(tmp_path)

    report = revised.entry["resource"]
    (note,) = [one["note"][0]["text"] for one in results_in(revised.body) if "note" in one]
    assert (first["status"], report["status"]) == ("final", "corrected")
    assert report["conclusion"] == f"Leukocytes and neutrophils slightly raised. {note}"


def test_the_corrected_value_lies_within_its_range(tmp_path: Path) -> None:
    values = {one["id"]: one for one in results_in(revised_submission(tmp_path).body)}

    assert values["plt"]["valueQuantity"]["value"] == 248
    assert interpretations(revised_submission(tmp_path).body) == {"wbc": "H", "neut": "H"}
