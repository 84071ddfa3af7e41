"""The log is for people, and neither metrics nor traces are on, unless the settings differ."""

from __future__ import annotations

import dataclasses

from fhirpub.config.monitoring import LogsConfig, MetricsConfig, TracingConfig


def test_each_request_is_logged_as_plain_text_unless_set() -> None:
    assert dataclasses.asdict(LogsConfig()) == {
        "level": "info",
        "requests": True,
        "format": "text",
    }


def test_metrics_are_not_served_and_stay_on_this_machine_unless_set() -> None:
    assert dataclasses.asdict(MetricsConfig()) == {"host": "127.0.0.1", "port": 0}


def test_a_tenth_of_the_traces_is_sent_once_they_are_enabled() -> None:
    assert dataclasses.asdict(TracingConfig()) == {
        "enabled": False,
        "endpoint": "",
        "sample_ratio": 0.1,
    }
