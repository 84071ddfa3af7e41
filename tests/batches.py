"""Batches: bodies with many requests, and what their responses hold."""

from __future__ import annotations

from typing import Any

from fhirpub.testing.service import Integrator
from tests.bodies import SYSTEM, register_body

BASE = "/fhir/r4"
TYPE = "DiagnosticReport"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def entry(
    method: str, url: str, resource: Any = None, *, full_url: str = "", **conditions: str
) -> dict[str, Any]:
    made: dict[str, Any] = {"fullUrl": full_url} if full_url else {}
    if resource is not None:
        made["resource"] = resource
    return made | {"request": {"method": method, "url": url, **conditions}}


def registering(value: str, **changes: Any) -> dict[str, Any]:
    return entry("POST", f"{TYPE}/$register", register_body(value, **changes))


def bundle(*entries: Any, **changes: Any) -> dict[str, Any]:
    return {"resourceType": "Bundle", "type": "batch", "entry": [*entries]} | changes


def send(lab: Integrator, *entries: Any, **headers: str) -> list[dict[str, Any]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = lab.request("POST", BASE, bundle(*entries), named)
    assert answer.status == 200, answer.body
    assert answer.json["resourceType"] == "Bundle"
    assert answer.json["type"] == "batch-response"
    answers: list[dict[str, Any]] = answer.json.get("entry", [])
    assert len(answers) == len(entries)
    return answers


def status(answer: dict[str, Any]) -> int:
    return int(answer["response"]["status"].partition(" ")[0])


def statuses(answers: list[dict[str, Any]]) -> list[int]:
    return [status(answer) for answer in answers]


def issues(answer: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer["response"]["outcome"]["issue"]
    return found


def problems(answer: dict[str, Any]) -> list[str]:
    return [issue["details"]["coding"][0]["code"] for issue in issues(answer)]


def places(answer: dict[str, Any]) -> list[str]:
    return [place for issue in issues(answer) for place in issue.get("expression", [])]


def id_of(answer: dict[str, Any]) -> str:
    made: str = answer["response"]["location"].split("/")[-3]
    return made


def count(lab: Integrator, values: list[str]) -> int:
    """Return how many reports have one of these identifiers."""
    wanted = ",".join(f"{SYSTEM}|{value}" for value in values)
    total: int = lab.get(f"{BASE}/{TYPE}?identifier={wanted}&_summary=count").json["total"]
    return total
