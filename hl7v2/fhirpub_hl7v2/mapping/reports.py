"""One registration for each OBR of a message: a Parameters resource for ``$register``."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fhirpub_hl7v2.mapping.context import (
    Context,
    JsonObject,
    authority_of,
    codings,
    key_of,
    present,
)
from fhirpub_hl7v2.mapping.documents import add_remark, documents
from fhirpub_hl7v2.mapping.groups import Group, groups_of
from fhirpub_hl7v2.mapping.observations import PATIENT, observations, specimens
from fhirpub_hl7v2.mapping.people import organization, patient
from fhirpub_hl7v2.message import Message, Segment
from fhirpub_hl7v2.problems import Code, Problem, Unsupported, Unusable
from fhirpub_hl7v2.settings import Settings

VERSIONS = ("2.3", "2.3.1", "2.4", "2.5", "2.5.1")
_SECTIONS = "http://terminology.hl7.org/CodeSystem/v2-0074"
_STATUSES = {
    "A": "partial",
    "C": "corrected",
    "F": "final",
    "I": "registered",
    "O": "registered",
    "P": "preliminary",
    "R": "partial",
    "S": "registered",
    "X": "cancelled",
}
"""HL7 table 0123, as HL7's guide maps it; there A, which it leaves open, is partial, too."""

_COMPLETE_RESULTS = frozenset("FUNXCADW")
_PROOFS = (
    (frozenset("X"), "cancelled"),
    (frozenset("IO"), "registered"),
    (frozenset("FUNX"), "final"),
    (_COMPLETE_RESULTS, "corrected"),
)
"""What the states of all results prove, if they are no others."""

_ONLY_LATER = {"corrected": "final", "cancelled": "unknown"}
"""Statuses that a registration cannot have, and the one that it has instead."""


@dataclass(frozen=True, slots=True)
class Report:
    """The state of a report after a message, as the body of a revision."""

    body: JsonObject

    @property
    def resource(self) -> JsonObject:
        """The DiagnosticReport."""
        resource: JsonObject = next(
            entry["resource"]
            for entry in self.body["parameter"]
            if entry["name"] == "diagnosticReport"
        )
        return resource

    @property
    def identifier(self) -> JsonObject:
        """The business identifier."""
        identifier: JsonObject = self.resource["identifier"][0]
        return identifier

    def registration(self) -> JsonObject:
        """Return the body of a registration, which cannot correct, cancel or withdraw."""
        body = copy.deepcopy(self.body)
        kept = [entry for entry in body["parameter"] if not _is_withdrawn(entry["resource"])]
        report = Report({**body, "parameter": kept})
        status = report.resource["status"]
        report.resource["status"] = _ONLY_LATER.get(status, status)
        ids = {f"Observation/{e['resource'].get('id')}" for e in kept}
        results = [each for each in report.resource.get("result", []) if each["reference"] in ids]
        report.resource.pop("result", None)
        report.resource.update(present(result=results))
        return report.body

    def with_others(
        self,
        results: list[JsonObject],
        specimens: list[JsonObject],
        values: Mapping[str, JsonObject],
    ) -> JsonObject:
        """Return the body with references to what the message does not repeat.

        ``values`` are those of stored results by their numbers: a result without a value, such as
        one that is only made final, keeps what it has (HL7 v2.5.1, 2.5.3: "not present").
        """
        report = Report(copy.deepcopy(self.body))
        resource = report.resource
        for entry in report.body["parameter"]:
            if entry["name"] == "observation" and not _has_value(entry["resource"]):
                number = entry["resource"]["identifier"][0]["value"]
                entry["resource"].update(values.get(number, {}))
        if specimens:
            resource["specimen"] = [*resource.get("specimen", []), *specimens]
        if results:
            resource["result"] = [*resource.get("result", []), *results]
            resource["presentedForm"] = [add_remark(each) for each in resource["presentedForm"]]
        return report.body

    def is_of_patient(self, identifier: Mapping[str, Any]) -> bool:
        """Return whether the patient of the message has an identifier."""
        (patient,) = (e["resource"] for e in self.body["parameter"] if e["name"] == "patient")
        wanted = (identifier.get("system"), identifier.get("value"))
        return any(
            (each.get("system"), each.get("value")) == wanted
            for each in patient.get("identifier", [])
        )

    def with_stored_patient(self, reference: str) -> Report:
        """Return the report with references to a patient that the service holds."""
        body = copy.deepcopy(self.body)
        body["parameter"] = [each for each in body["parameter"] if each["name"] != "patient"]
        for entry in body["parameter"]:
            if "subject" in entry["resource"]:
                entry["resource"]["subject"] = {"reference": reference}
        return Report(body)

    @property
    def is_a_later_state(self) -> bool:
        """Whether a registration alone cannot express it."""
        withdrawn = any(_is_withdrawn(entry["resource"]) for entry in self.body["parameter"])
        return withdrawn or self.resource["status"] in _ONLY_LATER


def _has_value(resource: JsonObject) -> bool:
    return any(name.startswith(("value", "dataAbsentReason")) for name in resource)


def _is_withdrawn(resource: JsonObject) -> bool:
    return bool(resource.get("status") == "entered-in-error")


def reports_of(message: Message, settings: Settings) -> list[Report]:
    """Return the reports of a message. Raises Unsupported, or Unusable with all problems."""
    _check_header(message.header, settings)
    context = Context(settings)
    context.offset_of(message.header.text(7))
    by = organization(context, message.header)
    groups = groups_of(message)
    made = [_report(context, group, by) for group in groups]
    _check_numbers(context, groups, made)
    if context.problems:
        raise Unusable(list(dict.fromkeys(context.problems)))
    return made


def _check_header(header: Segment, settings: Settings) -> None:
    problems = list(_unsupported(header, settings))
    if problems:
        raise Unsupported(problems)


def _unsupported(header: Segment, settings: Settings) -> Iterator[Problem]:
    if header.text(9, 1) != "ORU":
        yield header.problem("must be ORU^R01: other messages are not supported", 9, Code.TYPE)
    elif header.text(9, 2) not in ("R01", ""):
        yield header.problem("must be ORU^R01: other events are not supported", 9, Code.EVENT)
    if header.text(12) not in VERSIONS:
        yield header.problem(f"must be one of {', '.join(VERSIONS)}", 12, Code.VERSION)
    if header.text(11) not in ("", *settings.processing_ids):
        text = f"must be {' or '.join(settings.processing_ids)}: see [message] processing_ids"
        yield header.problem(text, 11, Code.PROCESSING_ID)


def _check_numbers(context: Context, groups: list[Group], made: list[Report]) -> None:
    """Add a problem for each OBR with the number of another one."""
    counts = Counter(str(report.identifier) for report in made)
    for group, report in zip(groups, made, strict=True):
        if counts[str(report.identifier)] > 1 and report.identifier.get("value"):
            text = 'is the number of another OBR, too: set [report] identifier = "order-and-code"'
            context.report(group.request.segment, text, 3, Code.DUPLICATE)


def _report(context: Context, group: Group, by: JsonObject) -> Report:
    request = group.request.segment
    identifier = _identifier(context, group)
    examined = specimens(context, group, identifier.get("system", ""))
    specimen = str(examined[0]["id"]) if len(examined) == 1 else ""
    known = {"value": "", **identifier}
    results = observations(context, group, known, specimen)
    assert group.patient is not None  # noqa: S101  # groups_of refuses others
    resource = {
        "resourceType": "DiagnosticReport",
        "identifier": [identifier],
        **_about(context, group, request),
        **present(
            specimen=[{"reference": f"Specimen/{each['id']}"} for each in examined],
            result=[{"reference": f"Observation/{each['id']}"} for each in results],
        ),
        "presentedForm": documents(context, group),
    }
    entries = [
        ("patient", patient(context, group.patient)),
        ("organization", by),
        ("diagnosticReport", resource),
        *(("observation", each) for each in results),
        *(("specimen", each) for each in examined),
    ]
    parameter = [{"name": name, "resource": entry} for name, entry in entries]
    return Report({"resourceType": "Parameters", "parameter": parameter})


def _about(context: Context, group: Group, request: Segment) -> JsonObject:
    """Return the elements of the report that OBR states."""
    context.require(request.value(4), request, "is required: the code of the examination", 4)
    issued = context.time(request, 22, request.text(22))
    return present(
        status=_status(context, group),
        category=[codings(_SECTIONS, request.text(24) or context.settings.category)],
        code=context.concept(request.value(4)),
        subject=PATIENT,
        performer=[{"reference": "Organization/organization"}],
        basedOn=_order(context, group),
        **_effective(context, request),
        issued=issued if "T" in issued else "",
        conclusion=group.request.comments,
    )


def _status(context: Context, group: Group) -> str:
    """Return the status of OBR-25; without one, what the states of all results prove."""
    request = group.request.segment
    sent = request.text(25).upper()
    if sent:
        if sent not in _STATUSES:
            context.report(request, f"must be one of {', '.join(_STATUSES)}", 25)
        return _STATUSES.get(sent, "unknown")
    return _status_of_all({each.segment.text(11).upper() for each in group.results})


def _status_of_all(states: set[str]) -> str:
    """Return the status of a report whose results have these (HL7 table 0085)."""
    if not states or "" in states:
        return "unknown"
    for proof, status in _PROOFS:
        if states <= proof:
            return status
    return "partial" if states & _COMPLETE_RESULTS else "preliminary"


def _effective(context: Context, request: Segment) -> JsonObject:
    start, end = (context.time(request, at, request.text(at)) for at in (7, 8))
    if start and end and start != end:
        return {"effectivePeriod": {"start": start, "end": end}}
    return present(effectiveDateTime=start)


def _identifier(context: Context, group: Group) -> JsonObject:
    """Return the number of the filler (OBR-3, ORC-3), else that of the placer (OBR-2, ORC-2)."""
    request, settings = group.request.segment, context.settings
    for field in (3, 2):
        for segment in (request, group.order):
            if segment is not None and (value := segment.value(field)):
                code = (
                    f"/{key_of(request.value(4))}" if settings.report_identifier != "order" else ""
                )
                system = context.authority(
                    segment, field, authority_of(value), settings.report_system
                )
                return present(system=system, value=value.text() + code)
    context.require("", request, "is required: the number of the report (or OBR-2)", 3)
    return {}


def _order(context: Context, group: Group) -> list[JsonObject]:
    """Return the placer's number of the order (OBR-2, ORC-2), if its authority is known."""
    for segment in (group.request.segment, group.order):
        if segment is not None and (value := segment.value(2)):
            system = Context(context.settings).authority(segment, 2, authority_of(value), "")
            identifier = present(system=system, value=value.text())
            return [{"type": "ServiceRequest", "identifier": identifier}]
    return []
