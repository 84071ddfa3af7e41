"""The rule of ServiceRequest that FHIR has and a schema cannot say."""

from __future__ import annotations

from collections.abc import Iterator

from fhirpub.plugin_api import Entry, Issue, RuleContext


def request_rules(entry: Entry, _context: RuleContext) -> Iterator[Issue]:
    """Check that details are details of something ordered (prr-1)."""
    if "orderDetail" in entry.resource and "code" not in entry.resource:
        rule = "is required beside orderDetail (prr-1)"
        yield Issue("error", "exception", rule, f"{entry.at}.code")
