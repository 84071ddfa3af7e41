"""A Period keeps its meaning: one that begins after it ends is refused, none is turned round."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.testing.service import Integrator
from tests.bodies import SYSTEM, organization, parameters, patient, report

REPORT = "Parameters.parameter[2].resource"
REVERSED = {"start": "2023-06-22T08:00:00-05:00", "end": "2023-06-21"}
LATE = {"start": "2023-06-21T23:00:00-05:00", "end": "2023-06-21"}


def body(
    value: str = "PERIOD-1",
    *,
    of_patient: dict[str, Any] | None = None,
    of_organization: dict[str, Any] | None = None,
    **of_report: Any,
) -> dict[str, Any]:
    return parameters(
        patient=patient(**of_patient or {}),
        organization=organization(**of_organization or {}),
        diagnosticReport=report(value, **of_report),
    )


def with_period(period: dict[str, str], value: str = "PERIOD-1") -> dict[str, Any]:
    return body(value, effectiveDateTime=None, effectivePeriod=period)


def identified(period: dict[str, str]) -> dict[str, Any]:
    return {"identifier": [{"system": "urn:x", "value": "1", "period": period}]}


def contained(resource: dict[str, Any]) -> dict[str, Any]:
    reference = {"url": "https://x.example", "valueReference": {"reference": "#c"}}
    return {"contained": [resource | {"id": "c"}], "extension": [reference]}


PLACES: dict[str, tuple[dict[str, Any], str]] = {
    "the effective time": (with_period(REVERSED), f"{REPORT}.effective"),
    "an extension": (
        body(extension=[{"url": "https://x.example", "valuePeriod": REVERSED}]),
        f"{REPORT}.extension[0].value",
    ),
    "the identifier": (
        body(identifier=[{"system": SYSTEM, "value": "PERIOD-1", "period": REVERSED}]),
        f"{REPORT}.identifier[0].period",
    ),
    "the patient": (
        body(of_patient={"address": [{"period": REVERSED}]}),
        "Parameters.parameter[0].resource.address[0].period",
    ),
    "the organization": (
        body(of_organization=identified(REVERSED)),
        "Parameters.parameter[1].resource.identifier[0].period",
    ),
    "a contained resource": (
        body(**contained({"resourceType": "Device", **identified(REVERSED)})),
        f"{REPORT}.contained[0].identifier[0].period",
    ),
    "a Timing that is contained": (
        body(
            **contained(
                {
                    "resourceType": "ServiceRequest",
                    "status": "active",
                    "intent": "order",
                    "subject": {"display": "Ana"},
                    "occurrenceTiming": {"repeat": {"boundsPeriod": REVERSED}},
                }
            )
        ),
        f"{REPORT}.contained[0].occurrence.repeat.bounds",
    ),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_period_that_begins_after_it_ends_is_refused_wherever_it_stands(
    lab: Integrator, case: str
) -> None:
    sent, place = PLACES[case]

    answer = lab.register(sent)

    assert (answer.status, answer.issue_expressions) == (400, {place}), answer.body
    assert "per-1" in answer.issues[0]["diagnostics"]


@pytest.mark.parametrize(
    "period",
    [
        {"start": "2026-01-02T00:00:00+14:00", "end": "2026-01-01"},
        {"start": "2026-01-02", "end": "2026-01-01T23:59:59Z"},
        {"start": "2026-01-02", "end": "2026-01-01"},
        {"start": "2026-02-01", "end": "2026-01"},
        {"start": "2027", "end": "2026-12-31T10:00:00Z"},
        {"start": "2026-01-02T10:00:00.5Z", "end": "2026-01-02T10:00:00Z"},
        {"start": "2026-01-02T10:00:00+02:00", "end": "2026-01-02T09:00:00+03:00"},
    ],
)
def test_what_begins_later_as_it_was_sent_is_refused(
    lab: Integrator, period: dict[str, str]
) -> None:
    answer = lab.register(with_period(period))

    assert (answer.status, answer.issue_expressions) == (400, {f"{REPORT}.effective"})


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (LATE, LATE),
        (
            {"start": "2026-01-01", "end": "2026-01-01T00:30:00+02:00"},
            {"start": "2026-01-01", "end": "2026-01-01T00:30:00+02:00"},
        ),
        (
            {"start": "2025-12", "end": "2026-01-01T00:30:00+02:00"},
            {"start": "2025-12", "end": "2026-01-01T00:30:00+02:00"},
        ),
        (
            {"start": "2026-01-01T23:59:60-03:00", "end": "2026-01-01"},
            {"start": "2026-01-01T23:59:60-03:00", "end": "2026-01-01"},
        ),
        (
            {"start": "2026-01-02T00:30:00+02:00", "end": "2026-01-01T23:00:00Z"},
            {"start": "2026-01-01T22:30:00Z", "end": "2026-01-01T23:00:00Z"},
        ),
        (
            {"start": "2026-01-01T23:30:00-05:00"},
            {"start": "2026-01-02T04:30:00Z"},
        ),
    ],
)
def test_a_period_is_stored_as_utc_only_where_that_keeps_its_days(
    lab: Integrator, sent: dict[str, str], stored: dict[str, str]
) -> None:
    answer = lab.register(with_period(sent, str(sent)))

    assert answer.status == 201, answer.body
    assert answer.json["parameter"][0]["resource"]["effectivePeriod"] == stored
    assert lab.get(answer.headers["location"]).json["effectivePeriod"] == stored


def test_a_time_without_an_offset_beside_a_date_gets_one_and_a_warning(lab: Integrator) -> None:
    sent = with_period({"start": "2023-06-21T23:00:00", "end": "2023-06-21"}, "PERIOD-2")

    answer = lab.register(sent)

    resource, outcome = (entry["resource"] for entry in answer.json["parameter"])
    assert resource["effectivePeriod"]["start"] == "2023-06-21T23:00:00Z"
    assert [f"{REPORT}.effective.start"] in [
        issue["expression"] for issue in outcome["issue"] if issue["severity"] == "warning"
    ]


def test_a_period_in_xml_is_stored_as_it_was_sent(lab: Integrator) -> None:
    location = lab.register(with_period(LATE, "PERIOD-3")).headers["location"]

    answer = lab.get(location, Accept="application/fhir+xml")

    assert b'<start value="2023-06-21T23:00:00-05:00"/><end value="2023-06-21"/>' in answer.body


@pytest.mark.parametrize(
    ("date", "total"),
    [
        ("2023-06-20", 0),
        ("2023-06-21", 0),
        ("ge2023-06-22T04:30:00Z", 1),
        ("ge2023-06-22T05:00:00Z", 0),
    ],
)
def test_a_date_beside_a_time_is_searched_for_in_the_zone_of_the_time(
    lab: Integrator, date: str, total: int
) -> None:
    lab.register(with_period(LATE, "PERIOD-4"))
    query = f"identifier={SYSTEM}|PERIOD-4&date={date}"

    assert lab.get(f"/fhir/r4/DiagnosticReport?{query}").json["total"] == total
