"""Later messages about a report become its next versions; earlier ones change nothing."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from fhirpub.testing.service import Integrator
from tests.hl7v2.conftest import Run
from tests.hl7v2.messages import message, obr, obx, pid, segment


def state(status: str, value: str, issued: str = "20260302104000", *others: str) -> bytes:
    result = obx({5: value, 11: status})
    return message(pid(), obr({25: status, 22: issued}), result, *others)


def report(lab: Integrator) -> dict[str, Any]:
    (entry,) = lab.get("/fhir/r4/DiagnosticReport").json["entry"]
    found: dict[str, Any] = entry["resource"]
    return found


def values(lab: Integrator) -> dict[str, str]:
    entries = lab.get("/fhir/r4/Observation").json["entry"]
    return {
        each["resource"]["identifier"][0]["value"]: str(each["resource"]["valueQuantity"]["value"])
        for each in entries
        if "valueQuantity" in each["resource"]
    }


def result_of(done: Any) -> str:
    return str(json.loads(done.stdout)["result"])


def test_a_correction_becomes_the_next_version(lab: Integrator, run: Run) -> None:
    run(state("P", "13.1"))
    run(state("F", "13.2"))

    corrected = run(state("C", "12.3"), "--json")

    assert result_of(corrected) == "revised"
    assert (report(lab)["status"], report(lab)["meta"]["versionId"]) == ("corrected", "3")
    assert values(lab) == {"NQ-1001/718-7": "12.3"}


def test_the_same_correction_again_is_a_repetition(lab: Integrator, run: Run) -> None:
    run(state("F", "13.2"))
    run(state("C", "12.3"))

    again = run(state("C", "12.3"), "--json")

    assert result_of(again) == "replayed"
    assert report(lab)["meta"]["versionId"] == "2"


def test_an_earlier_state_is_not_stored(lab: Integrator, run: Run) -> None:
    run(state("F", "13.2"))

    late = run(state("P", "11.0"))

    assert late.exit_code == 3
    assert "is of a later state" in late.stderr
    assert values(lab) == {"NQ-1001/718-7": "13.2"}


def test_an_earlier_issue_of_the_same_state_is_not_stored(lab: Integrator, run: Run) -> None:
    run(state("F", "13.2", "20260302110000"))

    assert run(state("F", "11.0", "20260302104000")).exit_code == 3
    assert values(lab) == {"NQ-1001/718-7": "13.2"}


def test_a_first_message_may_be_a_correction(lab: Integrator, run: Run) -> None:
    first = run(state("C", "12.3"), "--json")
    again = run(state("C", "12.3"), "--json")

    assert (result_of(first), result_of(again)) == ("revised", "replayed")
    assert report(lab)["status"] == "corrected"


def test_a_correction_of_one_result_keeps_the_others(lab: Integrator, run: Run) -> None:
    run(state("F", "13.2", "20260302104000", obx({3: "777-3^Platelets^LN", 5: "248"})))

    done = run(state("C", "12.3"), "--json")

    assert result_of(done) == "revised", done.stderr
    assert values(lab) == {"NQ-1001/718-7": "12.3", "NQ-1001/777-3": "248"}
    assert len(report(lab)["result"]) == 2


def test_the_rendered_document_of_a_part_has_a_remark(lab: Integrator, run: Run) -> None:
    run(state("F", "13.2", "20260302104000", obx({3: "777-3^Platelets^LN", 5: "248"})))
    run(state("C", "12.3"))

    full = lab.get(f"/fhir/r4/DiagnosticReport/{report(lab)['id']}").json
    text = base64.b64decode(full["presentedForm"][0]["data"]).decode()

    assert text.endswith("The report has other results, which were sent before.\n")


def test_a_deleted_result_is_entered_in_error(lab: Integrator, run: Run) -> None:
    other = {3: "777-3^Platelets^LN", 5: "248"}
    run(state("F", "13.2", "20260302104000", obx(other)))

    done = run(state("C", "13.2", "20260302104000", obx({**other, 11: "D"})), "--json")

    entries = lab.get("/fhir/r4/Observation?status=entered-in-error").json["entry"]
    assert result_of(done) == "revised", done.stderr
    assert len(entries) == 1


def test_a_correction_of_another_patient_is_refused(lab: Integrator, run: Run) -> None:
    run(state("F", "13.2"))
    other = message(pid({3: "4^^^REG"}), obr({25: "C"}), obx({11: "C"}))

    done = run(other)

    assert done.exit_code == 1
    assert report(lab)["meta"]["versionId"] == "1"


def test_a_corrected_name_does_not_stop_a_result(lab: Integrator, run: Run) -> None:
    run(state("P", "13.1"))
    renamed = message(pid({5: "Ashdowne^Juniper"}), obr(), obx())

    done = run(renamed, "--json")
    again = run(renamed, "--json")

    assert result_of(done) == "revised"
    assert json.loads(done.stdout)["kept"] == ["patient"]
    assert "stored, but for patient: what differs there stays as it was registered" in done.stderr
    assert values(lab) == {"NQ-1001/718-7": "13.2"}
    (patient,) = lab.get("/fhir/r4/DiagnosticReport?_include=DiagnosticReport:patient").json[
        "entry"
    ][1:]
    assert patient["resource"]["name"][0]["family"] == "Ashdown"
    assert result_of(again) == "replayed"


def test_a_patient_without_an_identifier_is_another_one(lab: Integrator, run: Run) -> None:
    run(state("P", "13.1"))

    done = run(message(pid({3: ""}), obr(), obx()))

    assert done.exit_code == 1
    assert "element-not-updatable" in done.stderr


def test_specimens_that_a_message_does_not_repeat_stay(lab: Integrator, run: Run) -> None:
    blood, plasma = (segment("SPM", {2: f"^{number}&LIS", 4: number}) for number in "12")
    run(message(pid(), obr({25: "P"}), obx(), blood))

    without = run(state("F", "13.2"), "--json")
    other = run(message(pid(), obr({25: "C"}), obx({5: "12.3", 11: "C"}), plasma), "--json")

    assert (result_of(without), result_of(other)) == ("revised", "revised"), other.stderr
    assert len(report(lab)["specimen"]) == 2


def test_a_specimen_without_a_number_is_the_same_one(lab: Integrator, run: Run) -> None:
    blood = segment("SPM", {4: "BLD"})
    run(message(pid(), obr({25: "P"}), obx(), blood))

    done = run(message(pid(), obr(), obx(), blood), "--json")

    assert result_of(done) == "revised", done.stderr
    assert len(report(lab)["specimen"]) == 1


@pytest.mark.parametrize(
    ("first", "later", "kept"),
    [
        ({7: ""}, {}, "DiagnosticReport.effective"),
        ({}, {8: "20260302093000"}, "DiagnosticReport.effective"),
        ({}, {4: "58410-2^CBC panel^LN"}, "DiagnosticReport.code"),
        ({}, {24: "LAB"}, "DiagnosticReport.category"),
    ],
)
def test_what_means_the_same_does_not_stop_a_result(
    lab: Integrator, run: Run, first: dict[int, str], later: dict[int, str], kept: str
) -> None:
    run(message(pid(), obr({**first, 25: "P"}), obx({5: "13.1", 11: "P"})))

    done = run(message(pid({5: "Other"}), obr(later), obx()), "--json")

    assert result_of(done) == "revised", done.stderr
    assert sorted(json.loads(done.stdout)["kept"]) == sorted([kept, "patient"])
    assert values(lab) == {"NQ-1001/718-7": "13.2"}


def test_another_name_of_the_laboratory_does_not_stop_a_result(lab: Integrator, run: Run) -> None:
    run(state("P", "13.1"))

    done = run(message(msh={4: "North Quay Laboratories"}), "--json")

    assert result_of(done) == "revised", done.stderr
    assert json.loads(done.stdout)["kept"] == ["organization"]


@pytest.mark.parametrize("fields", [{4: "1-1^Other^LN"}, {7: "20260303081500"}])
def test_another_examination_is_refused_also_with_another_name(
    lab: Integrator, run: Run, fields: dict[int, str]
) -> None:
    run(state("P", "13.1"))

    done = run(message(pid({5: "Other"}), obr(fields), obx()))

    assert done.exit_code == 1
    assert report(lab)["meta"]["versionId"] == "1"


def test_a_result_that_is_only_made_final_keeps_its_value(lab: Integrator, run: Run) -> None:
    run(state("P", "13.1"))

    done = run(message(pid(), obr(), obx({5: "", 6: "", 11: "U"})), "--json")

    (entry,) = lab.get("/fhir/r4/Observation").json["entry"]
    assert result_of(done) == "revised", done.stderr
    assert entry["resource"]["status"] == "final"
    assert values(lab) == {"NQ-1001/718-7": "13.1"}
