"""What is counted and timed in one process, for operators, in the text formats of Prometheus.

A label is one of a few words of ours: nothing of a tenant, a request's content or a receiver.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    Metric,
    PlatformCollector,
    ProcessCollector,
    exposition,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from fhirpub import __version__

NO_ROUTE = "none"
"""The route of a request that no row of the table of URLs fits."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER_METHOD = "other"
_OPENMETRICS = "application/openmetrics-text"
_PLAIN = "text/plain; version=0.0.4; charset=utf-8"

# The upper ends of the histograms' buckets, in seconds.
_OF_REQUESTS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_OF_LOOP_LAG = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.1, 0.25, 0.5, 1)
_OF_ATTEMPTS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30)
_OF_DELIVERIES = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400)


def method_word(method: str) -> str:
    """Return a method that HTTP knows, or ``other``: a client may send any word as one."""
    return method if method in _METHODS else _OTHER_METHOD


class Metrics(Collector):
    """Every metric of a process: those of requests if it ``serves``, of webhooks if it ``sends``.

    What does not apply can be counted all the same, and is not shown. The gauges are read when
    they are scraped, by the functions that their owners set.
    """

    def __init__(self, *, serves: bool, sends: bool) -> None:
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        release = Info("fhirpub", "The release that runs.", registry=self._registry)
        release.info({"version": __version__})
        self._answers: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        text = "Times that an endpoint's host led to addresses to which nothing may be sent."
        self.blocked_addresses = Counter(
            "fhirpub_webhook_blocked_addresses", text, registry=self._registry
        )
        self._make_those_of_requests(self._registry if serves else None)
        self._make_those_of_webhooks(self._registry if sends else None)

    def _make_those_of_requests(self, registry: CollectorRegistry | None) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        text = "Requests that were answered."
        self._requests = counter("fhirpub_requests", text, ["method", "route", "status"])
        text = "From the head of a request to its answer, with the time that its body takes."
        self._request_seconds = histogram(
            "fhirpub_request_seconds", text, ["method", "route"], buckets=_OF_REQUESTS
        )
        text = "Requests whose answer has not left yet."
        self.in_flight = gauge("fhirpub_requests_under_way", text)
        text = "How much later than it was due a timer ran: how long the event loop was held."
        self.loop_lag = histogram("fhirpub_loop_lag_seconds", text, buckets=_OF_LOOP_LAG)
        text = "The 99th percentile of fhirpub_loop_lag_seconds over the last minute."
        self.loop_lag_p99 = gauge("fhirpub_loop_lag_p99_seconds", text)
        text = "The maximum of fhirpub_loop_lag_seconds over the last minute."
        self.loop_lag_max = gauge("fhirpub_loop_lag_max_seconds", text)
        text = "Registrations that were taken: created, or a repetition of what was there."
        self._registrations = counter("fhirpub_registrations", text, ["type", "outcome"])
        text = "Registrations whose identifier was registered before with other content."
        self.other_content = counter("fhirpub_other_content", text)
        text = "Requests that were refused since a quota is used up, by the name of the quota."
        self.quota_refusals = counter("fhirpub_quota_refusals", text, ["quota"])
        text = "Requests, checks of health too, that failed because the store did not answer."
        self.store_unavailable = counter("fhirpub_store_unavailable", text)
        text = "Deliveries that were opened again over HTTP, to be sent once more."
        self.replays = counter("fhirpub_webhook_replays", text)

    def _make_those_of_webhooks(self, registry: CollectorRegistry | None) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        text = "Attempts to deliver, by the class of the answer's status or why there was none."
        self.attempts = counter("fhirpub_webhook_attempts", text, ["outcome"])
        text = "From the look-up of the receiver's name to the end of its answer."
        self.attempt_seconds = histogram(
            "fhirpub_webhook_attempt_seconds", text, buckets=_OF_ATTEMPTS
        )
        text = "Deliveries that ended, by what came of the last attempt."
        self.deliveries = counter("fhirpub_webhook_deliveries", text, ["outcome", "reason"])
        text = "From the commit to the answer of the receiver who took it, replays left out."
        self.delivery_seconds = histogram(
            "fhirpub_webhook_delivery_seconds", text, buckets=_OF_DELIVERIES
        )
        text = (
            "Deliveries that wait or are under way, of the active endpoints that this process has "
            "now; of each endpoint it looks at the first 10,000 or so."
        )
        self.queue_depth = gauge("fhirpub_webhook_queue_depth", text)
        text = "Age of the oldest of the deliveries in fhirpub_webhook_queue_depth, 0 without any."
        self.oldest_pending = gauge("fhirpub_webhook_oldest_pending_seconds", text)
        text = "Active endpoints that this process has now, by the state of their breaker."
        self.breakers = gauge("fhirpub_webhook_breakers", text, ["state"])
        text = "Endpoints that were disabled since they failed for too long or asked for it."
        self.endpoints_disabled = counter("fhirpub_webhook_endpoints_disabled", text)
        text = (
            "How long ago the oldest version of the relay's last round was committed; 0 if it "
            "found none, and where the relay does not lead."
        )
        self.relay_lag = gauge("fhirpub_webhook_relay_lag_seconds", text)
        text = "Whether the relay of this process is the one that works."
        self.relay_leading = gauge("fhirpub_webhook_relay_leading", text)

    # What is counted, where it takes more than a word.

    def count_response(
        self, method: str, route: str, status: int, seconds: float, trace_id: str = ""
    ) -> None:
        """Count a request that was answered. ``route`` is a row of the table of URLs.

        ``trace_id`` names its trace, if that is sent to a collector.
        """
        key = (method_word(method), route, status)
        found = self._answers.get(key)
        if found is None:
            method, *_ = key
            found = self._answers[key] = (
                self._requests.labels(method, route, status),
                self._request_seconds.labels(method, route),
            )
        count, duration = found
        exemplar = {"trace_id": trace_id} if trace_id else None
        count.inc()
        duration.observe(seconds, exemplar)

    def count_registration(self, type_name: str, *, created: bool) -> None:
        """Count a registration, or the repetition of one."""
        self._registrations.labels(type_name, "created" if created else "repeated").inc()

    # Exposition.

    def collect(self) -> Iterator[Metric]:
        """Yield all that is shown, without when each series began: that would be half of it."""
        for metric in self._registry.collect():
            metric.samples = [
                sample for sample in metric.samples if not sample.name.endswith("_created")
            ]
            yield metric

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the exposition and its media type: OpenMetrics for clients that accept it.

        The library's own choice trips over versions that are no numbers.
        """
        if _OPENMETRICS in accept.lower():
            body: bytes = openmetrics.generate_latest(self)  # type: ignore[no-untyped-call]
            return body, openmetrics.CONTENT_TYPE_LATEST
        return exposition.generate_latest(self), _PLAIN
