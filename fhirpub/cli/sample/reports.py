"""Reports of invented people with their histories, always the same by seed and number."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import Literal

from fhirpub.cli.sample import pdf
from fhirpub.cli.sample.panels import PANELS, SHARES, Findings, Panel
from fhirpub.cli.sample.people import patient
from fhirpub.cli.sample.results import HL7, LOINC, Resource, concept
from fhirpub.fhir.strict_json import dumps

LABORATORY = "Sample Laboratory"
SYSTEM = "https://sample.example/reports"
DAYS = 365
"""The days within which specimens are taken and reports issued."""
_LAST_DAYS = 4
"""So long before the end no more specimens are taken: a culture takes three days."""
_REPORTS_OF_A_PATIENT = 5
_FIRST_PATIENTS = 4
_DELAYED = "The result was confirmed from a second specimen."
_SENT = ("", "preliminary", "corrected", "amended")
_SENT_SHARES = (70, 12, 8, 10)
"""What becomes of reports, in percent: nothing more, and what the other steps are called."""

Action = Literal["register", "revise", "update"]


@dataclass(frozen=True, slots=True)
class Step:
    """A request about a report; each makes the next version."""

    action: Action
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is published; two with the same values have the same bytes.

    ``patients`` is the number of people; None for one more with every five reports.
    """

    seed: str
    first_day: date
    patients: int | None = None

    def steps(self, number: int) -> Sequence[Step]:
        """Return the requests about the report of a number, from its registration on."""
        random = Random(f"{self.seed}/report/{number}")  # noqa: S311 - nothing here is a secret
        people = self.patients or number // _REPORTS_OF_A_PATIENT + _FIRST_PATIENTS
        person = patient(self.seed, random.randrange(people), first_day=self.first_day)
        (panel,) = random.choices(PANELS, SHARES)
        taken = _moment(self.first_day, random)
        report = _report(f"{self.seed}-{number:07}", panel, taken, random)
        findings = panel.find(random, report)
        (further,) = random.choices(_SENT, _SENT_SHARES)
        return [*_steps(_Case(person, panel, report, findings), further)]


@dataclass(frozen=True, slots=True)
class _Case:
    """A report at one time: its patient, its panel, and what was found so far."""

    patient: Resource
    panel: Panel
    report: Resource
    findings: Findings

    def body(self) -> bytes:
        """Return the body of its registration, or of a revision to this."""
        panel, report = self.panel, deepcopy(self.report)
        report["conclusion"] = self.findings.conclusion
        if self.findings.results:
            report["result"] = [
                {"reference": f"Observation/{one['id']}"} for one in self.findings.results
            ]
        report["presentedForm"] = [_document(panel.text, self.lines(), report["issued"])]
        parameters = [
            {"name": name, "resource": resource} for name, resource in self._entries(report)
        ]
        return dumps({"resourceType": "Parameters", "parameter": parameters})

    def _entries(self, report: Resource) -> Iterator[tuple[str, Resource]]:
        yield "patient", self.patient
        yield "organization", _ORGANIZATION
        yield "diagnosticReport", report
        if self.panel.specimen:
            yield "specimen", _specimen(report, self.panel.specimen)
        for one in self.findings.results:
            yield "observation", one

    def lines(self) -> Iterator[str]:
        """Yield the lines of the document."""
        (name,), (passport,) = self.patient["name"], self.patient["identifier"]
        shown = f"{name['family']}, {' '.join(name['given'])}"
        yield f"{LABORATORY}{'':<12}Report {self.report['identifier'][0]['value']}"
        yield ""
        if pdf.is_printable(shown):  # the fonts of every reader have Latin letters only
            yield f"Patient    {shown}"
        country = passport["system"].rpartition("/")[2].upper()
        yield f"Passport   {country} {passport['value']}, born {self.patient['birthDate']}"
        yield f"Taken      {self.report['effectiveDateTime'][:16].replace('T', ' ')} UTC"
        yield f"Status     {self.report['status']}"
        yield ""
        yield from self.findings.lines
        yield ""
        yield from self.findings.conclusion.removesuffix(".").split(". ")

    def with_status(self, status: str, results: str) -> _Case:
        """Return it with the statuses of the report and of its results."""
        found = tuple({**one, "status": results} for one in self.findings.results)
        report = {**self.report, "status": status}
        return replace(self, report=report, findings=replace(self.findings, results=found))


_ORGANIZATION = {
    "resourceType": "Organization",
    "id": "organization-1",
    "identifier": [{"system": "https://registry.example/laboratories", "value": "0001"}],
    "name": LABORATORY,
}


def _steps(case: _Case, further: str) -> Iterator[Step]:
    if further == "preliminary":
        yield Step("register", case.with_status("preliminary", "preliminary").body())
        yield Step("revise", case.body())
        return
    yield Step("register", case.body())
    if further == "corrected":
        yield Step("revise", _corrected(case).body())
    elif further == "amended":
        conclusion = f"{case.findings.conclusion} {_DELAYED}"
        change = {"status": "amended", "conclusion": conclusion}
        yield Step("update", dumps({"resourceType": "DiagnosticReport", **change}))


def _corrected(case: _Case) -> _Case:
    """Return the report as it is after its first result, if it has any, was confirmed."""
    first, *others = case.with_status("corrected", "final").findings.results or ({},)
    results = ({**first, "status": "corrected", "note": [{"text": _DELAYED}]}, *others)
    findings = replace(case.findings, conclusion=f"{case.findings.conclusion} {_DELAYED}")
    if first:
        findings = replace(findings, results=results)
    return replace(case, report={**case.report, "status": "corrected"}, findings=findings)


def _moment(first_day: date, random: Random) -> datetime:
    """Return when a specimen was taken: most often on a morning."""
    day = first_day + timedelta(days=random.randrange(DAYS - _LAST_DAYS))
    minutes = round(random.triangular(6 * 60, 20 * 60, 8 * 60))
    return datetime.combine(day, time(tzinfo=UTC)) + timedelta(minutes=minutes)


def _report(value: str, panel: Panel, taken: datetime, random: Random) -> Resource:
    issued = taken + timedelta(minutes=random.randrange(*panel.minutes))
    report = {
        "resourceType": "DiagnosticReport",
        "identifier": [{"system": SYSTEM, "value": value}],
        "status": "final",
        "category": [concept(f"{HL7}/v2-0074", panel.category)],
        "code": {**concept(LOINC, panel.loinc), "text": panel.text},
        "subject": {"reference": "Patient/patient-1"},
        "performer": [{"reference": "Organization/organization-1"}],
        "effectiveDateTime": _instant(taken),
        "issued": _instant(issued),
    }
    if panel.specimen:
        report["specimen"] = [{"reference": "Specimen/specimen-1"}]
    return report


def _specimen(report: Resource, text: str) -> Resource:
    (identifier,) = report["identifier"]
    return {
        "resourceType": "Specimen",
        "id": "specimen-1",
        "identifier": [{**identifier, "system": "https://sample.example/specimens"}],
        "type": {"text": text},
        "subject": report["subject"],
        "collection": {"collectedDateTime": report["effectiveDateTime"]},
    }


def _document(title: str, lines: Iterator[str], created: str) -> Resource:
    data = pdf.page(title, lines)
    return {
        "contentType": "application/pdf",
        "title": title,
        "data": base64.b64encode(data).decode(),
        "hash": hashlib.sha256(data).hexdigest(),
        "creation": created,
    }


def _instant(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
