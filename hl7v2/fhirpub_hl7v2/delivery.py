"""Publishes the reports of messages: registers them, and revises those that exist already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import quote

from tornado.httpclient import HTTPResponse

from fhirpub.cli.http_client import json_of
from fhirpub.cli.publish.outcome import Outcome, issues_of, outcome_of
from fhirpub.cli.publish.publisher import Publisher, Registration
from fhirpub.fhir.strict_json import dumps
from fhirpub_hl7v2.mapping.reports import Report

Result = Literal["created", "replayed", "revised", "superseded", "refused"]
_TYPE = "DiagnosticReport"
_PATH = f"/fhir/r4/{_TYPE}"
_ATTEMPTS = 3
_RANKS = {
    "registered": 0,
    "partial": 1,
    "preliminary": 1,
    "final": 2,
    "amended": 3,
    "corrected": 3,
    "appended": 3,
    "cancelled": 4,
    "entered-in-error": 5,
}
"""No report goes back in this order; a state of the same rank replaces an earlier one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of one report of a message."""

    result: Result
    id: str = ""
    version: str = ""
    reason: str = ""
    issues: list[dict[str, Any]] = field(default_factory=list)
    patient_differs: bool = False
    """Whether the report has the patient as it was registered, and not as the message has it."""

    @property
    def is_stored(self) -> bool:
        """Whether the service holds the state that was sent."""
        return self.result in ("created", "replayed", "revised")


@dataclass(frozen=True, slots=True)
class _Stored:
    """The latest version of a report, its results and its specimens."""

    resource: Mapping[str, Any]
    results: list[Mapping[str, Any]]
    specimens: list[Mapping[str, Any]]

    @property
    def id(self) -> str:
        return str(self.resource["id"])

    @property
    def version(self) -> str:
        return str(self.resource["meta"]["versionId"])


async def deliver(publisher: Publisher, report: Report) -> Delivery:
    """Register a report, or revise the one that exists with other content.

    It is safe to repeat. Raises NoToken and Unreachable.
    """
    if not report.is_a_later_state or not await _find(publisher, report):
        registered = await _register(publisher, report)
        is_enough = registered.result in ("created", "replayed") and not report.is_a_later_state
        if is_enough or registered.result == "refused":
            return _delivery(registered)
    return await _revise(publisher, report)


async def _register(publisher: Publisher, report: Report) -> Outcome:
    registration = Registration(_TYPE, dumps(report.registration()))
    return outcome_of(await publisher.register(registration), "", _TYPE)


def _delivery(outcome: Outcome) -> Delivery:
    result: Result = "refused"
    if outcome.result == "created" or outcome.result == "replayed":  # noqa: PLR1714  # narrows
        result = outcome.result
    return Delivery(
        result=result,
        id=outcome.id,
        version=outcome.version,
        reason=outcome.reason,
        issues=outcome.issues,
    )


async def _revise(publisher: Publisher, report: Report) -> Delivery:
    """Make the report what the message states, unless the message is older."""
    answer: HTTPResponse | None = None
    for _ in range(_ATTEMPTS):
        stored = await _find(publisher, report)
        if stored is None:  # the token may not search, or the identifier belongs to another type
            break
        if _is_older(report, stored.resource):
            return Delivery(result="superseded", id=stored.id, version=stored.version)
        answer = await _send_revision(publisher, report, stored)
        patient_differs = _is_patient_refused(answer, report, stored)
        if patient_differs:
            kept = report.with_stored_patient(stored.resource["subject"]["reference"])
            answer = await _send_revision(publisher, kept, stored)
        if answer.code == HTTPStatus.OK:
            version = answer.headers.get("ETag", "").strip('W/"')
            result: Result = "replayed" if version == stored.version else "revised"
            return Delivery(
                result=result, id=stored.id, version=version, patient_differs=patient_differs
            )
        if answer.code != HTTPStatus.PRECONDITION_FAILED:  # another client was faster
            break
    if answer is None:
        return Delivery(result="refused", reason="the report exists, but cannot be found")
    reason = f"{answer.code} {answer.reason}"
    return Delivery(result="refused", reason=reason, issues=issues_of(json_of(answer)))


async def _send_revision(publisher: Publisher, report: Report, stored: _Stored) -> HTTPResponse:
    body = dumps(_with_others(report, stored))
    headers = {"If-Match": f'W/"{stored.version}"'}
    path = f"{_PATH}/{stored.id}/$revise"
    return (await publisher.request("POST", path, body, headers)).response


def _is_patient_refused(answer: HTTPResponse, report: Report, stored: _Stored) -> bool:
    """Return whether a revision was refused only for other data of the same patient.

    Names are corrected more often than results: a result must not wait for that.
    """
    if answer.code != HTTPStatus.UNPROCESSABLE_ENTITY:
        return False
    errors = [each for each in issues_of(json_of(answer)) if each.get("severity") == "error"]
    subject = stored.resource.get("subject", {})
    return (
        bool(errors)
        and all(each.get("expression") == ["patient"] for each in errors)
        and "reference" in subject
        and report.is_of_patient(subject.get("identifier", {}))
    )


async def _find(publisher: Publisher, report: Report) -> _Stored | None:
    """Return the latest version of the report with the identifier; None if there is none."""
    identifier = report.identifier
    token = f"{_escaped(identifier['system'])}|{_escaped(identifier['value'])}"
    included = "".join(f"&_include={_TYPE}:{name}" for name in ("result", "specimen"))
    query = f"identifier={quote(token, safe='')}{included}"
    answer = (await publisher.request("GET", f"{_PATH}?{query}")).response
    entries = json_of(answer).get("entry") or []
    resources = [entry["resource"] for entry in entries if "resource" in entry]

    def of_type(name: str) -> list[Mapping[str, Any]]:
        return [each for each in resources if each["resourceType"] == name]

    found = of_type(_TYPE)
    return _Stored(found[0], of_type("Observation"), of_type("Specimen")) if found else None


def _escaped(text: str) -> str:
    """Return a text as a part of a search value (FHIR R4, 3.1.1.4.0.1)."""
    for mark in "\\|,$":
        text = text.replace(mark, f"\\{mark}")
    return text


def _is_older(report: Report, stored: Mapping[str, Any]) -> bool:
    """Return whether a message states an earlier state than the one that is stored."""
    new, old = (_RANKS.get(each["status"], 0) for each in (report.resource, stored))
    if new != old:
        return new < old
    times = [each.get("issued", "") for each in (report.resource, stored)]
    if not all(times):
        return False
    issued, before = map(datetime.fromisoformat, times)
    return issued < before


def _with_others(report: Report, stored: _Stored) -> dict[str, Any]:
    """Return the body of a revision, with what is stored and the message does not repeat."""
    results = [
        {"reference": f"Observation/{result['id']}"}
        for result in _not_repeated(report, "observation", stored.results)
        if result.get("status") != "entered-in-error"
    ]
    specimens = [
        {"reference": f"Specimen/{specimen['id']}"}
        for specimen in _not_repeated(report, "specimen", stored.specimens)
    ]
    return report.with_others(results, specimens)


def _not_repeated(
    report: Report, name: str, stored: list[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield what a message does not repeat; without numbers, one is taken for the other."""
    sent = [_numbers(one["resource"]) for one in report.body["parameter"] if one["name"] == name]
    without = sum(not numbers for numbers in sent)
    repeated = set().union(*sent)
    for resource in stored:
        numbers = _numbers(resource)
        if not numbers and without:
            without -= 1
        elif not numbers & repeated:
            yield resource


def _numbers(result: Mapping[str, Any]) -> set[str]:
    return {str(each.get("value")) for each in result.get("identifier", [])}
