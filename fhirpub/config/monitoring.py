"""The settings of the log, of metrics and of traces."""

# ruff: noqa: FBT003 - each setting has its default and its meaning side by side

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fhirpub.config.reader import setting as _setting


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsConfig:
    """The log. It never contains a patient's data or a secret."""

    level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "Lowest level that is logged. debug includes checks of health."
    )
    requests: bool = _setting(
        True,
        "Log one line for each request, at level info: which route, how it was answered, how long "
        "it took, and for which client. If false, only refusals are logged.",
    )
    format: Literal["json", "text"] = _setting(
        "text", "Format of the log. json: one object per line. text: plain text."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """Metrics, at GET /metrics in the text format of Prometheus."""

    host: str = _setting(
        "127.0.0.1", "Address that serves metrics. They require no token: keep it internal."
    )
    port: int = _setting(
        0,
        "Port that serves metrics, different from that of [server]. 0: metrics are not served. Of "
        "several workers the first listens on this port, the second on the next, and so on.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingConfig:
    """Traces, sent to a collector by OTLP over HTTP. They need `pip install fhirpub[otel]`."""

    enabled: bool = _setting(
        False,
        "Send spans of requests, of their steps and of webhooks. The standard variables OTEL_* "
        "apply to what is not set here.",
    )
    endpoint: str = _setting(
        "",
        "URL of the collector, such as http://127.0.0.1:4318; spans are sent to /v1/traces below "
        "it. Empty: OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318.",
    )
    sample_ratio: float = _setting(
        0.1,
        "Share of the traces that begin here and are sent, from 0 to 1. A request with the header "
        "traceparent is sent if its caller records the trace, whatever the share is.",
    )
