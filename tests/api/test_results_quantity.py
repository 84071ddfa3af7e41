"""Results that are found by their numbers (R4 search, quantity)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fhirpub.testing.service import Integrator
from tests.panels import addresses, panel, result

UCUM = "http://unitsofmeasure.org"
SEARCH = "/fhir/r4/Observation"


def quantity(value: Any, unit: str = "g/dL", **changes: Any) -> dict[str, Any]:
    found = {"value": value, "unit": unit, "system": UCUM, "code": unit} | changes
    return {name: item for name, item in found.items() if item is not None}


VALUES: Mapping[str, dict[str, Any]] = {
    "a": quantity(13.2),
    "b": quantity(13.24),
    "c": quantity(14),
    "d": quantity(-3.5, "mmol/L"),
    "e": quantity(14, "g/L"),
    "f": quantity(5, "mg/L", comparator="<"),
    "g": quantity(7, unit="cells", system=None, code=None),
    "h": quantity(None),
}


@pytest.fixture
def names(lab: Integrator) -> dict[str, str]:
    """The ids of results with these values, each with its name."""
    entries = [result(name, valueQuantity=value) for name, value in VALUES.items()]
    answer = lab.register(panel("R-1", *entries))
    ids = [address.partition("/")[2] for address in addresses(answer)]
    return dict(zip(ids, VALUES, strict=True))


def found(lab: Integrator, names: dict[str, str], query: str) -> str:
    answer = lab.get(f"{SEARCH}?{query}", Prefer="handling=strict")
    assert answer.status == 200, answer.body
    return "".join(names[entry["resource"]["id"]] for entry in answer.json.get("entry", ()))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("13.2", "ab"),
        ("13.20", "a"),
        ("14", "ce"),
        ("gt13.2", "bce"),
        ("ge13.2", "abce"),
        ("lt0", "df"),  # what is below 5 may be below 0
        ("le-3.5", "df"),
        ("eb-3.5", ""),
        ("sa13.2", "bce"),
        ("ap13", "abce"),
        ("ne14", "abdfg"),
        (f"14|{UCUM}|g/dL", "c"),
        ("14||g/L", "e"),
        ("14||", "ce"),
        (f"gt10|{UCUM}|g/dL", "abc"),
        (f"14|{UCUM}|g/L", "e"),
        (f"132.0|{UCUM}|g/L", "a"),
        (f"132|{UCUM}|g/L", "ab"),
        (f"0.132|{UCUM}|kg/L", "ab"),
        (f"gt13.3|{UCUM}|g/L", "abce"),
        (f"13.20|{UCUM}|g/dL,-3.5|{UCUM}|mmol/L,7||cells", "adg"),
        (f"lt10|{UCUM}|mg/L", "f"),
        ("7||cells", "g"),
        (f"7|{UCUM}|cells", ""),
        ("13.20,14", "ace"),
        (f"13.20|{UCUM}|g/dL,14|{UCUM}|g/dL", "ac"),
    ],
)
def test_numbers_are_compared(
    lab: Integrator, names: dict[str, str], value: str, expected: str
) -> None:
    assert "".join(sorted(found(lab, names, f"value-quantity={value}"))) == expected


def test_two_conditions_make_a_range(lab: Integrator, names: dict[str, str]) -> None:
    query = f"value-quantity=ge13.2|{UCUM}|g/dL&value-quantity=lt14|{UCUM}|g/dL"

    assert "".join(sorted(found(lab, names, query))) == "ab"


def test_what_has_no_number_is_missing(lab: Integrator, names: dict[str, str]) -> None:
    assert "h" in found(lab, names, "value-quantity:missing=false")
    assert found(lab, names, "value-quantity:missing=true") == ""


def test_results_are_sorted_by_their_numbers(lab: Integrator, names: dict[str, str]) -> None:
    query = f"value-quantity=gt2|{UCUM}|g/dL&_sort=-value-quantity"

    assert found(lab, names, query) == "cba"


@pytest.mark.parametrize("value", ["x", "gt", "5|", "5|g/dL", "5|s|", "5|a|b|c"])
def test_what_is_no_quantity_is_refused(lab: Integrator, value: str) -> None:
    answer = lab.get(f"{SEARCH}?value-quantity={value}")

    assert answer.status == 400
    assert answer.issues[0]["expression"] == ["value-quantity"]


def test_a_modifier_is_refused(lab: Integrator) -> None:
    assert lab.get(f"{SEARCH}?value-quantity:exact=5").status == 400
