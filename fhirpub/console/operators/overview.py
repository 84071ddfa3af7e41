"""The first page of an operator: what there is, and how the service does."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from fhirpub import __version__
from fhirpub.auth.clients import access_end
from fhirpub.console.operators.shown import Fact, Piece, Shower, Table
from fhirpub.console.visit import Html, Visit
from fhirpub.errors import StoreUnavailable
from fhirpub.plugin_host.hooks import hooks_of
from fhirpub.plugin_host.sources import installed, source_of
from fhirpub.runtime.turns import in_turns
from fhirpub.storage.contract import Client
from fhirpub.storage.store import Store
from fhirpub.web.services import Services

Metrics = Mapping[str, Sequence[Any]]
"""The samples of each metric of the process."""

_SHOWN = {
    "fhirpub_requests_under_way": "Requests in progress",
    "fhirpub_store_unavailable": "Requests that the store did not answer",
    "fhirpub_quota_refusals": "Requests beyond a quota",
    "fhirpub_registrations": "Registrations",
    "fhirpub_webhook_queue_depth": "Deliveries that wait",
    "fhirpub_webhook_oldest_pending_seconds": "Age of the oldest of them, in seconds",
    "fhirpub_webhook_relay_lag_seconds": "Delay of the relay of events, in seconds",
    "fhirpub_webhook_endpoints_disabled": "Endpoints disabled since they failed",
}
"""What is shown of the metrics, in sum over their labels."""


async def show_overview(visit: Visit) -> Html:
    """Show tenants, clients and endpoints by state, the store, the process, and plugins."""
    services = visit.console.services
    store, health = await _store(services)
    metrics = {one.name: one.samples for one in services.metrics.collect()}
    values = {
        "counts": await _counts(services.store, services.clock()),
        "is_ready": health,
        "store": store,
        "process": _process(services, metrics),
        "requests": _requests(metrics),
        "plugins": await asyncio.to_thread(_plugins, tuple(services.config.plugins.enabled)),
        "version": __version__,
    }
    return Html(
        template="operator_overview.html", title="Overview", section="start", values=values
    )


async def _counts(store: Store, now: int) -> Sequence[tuple[str, str, Mapping[str, int]]]:
    """Return how many of each kind there are by state, each kind with its section."""
    tenants, clients = await store.tenants(), await store.clients()
    endpoints = await store.all_endpoints()
    states = await in_turns(lambda one: state_of_client(one, now), clients)
    return [
        ("Tenants", "tenants", _by("disabled" if one.disabled else "enabled" for one in tenants)),
        ("Clients", "clients", _by(states)),
        ("Endpoints", "endpoints", _by(one.state for one in endpoints)),
    ]


def _by(states: Any) -> Mapping[str, int]:
    return dict(Counter(states).most_common())


def state_of_client(client: Client, now: int) -> str:
    """Return whether a client is enabled, disabled, or has no secret any more that is valid."""
    if client.disabled:
        return "disabled"
    end = access_end(client)
    return "expired" if end is not None and end <= now else "enabled"


async def _store(services: Services) -> tuple[Sequence[Fact], bool]:
    try:
        await services.readiness.confirm()
        version = await services.store.schema_version()
    except StoreUnavailable as problem:
        return [_fact("Problem", problem.reason)], False
    milliseconds = services.readiness.seconds * 1000
    older = f", usable from {version.usable_from}" * (version.usable_from < version.number)
    return [
        _fact("A write and a read took", f"{milliseconds:,.1f} ms"),
        _fact("Schema version, by its last upgrade", f"{version.number}{older}"),
    ], True


def _process(services: Services, metrics: Metrics) -> Sequence[Fact]:
    lag = services.loop_lag
    sums = {name: sum(one.value for one in metrics[name]) for name in _SHOWN if name in metrics}
    p99, highest = lag.quantile(0.99) * 1000, lag.highest() * 1000
    return [
        _fact("Event loop held, 99th percentile of the last minute", f"{p99:,.1f} ms"),
        _fact("Event loop held, longest of the last minute", f"{highest:,.1f} ms"),
        *(_fact(label, f"{sums[name]:,.0f}") for name, label in _SHOWN.items() if name in sums),
    ]


def _requests(metrics: Metrics) -> Table:
    """Return how many requests were answered, by the class of their status."""
    counts: Counter[str] = Counter()
    for one in metrics.get("fhirpub_requests", ()):
        counts[f"{one.labels['status'][:1]}xx"] += int(one.value)
    rows = [{"status": each, "requests": counts[each]} for each in sorted(counts)]
    return Shower().table(rows, title="Requests answered, by status")


@lru_cache(maxsize=1)
def _plugins(enabled: tuple[str, ...]) -> Table:
    """Return the plugins that are enabled, with their hooks, in the order of the settings."""
    points = installed()
    sources = [source_of(name, points) for name in dict.fromkeys(enabled)]
    records = [
        {
            "plugin": one.name,
            "version": one.version,
            "distribution": one.distribution,
            "api_version": one.api,
            "hooks": list(hooks_of(one)),
        }
        for one in sources
    ]
    return Shower().table(records, title="Plugins, in the order of their calls")


def _fact(label: str, text: str) -> Fact:
    return Fact(label, [Piece(text)])
