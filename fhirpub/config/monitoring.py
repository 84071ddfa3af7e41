"""The settings of the log and of metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fhirpub.config.reader import setting as _setting


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsConfig:
    """The log. It never contains a patient's data or a secret."""

    level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "Lowest level that is logged. debug includes every request."
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
