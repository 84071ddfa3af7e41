"""The steps of the demo: the bodies that they send, and what each of them asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from fhirpub.cli.demo import steps
from fhirpub.cli.demo.steps import write_files
from tests.canned import created, response


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_files(folder)
    return folder


def report_in(file: Path) -> dict[str, Any]:
    entries = {one["name"]: one["resource"] for one in json.loads(file.read_bytes())["parameter"]}
    found: dict[str, Any] = entries["diagnosticReport"]
    return found


def test_every_body_that_a_command_sends_is_a_file(folder: Path) -> None:
    assert sorted(file.name for file in folder.iterdir()) == [
        *("corrected.pdf", "deviceRequest.json", "encounter.json", "medicationRequest.json"),
        *("observation.json", "register.json", "report.pdf", "revise.json"),
        *("serviceRequest.json", "update.json", "wrong.json"),
    ]


def test_the_report_is_registered_corrected_and_amended(folder: Path) -> None:
    update = json.loads((folder / "update.json").read_bytes())

    assert report_in(folder / "register.json")["status"] == "final"
    assert report_in(folder / "revise.json")["status"] == "corrected"
    assert update["status"] == "amended"
    assert set(update) == {"resourceType", "status", "conclusion"}


def test_the_body_with_mistakes_has_several(folder: Path) -> None:
    wrong = report_in(folder / "wrong.json")

    assert wrong["status"] == "amended"
    assert "category" not in wrong
    assert "text" not in wrong["code"]
    assert "hash" not in wrong["presentedForm"][0]
    assert "hash" in report_in(folder / "register.json")["presentedForm"][0]


def test_a_correction_names_the_version_and_an_old_version_is_refused() -> None:
    path, etag = "/fhir/r4/DiagnosticReport/d-1", 'W/"1"'

    revise, stale, update = (
        steps._revise(path, etag),
        steps._stale_update(path, etag),
        steps._update(path, etag),
    )

    assert (revise.method, revise.path, revise.expected) == ("POST", f"{path}/$revise", 200)
    assert (stale.method, stale.path, stale.expected) == ("PATCH", path, 412)
    assert (update.method, update.path, update.expected) == ("PATCH", path, 204)
    assert {one.if_match for one in (revise, stale, update)} == {etag}
    assert '-H "If-Match: $ETAG"' in revise.curl()
    assert '-H "If-Match: $ETAG"' in update.curl()
    assert "$ETAG" not in stale.curl()


def test_a_reader_finds_the_patient_the_newest_result_and_its_report() -> None:
    patient = steps._find_patient({"system": "s", "value": "v"})
    result = steps._find_result("p-1")

    assert patient.query == {"identifier": "s|v"}
    assert result.query == {
        "patient": "p-1",
        "code": "http://loinc.org|777-3",
        "_sort": "-date",
    }
    assert steps._find_report("o-1").query == {"result": "Observation/o-1"}


def test_the_id_is_read_from_the_address_of_the_first_version() -> None:
    assert steps._read_id(created(3)) == "d-1"


def test_another_status_stops_the_demo() -> None:
    steps._expect(response(201), 201)

    with pytest.raises(click.ClickException, match="expected 201 here, not 200"):
        steps._expect(response(200), 201)


def test_a_body_with_mistakes_is_expected_to_be_refused() -> None:
    refusal = steps._show_refusal()

    assert (refusal.method, refusal.file, refusal.expected) == ("POST", "wrong.json", 400)
    assert refusal.path == "/fhir/r4/DiagnosticReport/$register"


def test_the_body_of_a_command_is_for_people_to_read(folder: Path) -> None:
    text = (folder / "update.json").read_text(encoding="utf-8")

    assert text.splitlines()[:2] == ["{", '  "resourceType": "DiagnosticReport",']
    assert text.endswith("}\n")


def test_the_reads_of_the_demo_show_what_they_are_about() -> None:
    path = "/fhir/r4/DiagnosticReport/d-1"

    history, patient = steps._history(path), steps._find_patient({"system": "s", "value": "v"})
    result, report = steps._find_result("p-1"), steps._find_report("o-1")

    assert (history.path, history.shown) == (f"{path}/_history", ("status", "conclusion"))
    assert (patient.path, patient.shown) == ("/fhir/r4/Patient", ("name", "birthDate"))
    assert result.path == "/fhir/r4/Observation"
    assert report.path == "/fhir/r4/DiagnosticReport"
    assert {one.method for one in (history, patient, result, report)} == {"GET"}


def test_the_etag_is_kept_in_a_variable_of_the_shell() -> None:
    first, second = steps._keep_etag("/x")

    assert first.startswith("ETAG=$(curl -sS -o /dev/null -D - ")
    assert '"$BASE/x"' in first
    assert "awk 'tolower($1) == \"etag:\" {print $2}')" in second
