"""FHIR's rules between elements that no schema can express: those of a Range."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fhirpub.fhir.invariants import broken_invariants
from fhirpub.plugin_api import Entry

MG = {"unit": "mg", "system": "http://unitsofmeasure.org", "code": "mg"}


def places(resource: dict[str, Any]) -> list[str]:
    entry = Entry(resource, "Observation")
    found = broken_invariants(resource, entry.rule_targets, entry.place_of, ())
    return [issue.expression for issue in found]


def limits(low: Any, high: Any) -> dict[str, Any]:
    return {"low": {"value": low}, "high": {"value": high}}


@pytest.mark.parametrize(
    ("low", "high"), [(5, 1), (Decimal("1.10"), 1.05), (-1, Decimal("-1.5")), (1, -1)]
)
def test_the_low_of_a_range_is_not_more_than_its_high(low: Any, high: Any) -> None:
    assert places({"valueRange": limits(low, high)}) == ["valueRange"]
    assert places({"valueRange": limits(high, low)}) == []
    assert places({"valueRange": limits(low, low)}) == []


def test_a_range_is_found_wherever_it_stands() -> None:
    contained = {"resourceType": "Goal", "target": [{"detailRange": limits(5, 1)}]}
    extension = {"url": "https://lab.example/x", "valueRange": limits(5, 1)}

    found = places({"referenceRange": [{"age": limits(5, 1)}], "contained": [contained]})
    assert {*found} >= {"referenceRange[0].age", "contained[0].target[0].detailRange"}
    assert places({"extension": [extension]}) == ["extension[0].valueRange"]


def test_a_reference_range_is_no_range() -> None:
    assert places({"referenceRange": [limits(5, 1)]}) == []
    assert places({"component": [{"referenceRange": [limits(5, 1)]}]}) == []


@pytest.mark.parametrize(
    "change", [{"unit": "g"}, {"code": "g"}, {"system": "urn:x"}, {"value": "1"}, {"value": True}]
)
def test_only_numbers_of_the_same_unit_are_compared(change: dict[str, Any]) -> None:
    low, high = {"value": 5, **MG}, {"value": 1, **MG}

    assert places({"valueRange": {"low": low, "high": high}}) == ["valueRange"]
    assert places({"valueRange": {"low": low, "high": {**high, **change}}}) == []


@pytest.mark.parametrize("high", [None, [], "x", {}])
def test_a_range_without_both_limits_breaks_no_rule(high: Any) -> None:
    assert places({"valueRange": {"low": {"value": 5}, "high": high}}) == []
    assert places({"valueRange": {"high": {"value": 5}}}) == []
