"""Histories of one report and of all, by time and in pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from fhirpub.testing.clock import HandClock
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body

BASE = "/fhir/r4/DiagnosticReport"
DAY = 86_400_000
START = 1_767_225_600_000  # 2026-01-01


@pytest.fixture(scope="module")
def clock() -> HandClock:
    return HandClock(START)


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, clock: HandClock
) -> Iterator[RunningService]:
    with RunningService(tmp_path_factory.mktemp("history"), clock=clock) as running:
        yield running


@pytest.fixture(scope="module")
def lab(service: RunningService) -> Integrator:
    return service.integrator()


@pytest.fixture(scope="module")
def paths(lab: Integrator, clock: HandClock) -> list[str]:
    """Two reports: on each of six days one of them gets a version, alternately."""
    found: list[str] = []
    for number in range(6):
        clock.now = START + number * DAY
        lab.log_in()
        if number < 2:
            location = lab.register(register_body(f"h-{number}")).headers["location"]
            found.append(location.partition("/_history")[0].removeprefix(lab.service.base_url))
        else:
            lab.patch(found[number % 2], {"resourceType": "DiagnosticReport", "status": "amended"})
    return found


def versions(bundle: Any) -> list[str]:
    return [entry["resource"]["meta"]["versionId"] for entry in bundle.get("entry", ())]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["3", "2", "1"]),
        ("_since=2026-01-03", ["3", "2"]),
        ("_since=2026-01-03T00:00:00Z", ["3", "2"]),
        ("_since=2026-01-03T00:00:00.001Z", ["3"]),
        ("_since=2026-01-02T22:00:00-02:00", ["3", "2"]),
        ("_since=2027", []),
        ("_at=2026-01-01", ["1"]),
        ("_at=2026-01-02", ["1"]),
        ("_at=2026-01-03", ["2"]),
        ("_at=2026-01-02T12:00:00Z", ["1"]),
        ("_at=2026-01", ["3", "2", "1"]),
        ("_at=2025", []),
        ("_at=2027", ["3"]),
        ("_at=eq2026-01-03&_at=eq2026-01-03", ["2"]),  # the form that HAPI's client sends
        ("_at=2026-01&_since=2026-01-04", ["3"]),
        ("_at=2026-01-04&_count=1", ["2"]),
        ("_count=0", []),
    ],
)
def test_versions_of_a_time(
    lab: Integrator, paths: list[str], query: str, expected: list[str]
) -> None:
    bundle = lab.get(f"{paths[0]}/_history?{query}").json

    assert versions(bundle) == expected
    assert ("total" in bundle) == ("_at" not in query and "_since" not in query)


@pytest.mark.parametrize("query", ["", "&_since=2026-01-02", "&_at=2026"])
def test_pages_of_a_history_keep_its_parameters(
    lab: Integrator, paths: list[str], query: str
) -> None:
    whole = versions(lab.get(f"{paths[0]}/_history?_count=100{query}").json)
    seen, url = [], f"{paths[0]}/_history?_count=1{query}"
    while url:
        bundle = lab.get(url).json
        seen += versions(bundle)
        url = next((link["url"] for link in bundle["link"] if link["relation"] == "next"), "")

    assert seen == whole
    assert len(whole) >= 2


def test_the_history_of_a_type_has_every_version_newest_first(
    lab: Integrator, paths: list[str]
) -> None:
    seen, url = [], f"{BASE}/_history?_count=2"
    while url:
        bundle = lab.get(url).json
        assert (bundle["type"], bundle["total"]) == ("history", 6)
        seen += bundle["entry"]
        url = next((link["url"] for link in bundle["link"] if link["relation"] == "next"), "")

    own = [lab.get(f"{path}/_history").json["entry"] for path in paths]
    assert [item for pair in zip(own[1], own[0], strict=True) for item in pair] == seen
    since = lab.get(f"{BASE}/_history?_since=2026-01-05").json
    assert (since["total"], since["entry"]) == (2, seen[:2])


def test_the_history_of_a_type_is_the_tenants_own(
    service: RunningService, lab: Integrator, paths: list[str]
) -> None:
    other = service.integrator()
    (cursor,) = [
        link["url"]
        for link in lab.get(f"{BASE}/_history?_count=1").json["link"]
        if link["relation"] == "next"
    ]

    assert other.get(f"{BASE}/_history").json["total"] == 0
    assert other.get(cursor).status == 400
    assert lab.get(cursor.replace("_count=1", "_since=2026")).status == 400
    assert lab.get(cursor.replace("/_history", "")).status == 400


@pytest.mark.parametrize(
    ("query", "blamed"),
    [
        ("_since=yesterday&_count=x", {"_since", "_count"}),
        ("_since=ge2026", {"_since"}),
        ("_at=2026-13", {"_at"}),
        ("_at=ge2026", {"_at"}),
        ("_at=eq", {"_at"}),
        ("_below=x", {"_below"}),
    ],
)
def test_what_cannot_be_read_is_a_400(
    lab: Integrator, paths: list[str], query: str, blamed: set[str]
) -> None:
    answer = lab.get(f"{paths[0]}/_history?{query}")

    assert (answer.status, answer.issue_expressions) == (400, blamed)


def test_a_type_has_no_history_at_a_time(lab: Integrator) -> None:
    answer = lab.get(f"{BASE}/_history?_at={quote('2026-01-01')}")

    assert (answer.status, answer.issue_expressions) == (400, {"_at"})


def test_to_find_one_among_many_versions_takes_few_questions(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, store = service.integrator(), service.services.store
    path = lab.register(register_body("h-many")).headers["location"].partition("/_history")[0]
    path = path.removeprefix(lab.service.base_url)
    for _ in range(250):
        lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})
    asked: list[dict[str, Any]] = []
    ask = store.history

    def counted(*arguments: Any, **options: Any) -> Any:
        asked.append(options)
        return ask(*arguments, **options)

    monkeypatch.setattr(store, "history", counted)

    found = lab.get(f"{path}/_history?_count=1&_at=1990-01-01")

    assert (found.status, versions(found.json), len(asked) <= 5) == (200, [], True)


@pytest.mark.parametrize("parameters", ["", "&_since=2020"])
def test_a_history_of_large_versions_has_shorter_pages_and_all_of_them(
    service: RunningService, parameters: str
) -> None:
    lab = service.integrator()
    remark = {"url": "http://example.org/remark", "valueString": "word " * 200_000}
    body = register_body(f"large{parameters}", extension=[remark] * 6)
    path = lab.register(body).headers["location"].partition("/_history")[0]
    path = path.removeprefix(lab.service.base_url)
    for status in ("amended", "final", "amended"):
        lab.patch(path, {"resourceType": "DiagnosticReport", "status": status})

    seen, sizes, url = [], [], f"{path}/_history?_count=100{parameters}"
    while url:
        bundle = lab.get(url).json
        seen += versions(bundle)
        sizes.append(len(versions(bundle)))
        url = next((link["url"] for link in bundle["link"] if link["relation"] == "next"), "")

    assert seen == ["4", "3", "2", "1"]
    assert max(sizes) < 4


def test_the_history_of_a_patient_since_its_own_moment_has_it(service: RunningService) -> None:
    lab = service.integrator()
    report = lab.register(register_body("h-patient")).headers["location"]
    address = report.partition("/_history")[0].removeprefix(lab.service.base_url)
    subject = f"/fhir/r4/{lab.get(address).json['subject']['reference']}"
    moment = lab.get(subject).json["meta"]["lastUpdated"]

    bundle = lab.get(f"{subject}/_history?_since={quote(moment)}").json

    assert [entry["resource"]["id"] for entry in bundle["entry"]] == [subject.rpartition("/")[2]]
