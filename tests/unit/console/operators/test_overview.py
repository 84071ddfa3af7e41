"""The first page of an operator: counts by state, the store, the process, and plugins."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub import __version__
from fhirpub.administration import clients, tenants
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.console.operators import overview
from fhirpub.console.operators.overview import show_overview
from fhirpub.console.visit import Html, Visit
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.loop_lag import LoopLag
from fhirpub.runtime.metrics import Metrics
from fhirpub.storage.contract import ClientSecret
from fhirpub.testing.contracts.store.records import a_client
from fhirpub.testing.contracts.webhooks.records import an_endpoint
from fhirpub.web.readiness import Readiness
from tests.unit.administration.office import Office
from tests.unit.console.operators.desk import a_visit, cells_of, facts_in


def visited(office: Office, **changes: Any) -> Visit:
    """Return a visit of a service whose process is measured."""
    visit = a_visit(office)
    usual = {
        "readiness": Readiness(office.store.check),
        "metrics": Metrics(serves=True, sends=False),
        "loop_lag": LoopLag(),
    }
    for name, part in (usual | changes).items():
        setattr(visit.console.services, name, part)
    return visit


async def shown(office: Office, **changes: Any) -> Html:
    return await show_overview(visited(office, **changes))


async def test_tenants_clients_and_endpoints_are_counted_by_state(
    office: Office, lab: str, other: str
) -> None:
    await office.run(tenants.DISABLE, tenant=other)
    for name in ("a", "b"):
        await office.run(clients.ADD, tenant=lab, name=name)
    ended = (ClientSecret(b"d", office.clock.now),)
    await office.store.add_client(replace(a_client(tenant=lab), secrets=ended))
    for tenant in (lab, other):
        await office.store.put_endpoint(tenant, an_endpoint(tenant=tenant))

    page = await shown(office)

    assert page.values["counts"] == [
        ("Tenants", "tenants", {"enabled": 1, "disabled": 1}),
        ("Clients", "clients", {"enabled": 2, "expired": 1}),
        ("Endpoints", "endpoints", {"active": 2}),
    ]


async def test_the_most_frequent_state_is_first(office: Office, lab: str) -> None:
    for number in range(2):
        one = replace(a_client(tenant=lab), name=f"{number}", disabled=True)
        await office.store.add_client(one)
    await office.run(clients.ADD, tenant=lab, name="a")

    _tenants, (_title, _section, states), _endpoints = (await shown(office)).values["counts"]

    assert [*states.items()] == [("disabled", 2), ("enabled", 1)]


async def test_a_store_that_answers_is_shown_with_its_time_and_version(office: Office) -> None:
    readiness = Readiness(office.store.check)
    await readiness.confirm()
    readiness.seconds = 1.2345

    page = await shown(office, readiness=readiness)

    version = await office.store.schema_version()
    assert page.values["is_ready"] is True
    assert facts_in(page.values["store"])["A write and a read took"] == ["1,234.5 ms"]
    (shown_version,) = facts_in(page.values["store"])["Schema version, by its last upgrade"]
    assert shown_version.startswith(f"{version.number}")


@pytest.mark.parametrize(
    ("usable_from", "text"), [(7, "9, usable from 7"), (9, "9")]
)  # fmt: skip
async def test_the_oldest_release_that_can_use_the_store_is_shown_if_it_is_older(
    usable_from: int, text: str
) -> None:
    async def checked() -> None:
        return None

    async def version() -> Any:
        return SimpleNamespace(number=9, usable_from=usable_from)

    services: Any = SimpleNamespace(
        readiness=Readiness(checked), store=SimpleNamespace(schema_version=version)
    )

    facts, is_ready = await overview._store(services)

    assert is_ready
    assert facts_in(facts)["Schema version, by its last upgrade"] == [text]


async def test_a_store_that_does_not_answer_is_shown_with_the_reason(office: Office) -> None:
    async def away() -> None:
        raise StoreUnavailable("the disk is full")

    page = await shown(office, readiness=Readiness(away))

    assert page.values["is_ready"] is False
    assert facts_in(page.values["store"]) == {"Problem": ["the disk is full"]}
    assert page.status == 200


async def test_requests_are_counted_by_the_class_of_their_status(office: Office) -> None:
    metrics = Metrics(serves=True, sends=False)
    for status, times in ((200, 2), (201, 1), (404, 3), (503, 1)):
        for _ in range(times):
            metrics.count_response("GET", "/x", status, 0.1)

    page = await shown(office, metrics=metrics)

    assert cells_of(page.values["requests"]) == [["2xx", "3"], ["4xx", "3"], ["5xx", "1"]]


async def test_metrics_are_shown_in_sum_over_their_labels(office: Office) -> None:
    metrics = Metrics(serves=True, sends=False)
    for name, times in (("DiagnosticReport", 1_000), ("Specimen", 234)):
        for _ in range(times):
            metrics.count_registration(name, created=True)

    facts = facts_in((await shown(office, metrics=metrics)).values["process"])

    assert facts["Registrations"] == ["1,234"]
    assert facts["Requests in progress"] == ["0"]


async def test_a_process_that_sends_nothing_shows_no_deliveries(office: Office) -> None:
    alone = facts_in((await shown(office)).values["process"])
    sending = Metrics(serves=True, sends=True)
    both = facts_in((await shown(office, metrics=sending)).values["process"])

    assert "Deliveries that wait" not in alone
    assert both["Deliveries that wait"] == ["0"]


async def test_how_long_the_event_loop_was_held_is_in_milliseconds(office: Office) -> None:
    lag = LoopLag()
    lag._delays.extend([0.002] * 199 + [1.5])

    facts = facts_in((await shown(office, loop_lag=lag)).values["process"])

    assert facts["Event loop held, 99th percentile of the last minute"] == ["2.0 ms"]
    assert facts["Event loop held, longest of the last minute"] == ["1,500.0 ms"]


async def test_plugins_are_shown_once_each_in_the_order_of_the_settings(office: Office) -> None:
    usual = Config().plugins.enabled
    enabled = [*reversed(usual), usual[0]]
    visit = visited(office)
    config = replace(office.administration.config, plugins=PluginsConfig(enabled=enabled))
    visit.console.services.config = config  # type: ignore[misc]

    table = (await show_overview(visit)).values["plugins"]

    assert [row[0] for row in cells_of(table)] == [*reversed(usual)]
    assert table.columns == ["Plugin", "Version", "Distribution", "Api version", "Hooks"]


async def test_the_overview_shows_the_release_and_is_the_start(office: Office) -> None:
    page = await shown(office)

    assert page.values["version"] == __version__
    assert (page.template, page.title, page.section) == (
        "operator_overview.html",
        "Overview",
        "start",
    )


async def test_most_tenants_are_enabled(office: Office, lab: str, other: str) -> None:
    tenants_, _clients, _endpoints = (await shown(office)).values["counts"]

    assert tenants_ == ("Tenants", "tenants", {"enabled": 2})
