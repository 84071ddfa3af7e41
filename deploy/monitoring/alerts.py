"""The alert rules: what an operator is woken for. docs/operators.md has the remedies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert rule; ``after`` is how long its expression must hold."""

    name: str
    expression: str
    after: str
    severity: str
    summary: str


def _rose(series: str, *by: str) -> str:
    """Return an expression for a counter that rose within an hour.

    A series with labels begins with its first count: `increase` would not see that one.
    """
    labels = ", ".join(("job", *by))
    return (
        f"sum by ({labels}) (increase({series}[1h])) > 0 "
        f"or sum by ({labels}) ({series} unless {series} offset 1h) > 0"
    )


ALERTS = [
    Alert(
        "FhirpubDown",
        'up{job="fhirpub"} == 0',
        "1m",
        "critical",
        "{{ $labels.instance }} does not answer",
    ),
    Alert(
        "FhirpubFaults",
        'sum by (job) (rate(fhirpub_requests_total{status=~"5.."}[5m])) '
        "> 0.01 * sum by (job) (rate(fhirpub_requests_total[5m]))",
        "5m",
        "critical",
        "more than 1 % of the requests fail",
    ),
    Alert(
        "FhirpubStoreUnavailable",
        "sum by (job) (increase(fhirpub_store_unavailable_total[5m])) > 0",
        "0m",
        "critical",
        "the store did not answer requests",
    ),
    Alert(
        "FhirpubSlow",
        "histogram_quantile(0.99, sum by (job, le) "
        '(rate(fhirpub_request_seconds_bucket{route=~".*register"}[5m]))) > 1',
        "10m",
        "warning",
        "1 % of the registrations take {{ $value | humanizeDuration }} or longer",
    ),
    Alert(
        "FhirpubLoopHeld",
        "fhirpub_loop_lag_p99_seconds > 0.1",
        "5m",
        "warning",
        "the event loop of {{ $labels.instance }} is held for {{ $value | humanizeDuration }}",
    ),
    Alert(
        "FhirpubFilesRunOut",
        'process_open_fds{job="fhirpub"} > 0.8 * process_max_fds{job="fhirpub"}',
        "5m",
        "warning",
        "{{ $labels.instance }} has {{ $value }} open files",
    ),
    Alert(
        "FhirpubOtherContent",
        "sum by (job) (increase(fhirpub_other_content_total[1h])) > 0",
        "0m",
        "warning",
        "other content under a registered identifier was not stored",
    ),
    Alert(
        "FhirpubQuotaUsedUp",
        _rose('fhirpub_quota_refusals_total{quota=~".*_day|.*_stored_bytes"}', "quota"),
        "0m",
        "warning",
        "the quota {{ $labels.quota }} of a tenant or client is used up",
    ),
    Alert(
        "FhirpubNotRelayed",
        "sum by (job) (fhirpub_webhook_relay_leading) < 1 "
        "or max by (job) (fhirpub_webhook_relay_lag_seconds) > 60",
        "2m",
        "critical",
        "events are not relayed to webhooks",
    ),
    Alert(
        "FhirpubDeadLetters",
        _rose('fhirpub_webhook_deliveries_total{outcome="dead"}', "reason"),
        "0m",
        "warning",
        "deliveries became dead letters: {{ $labels.reason }}",
    ),
    Alert(
        "FhirpubEndpointDisabled",
        "sum by (job) (increase(fhirpub_webhook_endpoints_disabled_total[1h])) > 0",
        "0m",
        "warning",
        "an endpoint was disabled",
    ),
    Alert(
        "FhirpubAddressBlocked",
        "sum by (job) (increase(fhirpub_webhook_blocked_addresses_total[1h])) > 0",
        "0m",
        "warning",
        "the host of an endpoint led to addresses to which nothing may be sent",
    ),
]
