"""One resource type is served, in production, unless the settings differ."""

from __future__ import annotations

import dataclasses

from fhirpub.config.plugins import PluginsConfig


def test_reports_are_served_and_code_of_plugins_is_in_production_unless_set() -> None:
    assert dataclasses.asdict(PluginsConfig()) == {
        "enabled": ["diagnosticreport"],
        "environment": "production",
    }
