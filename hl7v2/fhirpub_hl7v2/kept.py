"""What a later message states otherwise and a revision cannot change: it stays as registered.

A result must not wait until a name is spelled as before. What would make it another report, such
as another patient, another examination or another time of it, is not kept but refused.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fhirpub_hl7v2.mapping.reports import Report

JsonObject = dict[str, Any]
_EFFECTIVE = ("effectiveDateTime", "effectivePeriod")


@dataclass(frozen=True, slots=True)
class Stored:
    """The latest version of a report, and what it refers to."""

    resource: Mapping[str, Any]
    included: list[Mapping[str, Any]]

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.resource["id"])

    @property
    def version(self) -> str:
        """Its version."""
        return str(self.resource["meta"]["versionId"])

    def of_type(self, name: str) -> list[Mapping[str, Any]]:
        """Return what it refers to of a type."""
        return [each for each in self.included if each["resourceType"] == name]


def keep_stored(report: Report, stored: Stored, refused: Collection[str]) -> Report | None:
    """Return a report with what is stored in place of what was refused.

    Args:
        report: What the message states.
        stored: What is registered.
        refused: The expressions of what a revision must not change.

    Returns:
        The report; None if it would be another one then.
    """
    kept = Report(copy.deepcopy(report.body))
    for expression in refused:
        keep = _KEEPING.get(expression)
        changed = keep(kept, stored) if keep else None
        if changed is None:
            return None
        kept = changed
    return kept


def _keep_patient(report: Report, stored: Stored) -> Report | None:
    subject = stored.resource.get("subject", {})
    if "reference" not in subject or not report.is_of_patient(subject.get("identifier", {})):
        return None
    return report.with_stored_patient(subject["reference"])


def _keep_organization(report: Report, stored: Stored) -> Report | None:
    organizations = stored.of_type("Organization")
    if len(organizations) != 1:
        return None
    known = {name: item for name, item in organizations[0].items() if name not in ("id", "meta")}
    for entry in report.body["parameter"]:
        if entry["name"] == "organization":
            entry["resource"] = {**known, "id": entry["resource"]["id"]}
    return report


def _keep_category(report: Report, stored: Stored) -> Report | None:
    report.resource["category"] = stored.resource["category"]
    return report


def _keep_code(report: Report, stored: Stored) -> Report | None:
    sent, known = report.resource["code"], stored.resource["code"]
    if not _codings(sent) & _codings(known):
        return None
    report.resource["code"] = known
    return report


def _codings(concept: Mapping[str, Any]) -> set[tuple[Any, Any]]:
    return {(each.get("system"), each.get("code")) for each in concept.get("coding", [])}


def _keep_effective(report: Report, stored: Stored) -> Report | None:
    """Keep a time that begins at the same moment, and none if none was known."""
    before = _start_of(stored.resource)
    if before and before != _start_of(report.resource):
        return None
    for name in _EFFECTIVE:
        report.resource.pop(name, None)
        if name in stored.resource:
            report.resource[name] = stored.resource[name]
    return report


def _start_of(resource: Mapping[str, Any]) -> datetime | str:
    """Return the moment, or else the date; "" if there is none."""
    period = resource.get("effectivePeriod", {})
    start = str(resource.get("effectiveDateTime") or period.get("start", ""))
    return datetime.fromisoformat(start) if "T" in start else start


_KEEPING: dict[str, Callable[[Report, Stored], Report | None]] = {
    "patient": _keep_patient,
    "organization": _keep_organization,
    "DiagnosticReport.category": _keep_category,
    "DiagnosticReport.code": _keep_code,
    "DiagnosticReport.effective": _keep_effective,
}
