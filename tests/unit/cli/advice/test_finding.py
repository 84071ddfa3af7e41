"""A finding has a subject, a level and a text."""

from __future__ import annotations

from fhirpub.cli.advice.finding import Finding, warning


def test_a_warning_is_a_finding_that_does_not_prevent_a_start() -> None:
    assert warning("store", "move it") == Finding("store", "warning", "move it")
