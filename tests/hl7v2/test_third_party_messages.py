"""ORU^R01 messages that others wrote: what becomes of them, by a reading that is not ours.

The expectations are read from the fields of each message by splitting its text, and by the tables
of HL7's guide from version 2 to FHIR.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import Integrator
from fhirpub_hl7v2.mapping.reports import Report
from fhirpub_hl7v2.problems import Unusable
from tests.corpus.validator import Validator, faults
from tests.hl7v2.conftest import Run
from tests.hl7v2.messages import SETTINGS, mapped

CORPUS = Path(__file__).parents[1] / "corpus" / "oru.jsonl.gz"
EVERY = [json.loads(line) for line in gzip.decompress(CORPUS.read_bytes()).splitlines()]
MESSAGES = [one for one in EVERY if one["refused"] is None]
MAPPING = replace(
    SETTINGS,
    report_system="https://lab.example/reports",
    patient_system="https://lab.example/patients",
    processing_ids=("P", "T", "D"),
    report_identifier="order-and-code",
    authorities={"*": "https://lab.example/authorities/"},
)
REPORT_STATUSES = dict(
    zip(
        "OISPCRFX",
        ("registered registered registered preliminary corrected partial final cancelled").split(),
        strict=True,
    )
)
RESULT_STATUSES = dict(
    zip(
        "ACDFPXW",
        (
            "amended corrected entered-in-error final preliminary cancelled entered-in-error"
        ).split(),
        strict=True,
    )
)
GENDERS = {"F": "female", "M": "male", "O": "other", "A": "other", "N": "other"}


@pytest.fixture(params=MESSAGES, ids=[one["source"] for one in MESSAGES], scope="module")
def text(request: pytest.FixtureRequest) -> str:
    return str(request.param["message"])


def reports(text: str) -> list[Report]:
    return mapped(text.encode(), MAPPING)


def entries(report: Report, name: str) -> list[dict[str, Any]]:
    return [one["resource"] for one in report.body["parameter"] if one["name"] == name]


def segments(text: str, *names: str) -> list[list[str]]:
    lines = (line.split("|") for line in text.split("\r"))
    return [[*fields, *[""] * 50] for fields in lines if fields[0] in names]


def first(field: str) -> str:
    return field.split("~", maxsplit=1)[0].split("^", maxsplit=1)[0].strip()


def results_by_report(text: str) -> list[list[list[str]]]:
    """Return the OBX with a code that are no documents, of each OBR."""
    groups: list[list[list[str]]] = []
    for fields in segments(text, "OBR", "OBX"):
        if fields[0] == "OBR":
            groups.append([])
        elif fields[3] and fields[2] != "ED":
            groups[-1].append(fields)
    return groups


def test_each_obr_is_a_report_with_its_status(text: str) -> None:
    sent = [REPORT_STATUSES[first(fields[25])] for fields in segments(text, "OBR") if fields[25]]

    found = [report.resource["status"] for report in reports(text)]

    assert len(found) == len(segments(text, "OBR"))
    if len(sent) == len(found):
        assert found == sent


def test_each_result_has_its_code_status_and_value(text: str) -> None:
    for report, sent in zip(reports(text), results_by_report(text), strict=True):
        found = entries(report, "observation")

        assert len(found) == len(sent)
        for observation, fields in zip(found, sent, strict=True):
            check_code(observation, fields[3])
            if (state := first(fields[11])) in RESULT_STATUSES:
                assert observation["status"] == RESULT_STATUSES[state]
            check_value(observation, fields)


def check_code(observation: dict[str, Any], field: str) -> None:
    code = first(field) or field.split("^")[3].strip()
    codings = observation["code"]["coding"]
    assert codings[0]["code"] == code
    if field.split("^")[2:3] == ["LN"]:
        assert codings[0]["system"] == "http://loinc.org"


def check_value(observation: dict[str, Any], fields: list[str]) -> None:
    kind, value = first(fields[2]), fields[5].strip()
    if kind == "NM" and "~" not in value and value.replace(".", "", 1).strip().isdigit():
        quantity = observation["valueQuantity"]
        assert float(quantity["value"]) == float(value)
        if fields[6]:
            assert quantity["unit"] in [part.strip() for part in fields[6].split("^")]
    elif kind in ("CE", "CWE") and first(value):
        assert observation["valueCodeableConcept"]["coding"][0]["code"] == first(value)
    elif kind in ("ST", "TX") and value and not set(value) & set("\\~&^"):
        assert observation["valueString"].startswith(value.strip())
    elif not value:
        assert not any(name.startswith("value") for name in observation)


def test_the_patient_is_the_one_of_the_message(text: str) -> None:
    (fields,) = segments(text, "PID")
    for report in reports(text):
        (patient,) = entries(report, "patient")

        numbers = [first(one) for one in fields[3].split("~") if first(one)]
        assert [one["value"] for one in patient.get("identifier", [])] == numbers
        assert all(one["system"] for one in patient.get("identifier", []))
        families = [first(one.replace("&", "^")) for one in fields[5].split("~")]
        found = [name["family"] for name in patient.get("name", []) if "family" in name]
        assert found == [name for name in families if name]
        assert patient.get("gender") == GENDERS.get(first(fields[8]))
        born = first(fields[7])
        expected = (
            f"{born[:4]}-{born[4:6]}-{born[6:8]}"
            if len(born[:8]) == 8 and born[:8].isdigit()
            else None
        )
        assert patient.get("birthDate") == expected


@pytest.mark.parametrize("message", [one for one in EVERY if one["refused"]])
def test_what_is_not_complete_is_refused_with_its_places(message: dict[str, Any]) -> None:
    with pytest.raises(Unusable) as caught:
        reports(message["message"])

    assert sorted({problem.place for problem in caught.value.problems}) == message["refused"]


def test_what_becomes_of_a_message_is_r4(text: str, validators: list[Validator]) -> None:
    for report in reports(text):
        for entry in json.loads(dumps(report.body))["parameter"]:
            found = faults(entry["resource"], validators)
            assert len(found) < len(validators), found


def test_messages_are_published_and_found(lab: Integrator, run: Run, tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text(
        '[message]\ntime_zone = "Europe/Madrid"\nprocessing_ids = ["P", "T", "D"]\n'
        '[report]\nsystem = "https://lab.example/reports"\nidentifier = "order-and-code"\n'
        '[patient]\nsystem = "https://lab.example/patients"\n'
        '[authorities]\n"*" = "https://lab.example/authorities/"\n'
    )
    numbers: set[str] = set()
    sent = []
    for text in (one["message"] for one in MESSAGES):
        of_it = {json.dumps(report.identifier) for report in reports(text)}
        if not of_it & numbers:  # several are variants of one message
            numbers |= of_it
            sent.append(text)

    done = run("".join(sent).encode(), "--mapping", "corpus.toml", "--json")

    assert done.exit_code == 0, done.stderr
    results = Counter(json.loads(line)["result"] for line in done.stdout.splitlines())
    assert sum(results.values()) == len(numbers) > len(MESSAGES) // 3
    found = lab.get("/fhir/r4/DiagnosticReport?_count=1&_total=accurate").json["total"]
    assert found == len(numbers)
