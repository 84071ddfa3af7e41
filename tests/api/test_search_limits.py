"""A search has a limited price, and a costly one harms no other tenant and rings no alarm."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from prometheus_client import parser

from fhirpub.config.settings import Config, LimitsConfig
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.testing.store_contract import add_all, found_by
from tests.bodies import register_body

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BASE = "/fhir/r4/DiagnosticReport"
BODY = b'{"resourceType":"DiagnosticReport","status":"final","code":{"text":"x"}}'
COUNT = 8_000

SORT = "_sort=date,-issued,status,category,code"
MANY_DATES = "&".join(f"date=ne{1900 + number}" for number in range(99))
MANY_CODES = "code=" + ",".join(f"c{number}" for number in range(9_000))
COSTLY = "&".join(f"date=ne{1900 + number}" for number in range(45))


@pytest.fixture(scope="module")
def service(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service with little time for a search."""
    config = replace(Config(), limits=LimitsConfig(search_seconds=0.1))
    folder, url = tmp_path_factory.mktemp("limits"), store_url("limits")
    with RunningService(folder, config=config, store_url=url) as running:
        yield running


@pytest.fixture(scope="module")
def usual(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service with the default limits."""
    folder, url = tmp_path_factory.mktemp("usual"), store_url("usual")
    with RunningService(folder, store_url=url) as running:
        yield running


@pytest.fixture(scope="module")
def large(service: RunningService) -> Integrator:
    """A client of a tenant with thousands of reports."""
    return client_with_reports(service, COUNT)


def client_with_reports(service: RunningService, count: int) -> Integrator:
    client = service.integrator("Large")
    versions = [
        found_by(
            ("status", "final", "s"),
            ("category", "HM", "s"),
            ("code", f"c{number % 50}", "s"),
            ("effectiveDateTime|effectivePeriod", number * 1_000, number * 1_000 + 1_000),
            ("issued", number * 1_000, number * 1_000 + 1_000),
            type="DiagnosticReport",
            body=BODY,
            updated=1_000 + number,
        )
        for number in range(count)
    ]
    for start in range(0, count, 1_000):
        some = versions[start : start + 1_000]
        service.call(add_all(service.services.store, some, client.tenant.id))
    return client


def failures_of_the_store(service: RunningService) -> float:
    async def text() -> bytes:
        return service.services.metrics.text("")[0]

    (value,) = (
        sample.value
        for family in parser.text_string_to_metric_families(service.call(text()).decode())
        for sample in family.samples
        if sample.name == "fhirpub_store_unavailable_total"
    )
    return value


def refused_parameters(answer: Answer) -> list[str]:
    assert answer.status == 422, answer.body
    assert {issue["code"] for issue in answer.issues} == {"too-costly"}
    return [place for issue in answer.issues for place in issue.get("expression", [""])]


def test_a_search_with_too_many_conditions_is_refused(large: Integrator) -> None:
    answer = large.get(f"{BASE}?{MANY_DATES}&{SORT}&_total=accurate")

    assert refused_parameters(answer) == ["date"]
    assert "at most 50 conditions" in answer.issues[0]["diagnostics"]


@pytest.mark.parametrize(
    ("form", "parameter"),
    [
        (MANY_CODES, "code"),
        ("&".join(f"code={','.join(map(str, range(300)))}" for _ in range(4)), "code"),
        ("status=final&identifier=" + ",".join(["s|v"] * 1_001), "identifier"),
        ("_id=" + ",".join(["x"] * 1_001), "_id"),
        ("patient=" + ",".join(["x"] * 1_001), "patient"),
        ("date=" + ",".join(["2026"] * 1_001), "date"),
        (f"code={','.join(['x'] * 600)}&status={','.join(['y'] * 600)}", "status"),
        ("code=" + ",".join(["a\\\\"] * 1_001), "code"),
    ],
)
def test_a_search_with_too_many_values_is_refused(
    large: Integrator, form: str, parameter: str
) -> None:
    answer = large.request("POST", f"{BASE}/_search", f"{form}&_total=accurate".encode(), FORM)

    assert refused_parameters(answer) == [parameter]
    assert "at most 1000 values" in answer.issues[0]["diagnostics"]


def test_commas_within_values_do_not_count(large: Integrator) -> None:
    form = "code=" + ",".join(["a\\,b\\,c"] * 1_000)

    assert large.request("POST", f"{BASE}/_search", form.encode(), FORM).status == 200


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        (f"{COSTLY}&{SORT}&_total=accurate", ["", "_total", "_sort", "date"]),
        (f"{COSTLY}&_summary=count", ["", "_summary", "date"]),
        (f"{COSTLY}&_count=0", ["", "_count", "date"]),
        (f"{COSTLY}&{SORT}", ["", "_sort", "date"]),
    ],
)
def test_a_search_that_takes_too_much_work_is_refused_with_all_that_can_be_narrowed(
    service: RunningService, large: Integrator, query: str, parameters: list[str]
) -> None:
    answer = large.get(f"{BASE}?{query}")

    assert refused_parameters(answer) == parameters
    assert "retry-after" not in answer.headers
    assert failures_of_the_store(service) == 0


def test_a_condition_that_takes_too_much_work_is_refused(large: Integrator) -> None:
    change = {"resourceType": "DiagnosticReport", "status": "amended"}

    answer = large.patch(f"{BASE}?{COSTLY}&code:not=c1", change)

    assert refused_parameters(answer) == [""]


def test_a_narrower_search_is_answered(large: Integrator) -> None:
    for query in ("code=c1&_total=accurate", "_count=2", "status=final&code=c1,c2&_total=none"):
        assert large.get(f"{BASE}?{query}").status == 200


@pytest.mark.parametrize("attack", [f"{MANY_DATES}&{SORT}", f"{COSTLY}&{SORT}"])
def test_costly_searches_delay_no_other_tenant(usual: RunningService, attack: str) -> None:
    attacker, lab = client_with_reports(usual, 3_000), usual.integrator("Lab")
    location = lab.register(register_body("A")).headers["location"]
    report = location.removeprefix(usual.base_url).partition("/_history")[0]
    ended, statuses, threads = threading.Event(), Counter[int](), 6

    def search() -> None:
        while not ended.is_set():
            statuses[attacker.get(f"{BASE}?{attack}&_total=accurate").status] += 1

    with ThreadPoolExecutor(threads) as pool:
        attacks = [pool.submit(search) for _ in range(threads)]
        try:
            answers = [
                lab.get(path).status
                for _ in range(10)
                for path in (
                    report,
                    f"{report}/_history",
                    f"{BASE}/_history?_count=5",
                    f"{BASE}?status=final&_sort=date",
                )
            ]
        finally:
            ended.set()
        for running in attacks:
            running.result()

    assert answers == [200] * 40
    assert statuses.total() >= threads
    assert statuses.keys() <= {200, 422, 429}
    assert failures_of_the_store(usual) == 0
