"""Resources of types without a schema are checked against the element tables of R4."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.element_check import element_problems
from fhirpub.fhir.schema import Schemas, own_schemas
from fhirpub.fhir.strict_json import loads
from fhirpub.fhir.xml.writer import write_xml
from tests.unit.fhir.xml.test_writer_refusals import INEXPRESSIBLE, SPECIMEN

NOT_R4: dict[str, tuple[dict[str, Any], str]] = {
    "a day that there is not": ({"receivedTime": "2024-02-30"}, "receivedTime"),
    "a form of a choice": ({"collection": {"collectedDateTime": "noon"}}, "collection.collected"),
    "two forms of a choice": (
        {"collection": {"collectedDateTime": "2024", "collectedPeriod": {"start": "2024"}}},
        "collection.collected",
    ),
    "a blank in a uri": ({"type": {"coding": [{"system": "a b"}]}}, "type.coding[0].system"),
    "one of many": (
        {"identifier": [{"value": "a"}, {"system": "a b"}]},
        "identifier[1].system",
    ),
    "base64 that is none": (
        {"extension": [{"url": "u", "valueBase64Binary": "QQ"}]},
        "extension[0].value",
    ),
    "an id alone": ({"type": {"id": "a"}}, "type"),
    "an id alone beside a text": ({"_receivedTime": {"id": "a"}}, "receivedTime"),
    "an extension of no address": (
        {"note": [{"text": "a", "extension": [{"valueString": "a"}]}]},
        "note[0].extension[0]",
    ),
    "an extension whose address is none": (
        {"note": [{"text": "a", "extension": [{"url": "a b", "valueString": "a"}]}]},
        "note[0].extension[0]",
    ),
    "what is required": ({"note": [{"time": "2024"}]}, "note[0].text"),
    "what a resource requires": (
        {"contained": [{"resourceType": "Media", "status": "completed"}]},
        "contained[0].content",
    ),
}


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return own_schemas()


@pytest.mark.parametrize("case", NOT_R4)
def test_values_and_counts_that_xml_can_express_are_checked(case: str, schemas: Schemas) -> None:
    change, place = NOT_R4[case]

    written = write_xml({**SPECIMEN, **change})
    found = problems({**SPECIMEN, **change}, schemas)

    assert (written[-11:], found) == (b"</Specimen>", [place])


@pytest.mark.parametrize(
    "case", sorted(INEXPRESSIBLE.keys() - {"a character that XML does not have"})
)
def test_what_xml_cannot_express_is_a_problem_at_the_same_place(
    case: str, schemas: Schemas
) -> None:
    change, place = INEXPRESSIBLE[case]

    assert place in problems({**SPECIMEN, **change}, schemas)


def test_all_problems_are_found_at_once(schemas: Schemas) -> None:
    change = {
        "status": 1,
        "receivedTime": "noon",
        "note": [{"time": "2024"}],
        "type": {"coding": [{"code": "a"}, {"system": "a b"}]},
    }

    found = problems({**SPECIMEN, **change}, schemas)

    assert found == ["status", "receivedTime", "note[0].text", "type.coding[1].system"]


def test_each_element_that_is_missing_is_named(schemas: Schemas) -> None:
    media = {"resourceType": "Media", "note": [{"time": "2024"}]}

    assert problems(media, schemas) == ["content", "status", "note[0].text"]


def test_beside_an_unknown_element_all_other_problems_are_found(schemas: Schemas) -> None:
    change = {"colour": "red", "status": 1, "note": [{"time": "2024", "author": "a"}]}

    found = problems({**SPECIMEN, **change}, schemas)

    assert found == ["", "status", "note[0]", "note[0].text"]


def test_siblings_behind_the_last_value_are_checked(schemas: Schemas) -> None:
    name = {"given": ["Ana"], "_given": [None, {"id": "a"}, {"extension": [{"url": "a b"}]}]}
    patient = {"resourceType": "Patient", "name": [name]}

    assert problems(patient, schemas) == ["name[0].given[1]", "name[0].given[2].extension[0]"]


def test_values_behind_the_last_sibling_are_checked(schemas: Schemas) -> None:
    name = {"given": ["Ana", 5], "_given": [{"id": "a"}]}

    assert problems({"resourceType": "Patient", "name": [name]}, schemas) == ["name[0].given[1]"]


def test_a_resource_of_each_kind_of_element_has_no_problem(schemas: Schemas) -> None:
    assert problems(SPECIMEN, schemas) == []


def test_what_stands_beside_values_that_are_absent_is_checked(schemas: Schemas) -> None:
    patient = {"resourceType": "Patient", "name": [{"_given": [None, {"id": "a"}]}]}

    found = problems(patient, schemas)

    assert found == ["name[0].given[0]", "name[0].given[1]"]


def problems(resource: dict[str, Any], schemas: Schemas) -> list[str]:
    found = element_problems(resource, is_of_type=schemas.accepts_primitive)
    return [issue.expression for issue in found]


@pytest.mark.parametrize(
    "change",
    [
        {"_receivedTime": {"id": "a"}},
        {"extension": [{"id": "a", "url": "urn:x", "valueDecimal": 1.5}]},
        {"extension": [{"url": "urn:x", "valueDecimal": loads(b"1.50")}]},
        {"extension": [{"url": "urn:x", "valueDecimal": 2}]},
        {"extension": [{"url": "urn:x", "valueBoolean": False}]},
        {"extension": [{"url": "urn:x", "valueInteger": 0}]},
        {"type": {"id": "a", "text": "blood"}},
        {"note": [{"text": "a", "_text": {"id": "b"}}]},
    ],
)
def test_what_r4_allows_is_no_problem(change: dict[str, Any], schemas: Schemas) -> None:
    specimen = {**SPECIMEN, "receivedTime": "2026-11-20T10:05:00Z", **change}

    assert problems(specimen, schemas) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"valueDecimal": "1.5"}, "must be a valid decimal"),
        ({"valueDecimal": True}, "must be a valid decimal"),
        ({"valueInteger": 1.0}, "must be a valid integer"),
        ({"valueInteger": True}, "must be a valid integer"),
        ({"valueBoolean": "true"}, "must be a valid boolean"),
        ({"valueString": 5}, "must be a valid string"),
    ],
)
def test_a_value_has_the_type_of_json_that_its_element_has(
    value: dict[str, Any], said: str, schemas: Schemas
) -> None:
    extension = {"url": "urn:x", **value}

    assert words({**SPECIMEN, "extension": [extension]}, schemas) == [("extension[0].value", said)]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"type": {"id": 5, "text": "blood"}}, "type"),
        ({"extension": [{"id": 5, "url": "urn:x", "valueCode": "a"}]}, "extension[0]"),
    ],
)
def test_an_id_is_a_string(change: dict[str, Any], place: str, schemas: Schemas) -> None:
    found = words({**SPECIMEN, **change}, schemas)

    assert found == [(place, "has an id that is no string")]


def test_an_element_that_may_repeat_is_shown_as_an_array(schemas: Schemas) -> None:
    [(place, said)] = words({**SPECIMEN, "note": {"text": "a"}}, schemas)

    assert place == "note"
    assert said.startswith("must be an array, because it may repeat")
    assert "[" in said


def words(resource: dict[str, Any], schemas: Schemas) -> list[tuple[str, str]]:
    found = element_problems(resource, is_of_type=schemas.accepts_primitive)
    return [(issue.expression, issue.diagnostics) for issue in found]
