"""Messages of our own for the tests, written field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fhirpub_hl7v2.mapping.reports import Report, reports_of
from fhirpub_hl7v2.message import parse
from fhirpub_hl7v2.settings import Settings

Fields = Mapping[int, str]

MSH: Fields = {
    3: "LIS",
    4: "North Quay",
    5: "EHR",
    6: "HOSP",
    7: "20260302104500+0100",
    9: "ORU^R01",
    10: "M1",
    11: "P",
    12: "2.5.1",
}
PID: Fields = {3: "30111222^^^REG^MR", 5: "Ashdown^Juniper", 7: "19870605", 8: "F"}
OBR: Fields = {
    3: "NQ-1001^LIS",
    4: "58410-2^Blood count^LN",
    7: "20260302081500",
    22: "20260302104000",
    24: "HM",
    25: "F",
}
OBX: Fields = {2: "NM", 3: "718-7^Hemoglobin^LN", 5: "13.2", 6: "g/dL^^UCUM", 11: "F"}
SETTINGS = Settings(
    time_zone="Europe/Madrid",
    authorities={
        "LIS": "https://north-quay.example/reports",
        "REG": "https://registry.example/persons",
        "HIS": "https://hospital.example/orders",
    },
)


def segment(name: str, fields: Fields) -> str:
    """Return a segment with the fields at their places."""
    first = 2 if name == "MSH" else 1
    texts = [fields.get(at, "") for at in range(first, max(fields, default=0) + 1)]
    return "|".join([name, *texts])


def message(*segments: str, msh: Fields | None = None) -> bytes:
    """Return a message of a header and segments; one OBR with one OBX if none are given."""
    header = segment("MSH", {2: "^~\\&", **MSH, **(msh or {})})
    given = segments or (pid(), obr(), obx())
    return ("\r".join([header, *given]) + "\r").encode()


def pid(fields: Fields | None = None) -> str:
    return segment("PID", {**PID, **(fields or {})})


def obr(fields: Fields | None = None) -> str:
    return segment("OBR", {**OBR, **(fields or {})})


def obx(fields: Fields | None = None) -> str:
    return segment("OBX", {**OBX, **(fields or {})})


def mapped(raw: bytes, settings: Settings = SETTINGS) -> list[Report]:
    return reports_of(parse(raw, settings.character_set), settings)


def resources(raw: bytes, name: str, settings: Settings = SETTINGS) -> list[dict[str, Any]]:
    """Return the entries with a name of the only report of a message."""
    (report,) = mapped(raw, settings)
    return [entry["resource"] for entry in report.body["parameter"] if entry["name"] == name]


def observation(fields: Fields, *others: str) -> dict[str, Any]:
    """Return the Observation of an OBX with these fields, and with the segments after it."""
    (made,) = resources(message(pid(), obr(), obx(fields), *others), "observation")
    return made


def report_of(fields: Fields, *others: str, settings: Settings = SETTINGS) -> dict[str, Any]:
    """Return the DiagnosticReport of an OBR with these fields, and with the segments after it."""
    raw = message(pid(), obr(fields), *others, obx())
    (made,) = resources(raw, "diagnosticReport", settings)
    return made
