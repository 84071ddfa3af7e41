"""``fhirpub-hl7v2 publish`` publishes the messages of a file at a service."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from fhirpub.testing.service import Integrator
from tests.corpus.validator import Validator, faults
from tests.hl7v2.conftest import Run
from tests.hl7v2.messages import mapped, message, obr, obx, pid, segment

PDF = base64.b64encode(b"%PDF-1.4\n%EOF\n").decode()
FULL = message(
    pid(),
    segment("ORC", {1: "RE", 2: "P-77^HIS"}),
    obr({15: "BLD&Blood&HL70070"}),
    segment("NTE", {3: "All within the reference ranges"}),
    obx({7: "12.0-16.0", 8: "N", 14: "202603020815", 17: "A^Automated^99LOC"}),
    segment("NTE", {3: "checked"}),
    obx({2: "SN", 3: "1^CRP^99LOC", 5: "<^5", 6: "mg/L^^UCUM", 8: "XYZ"}),
    obx({2: "SN", 3: "2^Titer^99LOC", 5: "^1^:^128", 6: ""}),
    obx({2: "SN", 3: "3^Cells^99LOC", 5: "^2^-^4", 6: "/field"}),
    obx({2: "CE", 3: "4^Blood group^99LOC", 5: "278149003^A positive^SCT", 6: ""}),
    obx({2: "CWE", 3: "5^Growth^99LOC", 5: "^none", 6: ""}),
    obx({2: "ST", 3: "6^Text^99LOC", 5: "two\\.br\\lines", 6: ""}),
    obx({2: "DT", 3: "7^Date^99LOC", 5: "20260301", 6: ""}),
    obx({2: "TS", 3: "8^Moment^99LOC", 5: "202603011200", 6: ""}),
    obx({2: "TM", 3: "9^Clock^99LOC", 5: "1200", 6: ""}),
    obx({2: "NM", 3: "10^Missing^99LOC", 5: "", 6: "", 11: "X"}),
    obx({2: "NM", 3: "11^Not asked^99LOC", 5: "", 6: "", 11: "N"}),
    obx({2: "ED", 3: "PDF^Report^99LOC", 5: f"LIS^AP^PDF^Base64^{PDF}", 6: ""}),
    segment("SPM", {1: "1", 2: "^S-9&LIS", 4: "119297000^Blood^SCT", 17: "202603020815"}),
)
WITHOUT_A_DOCUMENT = message(pid({8: "U", 7: "1987"}), obr({8: "202603020930", 24: ""}), obx())


def total(lab: Integrator) -> int:
    return int(lab.get("/fhir/r4/DiagnosticReport?_summary=count").json["total"])


@pytest.mark.parametrize("raw", [FULL, WITHOUT_A_DOCUMENT], ids=["full", "small"])
def test_a_registration_is_accepted_and_valid_r4(
    lab: Integrator, validators: list[Validator], raw: bytes
) -> None:
    (report,) = mapped(raw)

    answer = lab.register(report.registration())

    assert answer.status == 201, answer.body
    sent = json.loads(json.dumps(report.body, default=float))
    refused = [
        (entry["name"], found)
        for entry in sent["parameter"]
        if len(found := faults(entry["resource"], validators)) == len(validators)
    ]
    assert refused == []


def test_a_message_is_published_once(lab: Integrator, run: Run) -> None:
    first = run(FULL)
    second = run(FULL)

    assert (first.exit_code, second.exit_code) == (0, 0), first.stderr
    assert first.stdout.startswith("message 1, report 1: published as DiagnosticReport")
    assert "already published" in second.stdout
    assert total(lab) == 1


def test_one_line_of_json_is_printed_for_each_report(run: Run) -> None:
    both = message() + message(pid(), obr({3: "NQ-2^LIS"}), obx())

    done = run(both, "--json")

    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["message"], line["report"], line["result"]) for line in lines] == [
        (1, 1, "created"),
        (2, 1, "created"),
    ]


def test_a_dry_run_prints_the_registration_and_sends_nothing(lab: Integrator, run: Run) -> None:
    done = run(FULL, "--dry-run")

    assert done.exit_code == 0
    assert json.loads(done.stdout)["resourceType"] == "Parameters"
    assert total(lab) == 0


def test_what_is_wrong_with_one_message_stops_no_other(lab: Integrator, run: Run) -> None:
    done = run(message(pid(), obr({25: "Q"}), obx({11: "Q"})) + message())

    assert done.exit_code == 1
    assert "Error: message 1: OBR[1]-25: must be one of" in done.stderr
    assert "Error: message 1: OBX[1]-11: must be one of" in done.stderr
    assert total(lab) == 1


def test_problems_of_the_service_are_printed(lab: Integrator, run: Run) -> None:
    collected = segment("SPM", {4: "BLD^Blood", 17: "20260302104500^20260302081500"})
    done = run(message(pid(), obr(), obx(), collected))

    assert done.exit_code == 1
    assert "per-1" in done.stderr
    assert total(lab) == 0


def test_a_file_without_messages_is_wrong_usage(run: Run) -> None:
    assert run(b"PID|1\r").exit_code == 2


def test_wrong_settings_are_named_all_at_once(run: Run, tmp_path: Any) -> None:
    (tmp_path / "wrong.toml").write_text('[message]\ntime_zone = "Mars"\n[report]\nsystem = "x"\n')

    done = run(message(), "--mapping", "wrong.toml")

    assert done.exit_code == 2
    assert "message.time_zone: must be the name of a time zone" in done.stderr
    assert "report.system: must be an absolute URI" in done.stderr
