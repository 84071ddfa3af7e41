"""Results that are found by texts, and by two values of one element (R4 search, composite)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from fhirpub.testing.service import Integrator
from tests.panels import LOINC, addresses, panel, result

UCUM = "http://unitsofmeasure.org"
LOCAL = "https://lab.example/codes"
SEARCH = "/fhir/r4/Observation"


def concept(code: str, system: str = LOINC, **more: Any) -> dict[str, Any]:
    return {"coding": [{"system": system, "code": code}], **more}


def quantity(value: float, unit: str = "mm[Hg]") -> dict[str, Any]:
    return {"value": value, "unit": unit, "system": UCUM, "code": unit}


def component(code: dict[str, Any], **value: Any) -> dict[str, Any]:
    return {"code": code, **value}


SYSTOLIC, DIASTOLIC = concept("8480-6"), concept("8462-4")
VALUES: Mapping[str, dict[str, Any]] = {
    "a": {"code": concept("2823-3"), "valueQuantity": quantity(5.4, "mmol/L")},
    "b": {
        "code": {"coding": [{"system": LOCAL, "code": "K"}, *concept("2823-3")["coding"]]},
        "valueQuantity": quantity(6100, "umol/L"),
    },
    "c": {"code": concept("2823-3", LOCAL), "valueQuantity": quantity(6.2, "mmol/L")},
    "d": {
        "code": concept("85354-9"),
        "valueQuantity": None,
        "component": [
            component(SYSTOLIC, valueQuantity=quantity(150)),
            component(DIASTOLIC, valueQuantity=quantity(95)),
        ],
    },
    "e": {
        "code": concept("85354-9"),
        "valueQuantity": None,
        "component": [
            component(SYSTOLIC, valueQuantity=quantity(120)),
            component(DIASTOLIC, valueQuantity=quantity(80)),
            component(concept("8480-6", LOCAL), valueQuantity=quantity(20, "kPa")),
        ],
    },
    "f": {
        "code": concept("600-7"),
        "valueQuantity": None,
        "valueCodeableConcept": concept("112283007", "http://snomed.info/sct", text="E. coli"),
    },
    "g": {"code": concept("8251-1"), "valueQuantity": None, "valueString": "Levure Élevée, x$y"},
    "h": {
        "code": concept("8665-2"),
        "valueQuantity": None,
        "valueDateTime": "2026-03-02",
        "component": [component(concept("1"), valueCodeableConcept=concept("P", LOCAL))],
    },
    "i": {"code": concept("8251-1"), "valueQuantity": None, "valueString": "levure"},
    "j": {"code": {"text": "in words"}, "valueQuantity": quantity(5.4, "mmol/L")},
}


@pytest.fixture
def names(lab: Integrator) -> dict[str, str]:
    """The ids of results with these values, each with its name."""
    entries = [result(name, **value) for name, value in VALUES.items()]
    answer = lab.register(panel("R-1", *entries))
    ids = [address.partition("/")[2] for address in addresses(answer)]
    return dict(zip(ids, VALUES, strict=True))


def found(lab: Integrator, names: dict[str, str], query: str) -> str:
    answer = lab.get(f"{SEARCH}?{query}", Prefer="handling=strict")
    assert answer.status == 200, answer.body
    entries = answer.json.get("entry", ())
    assert answer.json["total"] == len(entries)
    return "".join(sorted(names[entry["resource"]["id"]] for entry in entries))


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ("code-value-quantity", f"{LOINC}|2823-3$gt5.4|{UCUM}|mmol/L", "b"),
        ("code-value-quantity", f"{LOINC}|2823-3$5.4|{UCUM}|mmol/L", "a"),
        ("code-value-quantity", f"{LOINC}|2823-3$5400|{UCUM}|umol/L", "a"),
        ("code-value-quantity", "2823-3$gt6", "bc"),
        ("code-value-quantity", f"2823-3$gt6|{UCUM}|mmol/L", "bc"),
        ("code-value-quantity", f"{LOCAL}|2823-3$gt6", "c"),
        ("code-value-quantity", f"{LOCAL}|K$6.1|{UCUM}|mmol/L", "b"),
        ("code-value-quantity", "2823-3$gt6||umol/L", "b"),
        ("code-value-quantity", "2823-3$gt6||mmol/L", "c"),
        ("code-value-quantity", "|2823-3$gt6", ""),
        ("code-value-quantity", f"{LOCAL}|K$6100,{LOCAL}|2823-3$6.2", "bc"),
        ("code-value-quantity", "8480-6$gt100", ""),
        ("component-code", "8480-6", "de"),
        ("component-value-quantity", f"gt140|{UCUM}|mm[Hg]", "de"),
        ("component-value-quantity", "gt140", "d"),
        ("component-value-quantity", "20||mm[Hg]", ""),
        ("component-value-quantity", "20||kPa", "e"),
        ("component-code-value-quantity", f"{LOINC}|8480-6$gt140|{UCUM}|mm[Hg]", "d"),
        ("component-code-value-quantity", f"8480-6$gt140|{UCUM}|mm[Hg]", "de"),
        ("component-code-value-quantity", "8480-6$95", ""),
        ("component-code-value-quantity", "8480-6$20||mm[Hg]", ""),
        ("component-code-value-quantity", f"{LOCAL}|8480-6$20||kPa", "e"),
        ("component-code-value-quantity", f"{LOINC}|8480-6$20", ""),
        ("component-code-value-quantity", "8462-4$80,8480-6$150", "de"),
        ("combo-code", "2823-3,8480-6", "abcde"),
        ("combo-code:not", "2823-3,8480-6", "fghij"),
        ("combo-code:missing", "true", ""),
        ("combo-value-quantity", "gt100", "bde"),
        ("combo-value-quantity", f"5.4|{UCUM}|mmol/L", "aj"),
        ("combo-value-quantity", "ge20||mm[Hg]", "de"),
        ("combo-value-quantity:missing", "true", "fghi"),
        ("combo-code-value-quantity", "8480-6$150,2823-3$5.4", "ad"),
        ("combo-code-value-quantity", f"{LOINC}|8480-6$150|{UCUM}|mm[Hg]", "d"),
        ("combo-value-concept", "112283007,P", "fh"),
        ("value-concept", "112283007", "f"),
        ("code-value-concept", f"{LOINC}|600-7$112283007", "f"),
        ("code-value-concept", "600-7$http://snomed.info/sct|112283007", "f"),
        ("code-value-concept", "600-7$http://snomed.info/sct|1", ""),
        ("code-value-concept", "1$P", ""),
        ("component-code-value-concept", f"1${LOCAL}|P", "h"),
        ("combo-code-value-concept", f"{LOINC}|1$P,600-7$112283007", "fh"),
        ("value-date", "2026-03", "h"),
        ("code-value-date", "8665-2$2026-03", "h"),
        ("code-value-date", f"{LOINC}|8665-2$ge2026-03-03", ""),
        ("value-string", "levure", "gi"),
        ("value-string", "e. c", "f"),
        ("value-string:contains", "evee", "g"),
        ("value-string:contains", "COLI", "f"),
        ("value-string:exact", "levure", "i"),
        ("value-string:exact", "Levure", ""),
        ("value-string:exact", "Levure Élevée\\, x\\$y", "g"),
        ("value-string:missing", "true", "abcdehj"),
        ("code-value-string", "8251-1$levure", "gi"),
        ("code-value-string", f"{LOINC}|8251-1$levure e", "g"),
        ("code-value-string", f"{LOCAL}|8251-1$levure", ""),
        ("code-value-string", "600-7$e. coli", ""),
    ],
)
def test_values_of_one_element_are_compared(
    lab: Integrator, names: dict[str, str], parameter: str, value: str, expected: str
) -> None:
    assert found(lab, names, f"{parameter}={quote(value)}") == expected


def test_results_are_sorted_by_texts(lab: Integrator, names: dict[str, str]) -> None:
    answer = lab.get(f"{SEARCH}?value-string:missing=false&_sort=-value-string")

    seen = [names[entry["resource"]["id"]] for entry in answer.json["entry"]]
    assert seen == ["g", "i", "f"]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("code-value-quantity", "718-7"),
        ("code-value-quantity", "718-7$"),
        ("code-value-quantity", "$5"),
        ("code-value-quantity", "718-7$x"),
        ("code-value-quantity", "718-7$5$6"),
        ("code-value-quantity", f"{LOINC}|$5"),
        ("code-value-quantity", "718-7$1e9999"),
        ("code-value-quantity", "718-7$" + "9" * 500),
        ("code-value-quantity:exact", "718-7$5"),
        ("code-value-date", "718-7$yesterday"),
        ("code-value-string", "718-7$%CC%81"),
        ("component-value-quantity", "5|g"),
        ("value-string:exact", "%CC%81"),
        ("value-string:above", "x"),
        ("combo-code:exact", "x"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_its_place(
    lab: Integrator, parameter: str, value: str
) -> None:
    answer = lab.get(f"{SEARCH}?{parameter}={value}")

    assert answer.status == 400
    assert answer.issues[0]["expression"] == [parameter.partition(":")[0]]


def test_a_composite_of_many_pairs_is_too_costly(lab: Integrator) -> None:
    pairs = ",".join(f"{number}$gt5|{UCUM}|g" for number in range(60))

    answer = lab.get(f"{SEARCH}?combo-code-value-quantity={quote(pairs)}")

    assert answer.status == 422
    assert answer.issues[0]["code"] == "too-costly"


def test_thousands_of_components_are_refused(lab: Integrator) -> None:
    many = [component(concept(str(number)), valueQuantity=quantity(1)) for number in range(2_000)]

    answer = lab.register(panel("R-2", result("x", component=many)))

    assert answer.status == 413
    assert "search values" in str(answer.json)
