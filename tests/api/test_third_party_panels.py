"""Third-party reports with their results are registered in one call and read back unchanged."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps, in_decimals, loads
from fhirpub.testing.service import Answer, Integrator, RunningService

PANELS = Path(__file__).parents[1] / "corpus" / "panels.jsonl.gz"
INCLUDED = "&".join(
    f"_include={parameter}"
    for parameter in (
        "DiagnosticReport:result",
        "DiagnosticReport:specimen",
        "DiagnosticReport:based-on",
        "DiagnosticReport:performer",
        "DiagnosticReport:results-interpreter",
    )
)
FOLLOWED = "&".join(
    f"_include:iterate={parameter}"
    for parameter in (
        "Observation:has-member",
        "Observation:derived-from",
        "Observation:specimen",
        "Observation:based-on",
        "Observation:performer",
        "Specimen:parent",
        "ServiceRequest:requester",
    )
)
TIMED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")
TIMES = frozenset(
    {
        "effectiveDateTime",
        "effectiveInstant",
        "effectivePeriod",
        "issued",
        "creation",
        "receivedTime",
        "collectedDateTime",
        "authoredOn",
        "occurrenceDateTime",
    }
)
"""The elements whose times become UTC (D-65)."""

JsonObject = dict[str, Any]


def panels() -> list[JsonObject]:
    with gzip.open(PANELS, "rb") as lines:
        return [loads(line) for line in lines]


ALL = panels()


@pytest.fixture(scope="module", params=["sqlite", "mongodb"])
def publisher(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Integrator]:
    """A client of a service on each store."""
    url = (
        request.getfixturevalue("replica_set").url("panels") if request.param == "mongodb" else ""
    )
    with RunningService(tmp_path_factory.mktemp("panels"), store_url=url) as running:
        yield running.integrator()


@pytest.fixture(params=ALL, ids=[panel["source"] for panel in ALL])
def body(request: pytest.FixtureRequest) -> JsonObject:
    """One registration."""
    found: JsonObject = request.param["body"]
    return found


def entries(body: JsonObject) -> list[JsonObject]:
    return [parameter["resource"] for parameter in body["parameter"]]


def name(resource: JsonObject) -> str:
    return f"{resource['resourceType']}/{resource.get('id', '')}"


def read(publisher: Integrator, address: str) -> JsonObject:
    answer = publisher.get(f"/fhir/r4/{address}")
    assert answer.status == 200, answer.body
    resource: JsonObject = answer.json
    return resource


def addresses(publisher: Integrator, body: JsonObject, answer: Answer) -> dict[str, str]:
    """Return the address of each entry by its local one."""
    (short,) = (
        one["resource"]
        for one in answer.json["parameter"]
        if one.get("resource", {}).get("resourceType") == "DiagnosticReport"
    )
    report = read(publisher, name(short))
    answered: dict[str, list[str]] = {}
    for one in answer.json["parameter"]:
        if "valueReference" in one:
            answered.setdefault(one["name"], []).append(one["valueReference"]["reference"])
    performers = zip(body_report(body)["performer"], report["performer"], strict=True)
    found = {sent.get("reference", ""): stored.get("reference", "") for sent, stored in performers}
    found[body_report(body)["subject"]["reference"]] = report["subject"]["reference"]
    found[name(body_report(body))] = name(report)
    for parameter in body["parameter"]:
        if parameter["name"] in answered:
            found[name(parameter["resource"])] = answered[parameter["name"]].pop(0)
    return found


def body_report(body: JsonObject) -> JsonObject:
    (report,) = (one for one in entries(body) if one["resourceType"] == "DiagnosticReport")
    return report


def expected(node: Any, at: dict[str, str], names: tuple[str, ...] = ()) -> Any:
    """Return what was sent with the references and the times that the service stores."""
    if isinstance(node, dict):
        return {key: expected(value, at, (*names, key)) for key, value in node.items()}
    if isinstance(node, list):
        return [expected(item, at, names) for item in node]
    if names[-1:] == ("reference",):
        return at.get(node, node)
    if isinstance(node, str) and TIMES & {*names} and TIMED.fullmatch(node):
        return in_utc(node)
    return node


def completed(sent: JsonObject, stored: JsonObject) -> JsonObject:
    """Return a report as sent with what the service adds to references to its parts (D-94)."""
    if sent["resourceType"] != "DiagnosticReport":
        return sent
    added = ("identifier", "display")
    pairs = zip(sent["performer"], stored["performer"], strict=True)
    performers = [{**{k: it[k] for k in added if k in it}, **one} for one, it in pairs]
    of_patient = {k: stored["subject"][k] for k in added if k in stored["subject"]}
    return {**sent, "performer": performers, "subject": {**of_patient, **sent["subject"]}}


def in_utc(text: str) -> str:
    matched = TIMED.fullmatch(text)
    assert matched is not None
    moment = datetime.fromisoformat(matched[1] + matched[3]).astimezone(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}{matched[2] or ''}Z"


def content(resource: JsonObject) -> Any:
    """Return a resource without its id and what the service notes in ``meta``."""
    meta = {
        key: value
        for key, value in resource.get("meta", {}).items()
        if key not in {"versionId", "lastUpdated"}
    }
    rest = {key: value for key, value in resource.items() if key not in {"id", "meta"}}
    return in_decimals(rest | ({"meta": meta} if meta else {}))


def elements(node: Any) -> set[str]:
    """Return the names of all elements in a resource."""
    if isinstance(node, dict):
        return {*node}.union(*map(elements, node.values()))
    return set().union(*map(elements, node)) if isinstance(node, list) else set()


def test_the_panels_have_results_of_many_kinds() -> None:
    every = [one for panel in ALL for one in entries(panel["body"])]
    results = [one for one in every if one["resourceType"] == "Observation"]

    assert len(ALL) >= 10
    assert len(results) >= 200
    assert {"valueQuantity", "valueCodeableConcept", "valueString", "valueRange"} <= elements(
        results
    )
    assert {"component", "hasMember", "derivedFrom", "referenceRange", "contained"} <= elements(
        results
    )
    assert {"Specimen", "ServiceRequest", "Practitioner"} <= {one["resourceType"] for one in every}


def test_each_entry_is_read_back_unchanged(publisher: Integrator, body: JsonObject) -> None:
    answer = publisher.register(body)

    assert answer.status == 201, answer.body
    at = addresses(publisher, body, answer)
    for sent in entries(body):
        stored = read(publisher, at[name(sent)])
        assert content(stored) == content(completed(expected(sent, at), stored))


def test_a_repetition_in_another_order_is_the_same_content(
    publisher: Integrator, body: JsonObject
) -> None:
    first = publisher.register(body)
    turned = {**body, "parameter": body["parameter"][::-1]}

    again = publisher.register(dumps(turned))

    assert again.body == first.body
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-content" not in again.headers


def test_a_search_includes_what_the_report_leads_to(
    publisher: Integrator, body: JsonObject
) -> None:
    at = addresses(publisher, body, publisher.register(body))
    report = at[name(body_report(body))]

    found = publisher.get(
        f"/fhir/r4/DiagnosticReport?_id={report.split('/')[1]}&{INCLUDED}&{FOLLOWED}"
    )

    included = {name(entry["resource"]): entry["resource"] for entry in found.json["entry"]}
    assert {one for one in at.values() if one.startswith("Observation/")} <= included.keys()
    for address, resource in included.items():
        if address != report:  # whose documents a search returns by their URL
            assert dumps(resource) == dumps(read(publisher, address))
