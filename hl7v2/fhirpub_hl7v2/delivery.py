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
from fhirpub.cli.publish.summary import code_of
from fhirpub.fhir.strict_json import dumps
from fhirpub_hl7v2.kept import Stored, keep_stored
from fhirpub_hl7v2.mapping.reports import Report

Result = Literal["created", "replayed", "revised", "superseded", "refused"]
_TYPE = "DiagnosticReport"
_PATH = f"/fhir/r4/{_TYPE}"
_INCLUDED = ("result", "specimen", "performer")
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
    kept: tuple[str, ...] = ()
    """What stays as registered, although the message states it otherwise."""

    @property
    def is_stored(self) -> bool:
        """Whether the service holds the state that was sent."""
        return self.result in ("created", "replayed", "revised")


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
        refused = _refused_as_fixed(answer)
        if refused and (changed := keep_stored(report, stored, refused)):
            answer = await _send_revision(publisher, changed, stored)
        if answer.code == HTTPStatus.OK:
            version = answer.headers.get("ETag", "").strip('W/"')
            result: Result = "replayed" if version == stored.version else "revised"
            return Delivery(result=result, id=stored.id, version=version, kept=tuple(refused))
        if answer.code != HTTPStatus.PRECONDITION_FAILED:  # another client was faster
            break
    if answer is None:
        return Delivery(result="refused", reason="the report exists, but cannot be found")
    reason = f"{answer.code} {answer.reason}"
    return Delivery(result="refused", reason=reason, issues=issues_of(json_of(answer)))


async def _send_revision(publisher: Publisher, report: Report, stored: Stored) -> HTTPResponse:
    body = dumps(_with_others(report, stored))
    headers = {"If-Match": f'W/"{stored.version}"'}
    path = f"{_PATH}/{stored.id}/$revise"
    return (await publisher.request("POST", path, body, headers)).response


def _refused_as_fixed(answer: HTTPResponse) -> list[str]:
    """Return what of a revision was refused because it cannot change, if nothing else was."""
    if answer.code != HTTPStatus.UNPROCESSABLE_ENTITY:
        return []
    errors = [each for each in issues_of(json_of(answer)) if each.get("severity") == "error"]
    if any(code_of(each) != "element-not-updatable" for each in errors):
        return []
    places = (expression for each in errors for expression in each.get("expression", []))
    return [*dict.fromkeys(places)]


async def _find(publisher: Publisher, report: Report) -> Stored | None:
    """Return the latest version of the report with the identifier; None if there is none."""
    identifier = report.identifier
    token = f"{_escaped(identifier['system'])}|{_escaped(identifier['value'])}"
    included = "".join(f"&_include={_TYPE}:{name}" for name in _INCLUDED)
    query = f"identifier={quote(token, safe='')}{included}"
    answer = (await publisher.request("GET", f"{_PATH}?{query}")).response
    entries = json_of(answer).get("entry") or []
    resources = [entry["resource"] for entry in entries if "resource" in entry]
    found = next((each for each in resources if each["resourceType"] == _TYPE), None)
    return Stored(found, resources) if found else None


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


def _with_others(report: Report, stored: Stored) -> dict[str, Any]:
    """Return the body of a revision, with what is stored and the message does not repeat."""
    results = [
        {"reference": f"Observation/{result['id']}"}
        for result in _not_repeated(report, "observation", stored.of_type("Observation"))
        if result.get("status") != "entered-in-error"
    ]
    specimens = [
        {"reference": f"Specimen/{specimen['id']}"}
        for specimen in _not_repeated(report, "specimen", stored.of_type("Specimen"))
    ]
    return report.with_others(results, specimens, _values(stored))


def _values(stored: Stored) -> dict[str, dict[str, Any]]:
    """Return the values of the stored results, by their numbers."""
    return {
        number: {name: item for name, item in result.items() if name.startswith("value")}
        for result in stored.of_type("Observation")
        for number in _numbers(result)
    }


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
