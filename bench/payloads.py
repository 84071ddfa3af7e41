"""The requests that are sent, as bytes that are complete except for the parts that must differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bench.documents import Document, document

REPORTS = "/fhir/r4/DiagnosticReport"
SYSTEM = "https://lab.example/accessions"
SMALL_DOCUMENT = 850
MEGABYTE = 1024 * 1024
CHUNK = 256 * 1024

_PATIENTS = 9_973
_ORGANIZATIONS = 53
"""Primes, so that each patient has reports of many organizations."""

Chunk = bytes | memoryview
Request = Sequence[Chunk]
"""The pieces to write to the connection, in order; no chunk is larger than ``CHUNK``."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The parts that are the same in the head of every request."""

    host: str
    token: str

    def head(self, method: str, path: str, *, length: int = 0, more: str = "") -> bytes:
        """Return the head of a request; ``more`` is further header lines."""
        body = f"Content-Type: application/fhir+json\r\nContent-Length: {length}\r\n"
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Authorization: Bearer {self.token}\r\nAccept: application/fhir+json\r\n"
            f"{body if length else ''}{more}\r\n"
        ).encode()


def identifier(serial: int) -> str:
    """Return the value of the identifier of report ``serial``."""
    return f"ACC-{serial:014d}"


class RegisterRequests:
    """Creates ``$register`` requests; each serial has its own identifier and its own document."""

    def __init__(
        self, caller: Caller, document_bytes: int, *, results: int = 0, indent: int | None = None
    ) -> None:
        self._document = document(document_bytes)
        separators = (",", ":") if indent is None else None
        parameters = _parameters(self._document, results)
        text = json.dumps(parameters, separators=separators, indent=indent)
        before, rest = text.split("@value@")
        middle, rest = rest.split("@hash@")
        large, after = rest.split("@end@")
        blank = (*_parties(0), *self._document.finish(0))
        fixed = len(text) - len("@patient@@organization@@value@@hash@@end@")
        self.length = fixed + len(identifier(0)) + sum(len(part) for part in blank)
        head = caller.head("POST", f"{REPORTS}/$register", length=self.length)
        patient, rest = before.split("@patient@")
        organization, before = rest.split("@organization@")
        self._parties = (head + patient.encode(), organization.encode())
        self._before = before.encode()
        self._middle = middle.encode()
        self._large = large.encode()
        self._chunks = tuple(_chunks(self._large))
        self._after = after.encode()

    def request(self, serial: int) -> Request:
        """Return the request that registers report ``serial``; always the same bytes."""
        digest, end = self._document.finish(serial)
        patient, organization = _parties(serial)
        (first, second), value = self._parties, identifier(serial).encode()
        parties = b"%b%b%b%b" % (first, patient, second, organization)
        start = b"%b%b%b%b%b" % (parties, self._before, value, self._middle, digest)
        if len(self._large) <= CHUNK:
            return (b"%b%b%b%b" % (start, self._large, end, self._after),)
        return (start, *self._chunks, end + self._after)


def _parties(serial: int) -> tuple[bytes, bytes]:
    """Return the identifiers of the patient and of the organization of a report."""
    return b"A%07d" % (serial % _PATIENTS), b"lab-%03d" % (serial % _ORGANIZATIONS)


def read_request(caller: Caller, resource_id: str) -> Request:
    """Return the request that reads one report."""
    return (caller.head("GET", f"{REPORTS}/{resource_id}"),)


def search_request(caller: Caller, serial: int) -> Request:
    """Return the search for the one report with the identifier of ``serial``."""
    token = quote(f"{SYSTEM}|{identifier(serial)}", safe="")
    return (caller.head("GET", f"{REPORTS}?identifier={token}"),)


def update_requests(
    caller: Caller, resource_id: str, *, method: str, conditional: bool
) -> Iterator[Request]:
    """Yield update after update of one new report, each expecting the version before it."""
    version = 0
    while True:
        version += 1
        update = {
            "resourceType": "DiagnosticReport",
            "status": "amended",
            "conclusion": f"Values within the reference range, revision {version:08d}.",
        }
        body = json.dumps(update, separators=(",", ":")).encode()
        more = f'If-Match: W/"{version}"\r\n' if conditional else ""
        path = f"{REPORTS}/{resource_id}"
        yield (caller.head(method, path, length=len(body), more=more) + body,)


def _chunks(data: bytes) -> Iterator[Chunk]:
    view = memoryview(data)
    for start in range(0, len(data), CHUNK):
        yield view[start : start + CHUNK]


def _parameters(of: Document, results: int) -> dict[str, Any]:
    report = _report(of)
    if results:
        report["result"] = [{"reference": f"Observation/r{number}"} for number in range(results)]
    return {
        "resourceType": "Parameters",
        "parameter": [
            {"name": "patient", "resource": _PATIENT},
            {"name": "organization", "resource": _ORGANIZATION},
            {"name": "diagnosticReport", "resource": report},
            *({"name": "observation", "resource": _result(number)} for number in range(results)),
        ],
    }


def _result(number: int) -> dict[str, Any]:
    return {
        "resourceType": "Observation",
        "id": f"r{number}",
        "status": "final",
        "code": {
            "text": f"Analyte {number}",
            "coding": [{"system": "http://loinc.org", "code": f"{7000 + number}-7"}],
        },
        "subject": {"reference": "Patient/patient-1"},
        "effectiveDateTime": "2026-11-20T10:00:00Z",
        "valueQuantity": {
            "value": 10 + number,
            "unit": "g/dL",
            "system": "http://unitsofmeasure.org",
            "code": "g/dL",
        },
        "referenceRange": [{"low": {"value": 5}, "high": {"value": 90}}],
    }


_PATIENT = {
    "resourceType": "Patient",
    "id": "patient-1",
    "name": [{"family": "Roe", "given": ["Jane"]}],
    "identifier": [
        {
            "system": "http://hl7.org/fhir/sid/uy",
            "value": "@patient@",
            "type": {
                "coding": [
                    {"system": "http://terminology.hl7.org/CodeSystem/v2-0203", "code": "PPN"}
                ]
            },
        }
    ],
    "telecom": [{"system": "email", "value": "jane@example.org", "use": "home"}],
    "gender": "female",
    "birthDate": "1980-02-29",
}

_ORGANIZATION = {
    "resourceType": "Organization",
    "id": "organization-1",
    "name": "Laboratory One",
    "identifier": [
        {"system": "https://registry.example/organizations", "value": "@organization@"}
    ],
}


def _report(of: Document) -> dict[str, Any]:
    return {
        "resourceType": "DiagnosticReport",
        "identifier": [{"system": SYSTEM, "value": "@value@"}],
        "status": "final",
        "category": [
            {
                "coding": [
                    {
                        "system": "http://terminology.hl7.org/CodeSystem/v2-0074",
                        "code": "HM",
                        "display": "Hematology",
                    }
                ]
            }
        ],
        "code": {
            "text": "Complete blood count",
            "coding": [{"system": "http://loinc.org", "code": "58410-2"}],
        },
        "subject": {"reference": "Patient/patient-1"},
        "performer": [{"reference": "Organization/organization-1"}],
        "effectiveDateTime": "2024-05-04T08:30:00-03:00",
        "issued": "2024-05-04T12:00:00Z",
        "conclusion": "Values within the reference range.",
        "presentedForm": [
            {
                "contentType": "application/pdf",
                "title": "Complete blood count",
                "hash": "@hash@",
                "data": f"{of.start_base64}@end@",
                "creation": "2024-05-04T11:58:00Z",
            }
        ],
    }
