"""The searches by values in the guides, each of them tried."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import organization, parameters, patient
from tests.compositions import encounter, practitioner
from tests.docs.guide import TEXT
from tests.panels import LOINC, panel, result

UCUM, SNOMED = "http://unitsofmeasure.org", "http://snomed.info/sct"
PROTOCOL = "https://north-quay.example/protocols/anemia"
SEARCHES = re.findall(
    r"^\| `([A-Z]\w+\?.*?)` \|",
    TEXT.partition("#### By their values")[2].partition("\n## ")[0],
    re.MULTILINE,
) + re.findall(r"`(Encounter\?length=.*?)`", TEXT)


def coded(code: str, system: str = LOINC) -> dict[str, Any]:
    return {"coding": [{"system": system, "code": code}]}


def quantity(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "system": UCUM, "code": unit}


def pressure(systolic: float, diastolic: float) -> dict[str, Any]:
    values = (("8480-6", systolic), ("8462-4", diastolic))
    components = [
        {"code": coded(code), "valueQuantity": quantity(value, "mm[Hg]")} for code, value in values
    ]
    return {"code": coded("85354-9"), "component": components}


RESULTS: Mapping[str, dict[str, Any]] = {
    "low": {"code": coded("718-7"), "valueQuantity": quantity(13.2, "g/dL")},
    "high": {"code": coded("718-7"), "valueQuantity": quantity(15.1, "g/dL")},
    "other": {"code": coded("4544-3"), "valueQuantity": quantity(40, "%")},
    "raised": pressure(150, 80),
    "usual": pressure(120, 75),
    "coli": {"code": coded("600-7"), "valueCodeableConcept": coded("112283007", SNOMED)},
    "aureus": {"code": coded("600-7"), "valueCodeableConcept": coded("3092008", SNOMED)},
    "soon": {"code": coded("11778-8"), "valueDateTime": "2026-08-30"},
    "later": {"code": coded("11778-8"), "valueDateTime": "2026-09-02"},
    "comment": {"code": coded("8251-1"), "valueString": "Moderate growth of yeasts"},
    "yeast": {"code": coded("1"), "valueString": "Yeast"},
    "another": {"code": coded("8251-1"), "valueString": "No growth"},
}
MATCHES: Mapping[str, str] = {
    "code-value-quantity": "low",
    "component-code-value-quantity": "raised",
    "combo-code-value-quantity": "raised",
    "combo-value-quantity": "raised",
    "code-value-concept": "coli",
    "code-value-date": "later",
    "code-value-string": "comment",
    "value-string:contains": "comment",
    "value-string:exact": "yeast",
    "family:exact": "Ashdown",
    "instantiates-uri:below": PROTOCOL,
    "length": "E-1",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Integrator]:
    """A laboratory whose resources the searches of the guide find, and others."""
    enabled = ["diagnosticreport", "encounter"]
    config = Config(plugins=PluginsConfig(enabled=enabled))
    with RunningService(tmp_path_factory.mktemp("values"), config=config) as service:
        on = service.integrator()
        results = [
            result(name, **{"valueQuantity": None, **value}) for name, value in RESULTS.items()
        ]
        authors = [
            {"resourceType": "Practitioner", "id": f"d{number}", "name": [{"family": family}]}
            for number, family in enumerate(("Ashdown", "ASHDOWN", "Ashdown-Lee"))
        ]
        orders = [
            {
                "resourceType": "ServiceRequest",
                "id": f"s{number}",
                "status": "active",
                "intent": "order",
                "subject": {"reference": "Patient/p1"},
                "instantiatesUri": [uri],
            }
            for number, uri in enumerate((PROTOCOL, "https://north-quay.example/protocols2"))
        ]
        led_to = {
            "resultsInterpreter": [{"reference": f"Practitioner/{one['id']}"} for one in authors],
            "basedOn": [{"reference": f"ServiceRequest/{one['id']}"} for one in orders],
        }
        answer = on.register(panel("R-1", *results, *authors, *orders, **led_to))
        assert answer.status == 201, answer.body
        for name, minutes in (("E-1", 0.5), ("E-2", 0.75)):
            body = parameters(
                patient=patient(),
                practitioner=practitioner(),
                organization=organization(),
                encounter=encounter(name, length=quantity(minutes, "h")),
            )
            assert on.register(body, type_name="Encounter").status == 201
        yield on


def shown(resource: dict[str, Any]) -> Any:
    """Return by what a match is known here."""
    match resource["resourceType"]:
        case "Practitioner":
            return resource["name"][0]["family"]
        case "ServiceRequest":
            return resource["instantiatesUri"][0]
        case "Encounter":
            return resource["identifier"][0]["value"]
    return {key: item for key, item in resource.items() if key.startswith(("value", "component"))}


@pytest.mark.parametrize("search", SEARCHES, ids=lambda text: text.partition("=")[0])
def test_a_search_of_the_guide_finds_what_it_says(lab: Integrator, search: str) -> None:
    name = search.partition("?")[2].partition("=")[0]
    expected = MATCHES[name]
    wanted = RESULTS.get(expected, {})
    values = {key: one for key, one in wanted.items() if key != "code"}

    query = quote(search.replace("\\|", "|"), safe="?=&:")
    answer = lab.get(f"/fhir/r4/{query}", Prefer="handling=strict")

    assert answer.status == 200, answer.body
    found = [shown(entry["resource"]) for entry in answer.json["entry"]]
    assert found == [values or expected]


def test_every_search_of_the_guide_is_tried() -> None:
    assert {search.partition("?")[2].partition("=")[0] for search in SEARCHES} == {*MATCHES}
