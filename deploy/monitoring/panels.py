"""The panels of the dashboard, with queries of the metrics in fhirpub/runtime/metrics.py.

A query of a metric that is not there, or is of another kind, ends the run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from fhirpub.runtime.metrics import Metrics

METRICS = {item.name: item for item in Metrics(serves=True, sends=True).collect()}
_CHOSEN = '{job=~"$job",instance=~"$instance"}'
_PERIOD = "[$__rate_interval]"


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a panel, with the text that names its series."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel; ``unit`` is a unit of Grafana, ``width`` is in 24ths of the row."""

    title: str
    unit: str
    queries: Sequence[Query]
    width: int = 8
    kind: str = "timeseries"
    stacked: bool = False
    shows: str = "value"


def rate(name: str, *by: str) -> Query:
    """Return how often a counter counts per second."""
    series = f"sum{_by(by)} (rate({_of(name, 'counter')}_total{_CHOSEN}{_PERIOD}))"
    return Query(series, " ".join(f"{{{{{label}}}}}" for label in by) or "all")


def rising(query: Query) -> Query:
    """Return a query without the series that stand still: most outcomes never happen."""
    return Query(f"{query.expression} > 0", query.legend)


def quantile(share: float, name: str, *by: str) -> Query:
    """Return a quantile of a histogram."""
    buckets = f"rate({_of(name, 'histogram')}_bucket{_CHOSEN}{_PERIOD})"
    legend = " ".join([f"p{share * 100:g}", *(f"{{{{{label}}}}}" for label in by)])
    return Query(f"histogram_quantile({share:g}, sum{_by(('le', *by))} ({buckets}))", legend)


def gauge(name: str, how: str = "max", *by: str) -> Query:
    """Return a gauge, combined over the processes by ``how``."""
    labels = " ".join(f"{{{{{label}}}}}" for label in by)
    return Query(f"{how}{_by(by)} ({_of(name, 'gauge')}{_CHOSEN})", labels or how)


def quantiles(name: str) -> list[Query]:
    """Return the quantiles that show how fast most, nearly all and the slowest are."""
    return [quantile(share, name) for share in (0.5, 0.95, 0.99)]


def _of(name: str, kind: str) -> str:
    found = METRICS[name].type if name in METRICS else "missing"
    if found != kind:
        sys.exit(f"{name} is {found} in fhirpub/runtime/metrics.py, and used as {kind}")
    return name


def _by(labels: Sequence[str]) -> str:
    return f" by ({', '.join(labels)})" if labels else ""


def _share_of_faults() -> Query:
    counted = _of("fhirpub_requests", "counter")
    faults = f'fhirpub_requests_total{{job=~"$job",instance=~"$instance",status=~"5.."}}{_PERIOD}'
    answered = f"sum(rate({counted}_total{_CHOSEN}{_PERIOD}))"
    return Query(f"(sum(rate({faults})) or vector(0)) / {answered}", "5xx")


REGISTER = (
    "histogram_quantile(0.99, sum by (le) (rate(fhirpub_request_seconds_bucket"
    f'{{job=~"$job",instance=~"$instance",route=~".*register"}}{_PERIOD})))'
)
ROWS: dict[str, list[Panel]] = {
    "At a glance": [
        Panel("Processes", "none", [Query('sum(up{job=~"$job"})', "up")], 4, "stat"),
        Panel("Requests a second", "reqps", [rate("fhirpub_requests")], 4, "stat"),
        Panel("Faults (5xx)", "percentunit", [_share_of_faults()], 4, "stat"),
        Panel("Registration, p99", "s", [Query(REGISTER, "p99")], 4, "stat"),
        Panel(
            "Deliveries waiting", "none", [gauge("fhirpub_webhook_queue_depth", "sum")], 4, "stat"
        ),
        Panel(
            "Releases",
            "none",
            [Query(f"count by (version) ({_of('fhirpub', 'info')}_info{_CHOSEN})", "{{version}}")],
            4,
            "stat",
            shows="name",
        ),
    ],
    "Requests": [
        Panel("Requests", "reqps", [rate("fhirpub_requests", "method", "route")], stacked=True),
        Panel("Answers by status", "reqps", [rate("fhirpub_requests", "status")], stacked=True),
        Panel("Time to answer, p95", "s", [quantile(0.95, "fhirpub_request_seconds", "route")]),
        Panel(
            "Registrations",
            "ops",
            [rate("fhirpub_registrations", "type", "outcome")],
            stacked=True,
        ),
        Panel("Requests in progress", "none", [gauge("fhirpub_requests_under_way", "sum")]),
        Panel(
            "Refused: other content and quotas",
            "ops",
            [
                Query(rate("fhirpub_other_content").expression, "other content"),
                rate("fhirpub_quota_refusals", "quota"),
            ],
        ),
    ],
    "Processes and the store": [
        Panel("Store did not answer", "ops", [rate("fhirpub_store_unavailable", "instance")]),
        Panel("Event loop held", "s", quantiles("fhirpub_loop_lag_seconds")),
        Panel(
            "Event loop held, last minute",
            "s",
            [
                Query(gauge("fhirpub_loop_lag_p99_seconds").expression, "p99"),
                Query(gauge("fhirpub_loop_lag_max_seconds").expression, "max"),
            ],
        ),
        Panel("Processor", "none", [rate("process_cpu_seconds", "instance")]),
        Panel("Memory", "bytes", [gauge("process_resident_memory_bytes", "sum", "instance")]),
        Panel("Open files", "none", [gauge("process_open_fds", "sum", "instance")]),
    ],
    "Webhooks": [
        Panel(
            "Attempts",
            "ops",
            [rising(rate("fhirpub_webhook_attempts", "outcome"))],
            stacked=True,
        ),
        Panel(
            "Ended deliveries",
            "ops",
            [rising(rate("fhirpub_webhook_deliveries", "outcome", "reason"))],
            stacked=True,
        ),
        Panel("From commit to delivery", "s", quantiles("fhirpub_webhook_delivery_seconds")),
        Panel("Time of an attempt", "s", quantiles("fhirpub_webhook_attempt_seconds")),
        Panel(
            "Oldest delivery that waits", "s", [gauge("fhirpub_webhook_oldest_pending_seconds")]
        ),
        Panel("Relay behind the commits", "s", [gauge("fhirpub_webhook_relay_lag_seconds")]),
        Panel("Relays that lead: one", "none", [gauge("fhirpub_webhook_relay_leading", "sum")]),
        Panel("Circuit breakers", "none", [gauge("fhirpub_webhook_breakers", "sum", "state")]),
        Panel(
            "Disabled, blocked, replayed",
            "ops",
            [
                Query(rate("fhirpub_webhook_endpoints_disabled").expression, "endpoints disabled"),
                Query(rate("fhirpub_webhook_blocked_addresses").expression, "addresses blocked"),
                Query(rate("fhirpub_webhook_replays").expression, "deliveries replayed"),
            ],
        ),
    ],
}
