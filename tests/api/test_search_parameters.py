"""Searches by what a report says, and how their results are shown."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import organization, parameters, patient, report

BASE = "/fhir/r4/DiagnosticReport"
LOINC = "http://loinc.org"
ROLL = "https://roll.example/people"


def coded(code: str, system: str = LOINC) -> dict[str, object]:
    return {"text": code, "coding": [{"system": system, "code": code}]}


REPORTS = {
    "ana-blood": {
        "status": "final",
        "code": coded("58410-2"),
        "effectiveDateTime": "2026-11-20T10:00:00Z",
        "issued": "2026-11-20T12:00:00.500Z",
    },
    "ana-month": {
        "status": "preliminary",
        "code": coded("24627-2"),
        "effectiveDateTime": "2026-10",
        "issued": "2026-11-02T08:00:00Z",
    },
    "bea-stay": {
        "status": "final",
        "code": {
            "text": "several",
            "coding": [*coded("58410-2")["coding"], *coded("X", "urn:x")["coding"]],
        },  # type: ignore[misc]
        "effectiveDateTime": None,
        "effectivePeriod": {"start": "2026-11-10T00:00:00Z"},
        "issued": "2026-11-21T00:00:00Z",
    },
    "bea-undated": {
        "status": "registered",
        "code": {"text": "in words alone"},
        "effectiveDateTime": None,
        "issued": None,
    },
}


@pytest.fixture(scope="module")
def lab(service: RunningService) -> Integrator:
    return service.integrator()


@pytest.fixture(scope="module")
def ids(lab: Integrator) -> Iterator[dict[str, str]]:
    """The ids of the reports by their names; nothing here changes them."""
    found = {}
    for name, changes in REPORTS.items():
        person = name.partition("-")[0]
        body = parameters(
            patient=patient(identifier=[{"system": ROLL, "value": person}]),
            organization=organization(),
            diagnosticReport=report(name, **changes),
        )
        answer = lab.register(body)
        assert answer.status == 201, answer.body
        found[name] = answer.headers["location"].split("/")[-3]
    return found


def names_in(answer: Answer, ids: dict[str, str]) -> set[str]:
    assert answer.status == 200, answer.body
    entries = answer.json.get("entry", [])
    assert not [each for each in entries if each["search"]["mode"] == "outcome"], answer.body
    matches = [each["resource"]["id"] for each in entries if each["search"]["mode"] == "match"]
    return {name for name, each in ids.items() if each in matches}


ALL = frozenset(REPORTS)
ANA, BEA = frozenset({"ana-blood", "ana-month"}), frozenset({"bea-stay", "bea-undated"})


def test_tokens_dates_and_references_find_what_they_say(
    lab: Integrator, ids: dict[str, str]
) -> None:
    expected = {
        "status=final": {"ana-blood", "bea-stay"},
        "status=final,registered": {"ana-blood", "bea-stay", "bea-undated"},
        "status:not=final": {"ana-month", "bea-undated"},
        "status:not=final,registered": {"ana-month"},
        "status:missing=true": set(),
        "status=Final": set(),
        "code=58410-2": {"ana-blood", "bea-stay"},
        f"code={LOINC}|58410-2": {"ana-blood", "bea-stay"},
        "code=urn:x|58410-2": set(),
        "code=urn:x|": {"bea-stay"},
        f"code={LOINC}|": {"ana-blood", "ana-month", "bea-stay"},
        "code=|58410-2": set(),
        "code:missing=true": {"bea-undated"},
        "code:missing=false": {"ana-blood", "ana-month", "bea-stay"},
        "code:not=58410-2": {"ana-month", "bea-undated"},
        "code=58410-2&code=X": {"bea-stay"},
        "category=HM": ALL,
        "patient.identifier=ana": ANA,
        f"patient.identifier={ROLL}|bea": BEA,
        f"subject:Patient.identifier={ROLL}|bea": BEA,
        f"subject.identifier={ROLL}|": ALL,
        "patient:Patient.identifier=ana,bea&status=final": {"ana-blood", "bea-stay"},
        "date=2026-11-20": {"ana-blood"},
        "date=2026-11-20T10:00Z": {"ana-blood"},
        "date=2026-11-20T10:00:00Z": {"ana-blood"},
        "date=2026-11-20T12:00:00+02:00": {"ana-blood"},
        "date=2026-11-20T12:00:00%2B02:00": {"ana-blood"},
        "date=2026-10": {"ana-month"},
        "date=2026-10-15": set(),
        "date=2026": {"ana-blood", "ana-month"},
        "date=ne2026-11-20": {"ana-month", "bea-stay"},
        "date=gt2026-10-15": {"ana-blood", "ana-month", "bea-stay"},
        "date=sa2026-10-31": {"ana-blood", "bea-stay"},
        "date=ge2026-11-20": {"ana-blood", "bea-stay"},
        "date=lt2026-11-01": {"ana-month"},
        "date=le2026-11-15": {"ana-month", "bea-stay"},
        "date=eb2026-11-01": {"ana-month"},
        "date=ge2026-10-01&date=lt2026-11-01": {"ana-month"},
        "date=2026-10,2026-11-20": {"ana-blood", "ana-month"},
        "date:missing=true": {"bea-undated"},
        "issued=2026-11-20T12:00:00.500Z": {"ana-blood"},
        "issued=2026-11-20T12:00:00Z": {"ana-blood"},
        "issued=gt2026-11-20T12:00:00Z": {"bea-stay"},
        "_lastUpdated=gt2020": ALL,
        "_lastUpdated=lt2020": set(),
        "_lastUpdated:missing=true": set(),
        "identifier:not=ana-blood": ALL - {"ana-blood"},
        "identifier:missing=false": ALL,
        "identifier:missing=true": set(),
        f"_id:not={ids['ana-blood']}": ALL - {"ana-blood"},
        "status=final&date=ge2026-11-20&patient.identifier=ana": {"ana-blood"},
        "status=final&_count=0": set(),
    }
    for query, names in expected.items():
        answer = lab.get(f"{BASE}?{quote(query, safe='=&%+')}")

        assert names_in(answer, ids) == names, query


def test_references_are_compared_in_all_their_forms(lab: Integrator, ids: dict[str, str]) -> None:
    own = lab.get(f"{BASE}/{ids['ana-blood']}").json
    literal, performer = own["subject"]["reference"], own["performer"][0]["reference"]
    bare = literal.partition("/")[2]

    for query, names in {
        f"patient={bare}": {"ana-blood"},
        f"patient={literal}": {"ana-blood"},
        f"patient={lab.service.base_url}/fhir/r4/{literal}": {"ana-blood"},
        f"patient:Patient={bare}": {"ana-blood"},
        f"subject={bare}": {"ana-blood"},
        f"subject={literal},Patient/nobody": {"ana-blood"},
        f"subject:Patient={bare}": {"ana-blood"},
        f"subject:Group={bare}": set(),
        f"patient=Group/{bare}": set(),
        "patient:missing=false": ALL,
        "subject:missing=true": set(),
        f"performer={performer}": {"ana-blood"},
        f"performer:Organization={performer.partition('/')[2]}": {"ana-blood"},
        f"performer={literal}": set(),
        f"patient={literal}&status=preliminary": set(),
    }.items():
        assert names_in(lab.get(f"{BASE}?{query}"), ids) == names, query
