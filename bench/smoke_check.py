"""Checks, before anything is timed, that the service handles the requests correctly."""

from __future__ import annotations

from bench.http_client import Answer, ask
from bench.payloads import REPORTS, SMALL_DOCUMENT, Caller, RegisterRequests, search_request
from bench.targets import Target

_MEDIA_TYPE = "application/fhir+json"
_UPDATE = b'{"resourceType":"DiagnosticReport","status":"amended","conclusion":"Reviewed."}'


class WrongAnswer(Exception):
    """The service responded, but incorrectly: its speed would mean nothing."""


def prove(service: Target, serial: int) -> None:
    """Register, resubmit, read, search and update one report and check every response."""
    first, again = _register(service, serial), _register(service, serial)
    _must(first.status == 201, "register", first)
    location = first.headers.get("location", "")
    _must("/DiagnosticReport/" in location, "Location", first)
    _must(again.status == 201 and again.body == first.body, "resubmit", again)
    resource_id = location.split("/DiagnosticReport/")[1].split("/")[0]
    _prove_read(service, resource_id, version="1")
    _prove_search(service, serial, resource_id)
    _prove_update(service, resource_id)
    unknown = _ask(service, "GET", f"{REPORTS}/00000000-0000-4000-8000-000000000000")
    _must(unknown.status == 404, "read of an unknown id", unknown)
    anonymous = ask(service.port, "GET", f"{REPORTS}/{resource_id}")
    _must(anonymous.status == 401, "read without a token", anonymous)


def _register(service: Target, serial: int) -> Answer:
    requests = RegisterRequests(Caller("", ""), SMALL_DOCUMENT)
    whole = b"".join(requests.request(serial))
    return _ask(service, "POST", f"{REPORTS}/$register", body=whole.partition(b"\r\n\r\n")[2])


def _prove_read(service: Target, resource_id: str, *, version: str) -> None:
    answer = _ask(service, "GET", f"{REPORTS}/{resource_id}")
    _must(answer.status == 200, "read", answer)
    report = answer.json()
    _must(report["id"] == resource_id, "id", answer)
    _must(report["meta"]["versionId"] == version, f"version {version}", answer)
    _must(bool(report["presentedForm"][0]["data"]), "document", answer)


def _prove_search(service: Target, serial: int, resource_id: str) -> None:
    (head,) = search_request(Caller("", ""), serial)
    path = bytes(head).split(b" ")[1].decode()
    answer = _ask(service, "GET", path)
    _must(answer.status == 200, "search", answer)
    found = [entry["resource"]["id"] for entry in answer.json().get("entry", [])]
    _must(found == [resource_id], "search by identifier", answer)


def _prove_update(service: Target, resource_id: str) -> None:
    path = f"{REPORTS}/{resource_id}"
    stale = _ask(service, "PATCH", path, body=_UPDATE, if_match='W/"7"')
    _must(stale.status == 412, "update of a stale version", stale)
    answer = _ask(service, "PATCH", path, body=_UPDATE, if_match='W/"1"')
    _must(answer.status == 204, "update", answer)
    _prove_read(service, resource_id, version="2")


def _ask(
    service: Target, method: str, path: str, *, body: bytes | None = None, if_match: str = ""
) -> Answer:
    headers = {"Authorization": f"Bearer {service.token}", "Accept": _MEDIA_TYPE}
    if body is not None:
        headers["Content-Type"] = _MEDIA_TYPE
    if if_match:
        headers["If-Match"] = if_match
    return ask(service.port, method, path, body=body, headers=headers)


def _must(holds: bool, what: str, answer: Answer) -> None:  # noqa: FBT001
    if not holds:
        raise WrongAnswer(f"{what}: {answer.status} {answer.body[:500]!r}")
