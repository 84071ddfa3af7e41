"""Elements of FHIR as texts for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fhirpub_summary.page import text_of

_FLAGS = {
    "H": "high",
    "HH": "critically high",
    "L": "low",
    "LL": "critically low",
    "A": "abnormal",
    "AA": "critically abnormal",
    "N": "normal",
    "POS": "positive",
    "NEG": "negative",
    "R": "resistant",
    "S": "susceptible",
    "I": "intermediate",
}


def label_of(concept: Any) -> str:
    """Return what a CodeableConcept is called: its text, or else a display or a code."""
    if not isinstance(concept, Mapping):
        return ""
    codings = [one for one in concept.get("coding", ()) if isinstance(one, Mapping)]
    names = [text_of(one.get("display")) or text_of(one.get("code")) for one in codings]
    return text_of(concept.get("text")) or next(filter(None, names), "")


def name_of(resource: Mapping[str, Any]) -> str:
    """Return the name of a person or an organization."""
    name = resource.get("name")
    if not isinstance(name, list):
        return text_of(name)
    first = next((one for one in name if isinstance(one, Mapping)), {})
    words = [*first.get("given", ()), first.get("family")]
    return text_of(first.get("text")) or " ".join(filter(None, map(text_of, words)))


def value_of(result: Mapping[str, Any]) -> str:
    """Return the value of a result, whatever its type, or why there is none."""
    for name, value in result.items():
        if name.startswith("value"):
            return _value(value)
    absent = label_of(result.get("dataAbsentReason"))
    return f"no value: {absent}" if absent else ""


def flag_of(result: Mapping[str, Any]) -> str:
    """Return the interpretation of a value by the laboratory."""
    flags = []
    for concept in result.get("interpretation", ()):
        codes = [text_of(one.get("code")) for one in concept.get("coding", ())]
        known = next((f"{_FLAGS[code]} ({code})" for code in codes if code in _FLAGS), "")
        flags.append(known or label_of(concept))
    return ", ".join(filter(None, flags))


def range_of(result: Mapping[str, Any]) -> str:
    """Return the reference ranges of a result."""
    found = []
    for one in result.get("referenceRange", ()):
        low, high = _value(one.get("low", "")), _value(one.get("high", ""))
        between = f"{low} to {high}" if low and high else (low and f"from {low}")
        span = text_of(one.get("text")) or between or (high and f"up to {high}")
        kind = label_of(one.get("type"))
        found.append(f"{span} ({kind})" if kind else span)
    return "; ".join(filter(None, found))


def _value(value: Any) -> str:
    if not isinstance(value, Mapping):
        return {True: "yes", False: "no"}[value] if isinstance(value, bool) else text_of(value)
    if "numerator" in value or "denominator" in value:
        return f"{_value(value.get('numerator', ''))} : {_value(value.get('denominator', ''))}"
    if "low" in value or "high" in value:
        return f"{_value(value.get('low', ''))} to {_value(value.get('high', ''))}"
    if "start" in value or "end" in value:
        return f"{text_of(value.get('start'))} to {text_of(value.get('end'))}"
    if "value" in value:
        unit = text_of(value.get("unit")) or text_of(value.get("code"))
        return f"{text_of(value.get('comparator'))}{text_of(value['value'])} {unit}".strip()
    return label_of(value)
