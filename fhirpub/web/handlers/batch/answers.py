"""The answer to an entry of a batch, as an entry of the Bundle ``batch-response``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from fhirpub.errors import Issue
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored
from fhirpub.problems import BatchProblem
from fhirpub.web.handlers.batch.exchange import EntryExchange
from fhirpub.web.handlers.registrations.comparison import CONTENT, REPLAYED

_OUTCOME = b'{"resourceType":"OperationOutcome"'
_ROOT = re.compile(r"^[A-Z][A-Za-z]*(?=[.\[]|$)")
"""The type with which the path of a problem begins."""
_HEADERS = {"location": "Location", "etag": "ETag", "lastModified": "Last-Modified"}
_REPEATED = "was registered by an earlier call: this is its answer"
_OTHER = (
    "was registered by an earlier call with other content: this is its answer, nothing changed"
)


@dataclass(slots=True)
class EntryAnswer:
    """The answer to an entry: a status, some headers, and a resource or an outcome."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    resource: bytes = b""
    outcome: JsonObject | None = None

    def serialize(self) -> bytes:
        """Return the entry of the response."""
        response: JsonObject = {"status": f"{self.status} {HTTPStatus(self.status).phrase}"}
        for element, header in _HEADERS.items():
            if header in self.headers:
                response[element] = self.headers[header]
        if self.outcome is not None:
            response["outcome"] = self.outcome
        if not self.resource:
            return b'{"response":%b}' % dumps(response)
        return b'{"resource":%b,"response":%b}' % (self.resource, dumps(response))


def answer_of(exchange: EntryExchange, *, place: int | None, fhir_url: str) -> EntryAnswer:
    """Return the answer that a handler wrote for the entry at a place.

    ``place`` is None if the paths of problems do not refer to the resource in the entry.
    """
    answer = EntryAnswer(exchange.status, exchange.headers)
    body = exchange.body or b""
    if body.startswith(_OUTCOME):
        outcome = loads_stored(body)
        answer.outcome = outcome if place is None else _placed(outcome, place)
    else:
        answer.resource = body
    remark = _remark(exchange.headers)
    if remark is not None:
        issues = outcome_of([remark], fhir_url=fhir_url)
        answer.outcome = _joined(answer.outcome, issues)
    return answer


def batch_response(answers: Sequence[bytes]) -> list[bytes]:
    """Return the Bundle with the answers to all entries, in parts."""
    start = b'{"resourceType":"Bundle","type":"batch-response"'
    if not answers:
        return [start, b"}"]
    parts = [start, b',"entry":[']
    for answer in answers:
        parts += answer, b","
    return [*parts[:-1], b"]}"]


def _remark(headers: Mapping[str, str]) -> Issue | None:
    """Return what the headers of a repetition contain."""
    if CONTENT in headers:
        return Issue.warning(BatchProblem.REGISTERED_DIFFERENTLY, _OTHER)
    if REPLAYED in headers:
        return Issue.information(BatchProblem.REGISTERED_BEFORE, _REPEATED)
    return None


def _joined(outcome: JsonObject | None, more: JsonObject) -> JsonObject:
    if outcome is None:
        return more
    return {**outcome, "issue": [*outcome["issue"], *more["issue"]]}


def _placed(outcome: JsonObject, place: int) -> JsonObject:
    """Return an outcome whose paths begin at the Bundle that was sent."""
    whole = f"Bundle.entry[{place}].resource"

    def moved(issue: JsonObject) -> JsonObject:
        places: list[str] = issue.get("expression", [])
        here = [_ROOT.sub(whole, one, count=1) for one in places]
        return {**issue, "expression": here} if here else issue

    return {**outcome, "issue": [moved(issue) for issue in outcome["issue"]]}
