"""The rules of Observation that FHIR has and a schema cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fhirpub.plugin_api import Entry, Issue, RuleContext, items_of


def observation_rules(entry: Entry, _context: RuleContext) -> Iterator[Issue]:
    """Check that values, reasons for their absence and ranges go together (obs-3, -6, -7)."""
    it, at = entry.resource, entry.at
    value = next((name for name in it if name.startswith("value")), "")
    if value and "dataAbsentReason" in it:
        yield _error("must not stand beside a value (obs-6)", f"{at}.dataAbsentReason")
    if value and _codes(it["code"]) & {
        code for _place, each in items_of(it, "component") for code in _codes(each["code"])
    }:
        yield _error("must not stand beside a component of the same code (obs-7)", f"{at}.{value}")
    for path in ("referenceRange", "component.referenceRange"):
        for place, each in items_of(it, path):
            if not {"low", "high", "text"} & set(each):
                yield _error("must have low, high or a text (obs-3)", f"{at}.{place}")


def _codes(concept: Mapping[str, Any]) -> set[tuple[str, str]]:
    codings = concept.get("coding", ())
    return {(each.get("system", ""), each["code"]) for each in codings if "code" in each}


def _error(rule: str, at: str) -> Issue:
    return Issue("error", "exception", rule, at)
