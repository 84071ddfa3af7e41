"""What observations are searched by, alone and as the results of reports."""

from __future__ import annotations

from fhirpub.plugin_api import r4_composite, r4_parameter

USUAL = (
    r4_parameter("Observation-category", "token", "category"),
    r4_parameter("clinical-code", "token", "code"),
    r4_parameter(
        "clinical-date",
        "date",
        "effectiveDateTime",
        "effectiveInstant",
        "effectivePeriod",
        "effectiveTiming",
    ),
    r4_parameter("Observation-subject", "reference", "subject"),
    r4_parameter("Observation-performer", "reference", "performer"),
)
"""What an observation is about."""
VALUES = (
    r4_parameter("Observation-value-concept", "token", "valueCodeableConcept"),
    r4_parameter("Observation-value-date", "date", "valueDateTime", "valuePeriod"),
    r4_parameter("Observation-value-quantity", "quantity", "valueQuantity"),
    r4_parameter("Observation-value-string", "string", "valueString", "valueCodeableConcept.text"),
    r4_composite("Observation-code-value-concept", "code", "value-concept"),
    r4_composite("Observation-code-value-date", "code", "value-date"),
    r4_composite("Observation-code-value-quantity", "code", "value-quantity"),
    r4_composite("Observation-code-value-string", "code", "value-string"),
    r4_parameter("Observation-component-code", "token", "component.code"),
    r4_parameter("Observation-component-value-concept", "token", "component.valueCodeableConcept"),
    r4_parameter("Observation-component-value-quantity", "quantity", "component.valueQuantity"),
    r4_composite(
        "Observation-component-code-value-concept", "component-code", "component-value-concept"
    ),
    r4_composite(
        "Observation-component-code-value-quantity",
        "component-code",
        "component-value-quantity",
    ),
    r4_parameter("Observation-combo-code", "token", "code", "component.code"),
    r4_parameter(
        "Observation-combo-value-concept",
        "token",
        "valueCodeableConcept",
        "component.valueCodeableConcept",
    ),
    r4_parameter(
        "Observation-combo-value-quantity",
        "quantity",
        "valueQuantity",
        "component.valueQuantity",
    ),
    r4_composite("Observation-combo-code-value-concept", "combo-code", "combo-value-concept"),
    r4_composite("Observation-combo-code-value-quantity", "combo-code", "combo-value-quantity"),
)
"""What was measured or found, alone and together with its code."""
