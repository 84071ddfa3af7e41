"""What is counted, under which labels, and what of it a process shows."""

from __future__ import annotations

import pytest

from fhirpub import __version__
from fhirpub.runtime.metrics import Metrics, method_word


def shown(metrics: Metrics) -> dict[str, float]:
    """Return what a process shows as counted, by the text of each sample."""
    lines = metrics.text("")[0].decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (one.rpartition(" ") for one in lines if not one.startswith("#"))
    }


@pytest.mark.parametrize(
    ("method", "word"),
    [
        *((one, one) for one in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")),
        *((one, "other") for one in ("BREW", "get", "")),
    ],
)
def test_a_method_that_http_does_not_know_is_another(method: str, word: str) -> None:
    assert method_word(method) == word


def test_a_response_is_counted_and_timed() -> None:
    metrics = Metrics(serves=True, sends=False)
    metrics.count_response("GET", "/x", 200, 0.02)
    metrics.count_response("GET", "/x", 200, 0.5)
    metrics.count_response("GET", "/x", 404, 0.02)
    metrics.count_response("GET", "/x", 201, 0.02)

    found = shown(metrics)

    labels = 'method="GET",route="/x"'
    assert found[f'fhirpub_requests_total{{{labels},status="200"}}'] == 2
    assert found[f'fhirpub_requests_total{{{labels},status="404"}}'] == 1
    assert found[f'fhirpub_requests_total{{{labels},status="201"}}'] == 1
    assert found[f"fhirpub_request_seconds_count{{{labels}}}"] == 4
    assert found[f"fhirpub_request_seconds_sum{{{labels}}}"] == pytest.approx(0.56)


def test_words_that_are_no_methods_share_a_label() -> None:
    metrics = Metrics(serves=True, sends=False)
    for word in ("BREW", "WHEN"):
        metrics.count_response(word, "none", 405, 0.1)

    assert shown(metrics)['fhirpub_requests_total{method="other",route="none",status="405"}'] == 2


def test_a_request_of_a_trace_is_an_example() -> None:
    metrics = Metrics(serves=True, sends=False)
    metrics.count_response("GET", "/x", 200, 0.02, "a" * 32)
    metrics.count_response("GET", "/y", 200, 0.02)

    lines = metrics.text("application/openmetrics-text")[0].decode().splitlines()

    (example,) = [one for one in lines if "trace_id" in one]
    assert 'route="/x"' in example
    assert f'trace_id="{"a" * 32}"' in example


def test_registrations_are_counted_by_what_came_of_them() -> None:
    metrics = Metrics(serves=True, sends=False)
    metrics.count_registration("Media", created=True)
    metrics.count_registration("Media", created=False)
    metrics.count_registration("Media", created=False)

    found = shown(metrics)

    assert found['fhirpub_registrations_total{outcome="created",type="Media"}'] == 1
    assert found['fhirpub_registrations_total{outcome="repeated",type="Media"}'] == 2


@pytest.mark.parametrize(
    ("serves", "sends", "has_requests", "has_webhooks"),
    [(True, True, True, True), (True, False, True, False), (False, True, False, True)],
)
def test_a_process_shows_what_it_does(
    *, serves: bool, sends: bool, has_requests: bool, has_webhooks: bool
) -> None:
    found = shown(Metrics(serves=serves, sends=sends))

    assert ("fhirpub_requests_under_way" in found) is has_requests
    assert ("fhirpub_webhook_queue_depth" in found) is has_webhooks
    assert "fhirpub_webhook_blocked_addresses_total" in found
    assert found[f'fhirpub_info{{version="{__version__}"}}'] == 1


def test_what_is_not_shown_is_counted_all_the_same() -> None:
    metrics = Metrics(serves=False, sends=True)

    metrics.count_response("GET", "/x", 200, 0.1)

    assert not any(name.startswith("fhirpub_requests") for name in shown(metrics))


def test_no_series_shows_when_it_began() -> None:
    metrics = Metrics(serves=True, sends=True)
    metrics.count_response("GET", "/x", 200, 0.1)

    assert not any("_created" in name for name in shown(metrics))


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text"),
        ("Application/OpenMetrics-Text;q=0.5,text/plain", "application/openmetrics-text"),
        ("text/plain", "text/plain; version=0.0.4; charset=utf-8"),
        ("", "text/plain; version=0.0.4; charset=utf-8"),
    ],
)
def test_the_format_is_one_that_the_client_accepts(accept: str, media_type: str) -> None:
    body, found = Metrics(serves=True, sends=True).text(accept)

    assert found.startswith(media_type)
    assert body.endswith(b"# EOF\n") is media_type.startswith("application")


def test_two_processes_of_one_interpreter_count_apart() -> None:
    one, other = (Metrics(serves=True, sends=True) for _ in range(2))
    one.blocked_addresses.inc()

    assert shown(one)["fhirpub_webhook_blocked_addresses_total"] == 1
    assert shown(other)["fhirpub_webhook_blocked_addresses_total"] == 0


@pytest.mark.parametrize(
    ("name", "lowest", "highest"),
    [
        ("request_seconds", "0.001", "10.0"),
        ("loop_lag_seconds", "0.001", "1.0"),
        ("webhook_attempt_seconds", "0.005", "30.0"),
        ("webhook_delivery_seconds", "0.025", "86400.0"),
    ],
)
def test_times_are_sorted_into_what_is_usual_for_them(
    name: str, lowest: str, highest: str
) -> None:
    metrics = Metrics(serves=True, sends=True)
    metrics.count_response("GET", "/x", 200, 0.1)

    found = [one for one in shown(metrics) if one.startswith(f"fhirpub_{name}_bucket")]

    assert f'le="{lowest}"' in found[0]
    assert f'le="{highest}"' in found[-2]
    assert 'le="+Inf"' in found[-1]


@pytest.mark.parametrize("name", ["process_open_fds", "python_info", "python_gc_collections"])
def test_a_process_shows_what_it_takes_and_what_runs_it(name: str) -> None:
    assert any(one.startswith(name) for one in shown(Metrics(serves=True, sends=False)))
