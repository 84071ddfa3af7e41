"""Parts of a resource: what a summary keeps, what elements keep, and what never goes."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import InvalidSearch
from fhirpub.fhir.schema import own_schemas
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.summary import check_subset, is_subset, subset

SCHEMA: dict[str, Any] = {
    "title": "Thing",
    "x-mandatory": ["code"],
    "x-modifier": ["doNot"],
    "x-summary": ["code", "status", "part", "other"],
    "$defs": {"Thing.part": {"x-summary": ["name"]}},
}
RESOURCE: JsonObject = {
    "resourceType": "Thing",
    "id": "1",
    "meta": {"versionId": "1"},
    "text": {"div": "a"},
    "doNot": True,
    "status": "b",
    "_status": {"id": "c"},
    "code": {"text": "d"},
    "part": [{"name": "e", "_name": {"id": "f"}, "more": "g"}, {"more": "h"}],
    "note": "i",
}
ALWAYS = ["resourceType", "id", "meta", "doNot", "code"]


def part(summary: str = "", elements: str = "") -> JsonObject:
    return subset(RESOURCE, SCHEMA, summary=summary, elements=elements)


def names(found: JsonObject) -> set[str]:
    return {*found}


def test_a_summary_keeps_what_is_one_and_what_is_mandatory() -> None:
    assert names(part("true")) == {*ALWAYS, "status", "_status", "part"}


def test_a_summary_is_one_of_nested_elements_too() -> None:
    assert part("true")["part"] == [{"name": "e", "_name": {"id": "f"}}]


def test_a_nested_element_without_any_summary_is_left_out() -> None:
    resource = {**RESOURCE, "part": [{"more": "h"}]}

    assert "part" not in subset(resource, SCHEMA, summary="true", elements="")


def test_the_text_alone_keeps_what_is_mandatory() -> None:
    assert names(part("text")) == {*ALWAYS, "text"}


def test_the_data_are_all_but_the_text() -> None:
    assert names(part("data")) == {*RESOURCE} - {"text"}


def test_elements_are_kept_with_what_stands_beside_them() -> None:
    assert names(part(elements="status, note")) == {*ALWAYS, "status", "_status", "note"}


def test_elements_keep_nested_elements_whole() -> None:
    assert part(elements="part")["part"] == RESOURCE["part"]


def test_a_part_of_a_resource_is_tagged_as_such() -> None:
    for found in (part("true"), part("text"), part("data"), part(elements="note")):
        assert found["meta"]["versionId"] == "1"
        assert [tag["code"] for tag in found["meta"]["tag"]] == ["SUBSETTED"]
    assert RESOURCE["meta"] == {"versionId": "1"}


def test_contained_resources_go_along_if_they_are_led_to() -> None:
    kept = {"resourceType": "Patient", "id": "p"}
    resource = {**RESOURCE, "contained": [kept, {**kept, "id": "q"}], "note": {"reference": "#p"}}

    assert subset(resource, SCHEMA, summary="", elements="note")["contained"] == [kept]
    assert "contained" not in subset(resource, SCHEMA, summary="text", elements="")


@pytest.mark.parametrize("summary", ["", "false"])
def test_the_whole_is_no_subset(summary: str) -> None:
    check_subset(summary, "")
    check_subset(summary, "id")
    assert not is_subset(summary, "")
    assert is_subset(summary, "id")


@pytest.mark.parametrize("summary", ["true", "text", "data"])
def test_a_summary_cannot_go_with_elements(summary: str) -> None:
    check_subset(summary, "")
    assert is_subset(summary, "")
    with pytest.raises(InvalidSearch) as refused:
        part(summary, "id")

    [issue] = refused.value.issues
    assert (issue.expression, issue.diagnostics) == ("_summary", "cannot go with _elements")


@pytest.mark.parametrize("summary", ["count", "TRUE", "yes", " "])
def test_a_summary_that_there_is_not_is_refused(summary: str) -> None:
    with pytest.raises(InvalidSearch) as refused:
        check_subset(summary, "")

    [issue] = refused.value.issues
    assert issue.diagnostics == "must be true, text, data or false"


@pytest.mark.parametrize("asked", ["value", "value[x]", " value[x] ,note"])
def test_a_choice_is_named_with_or_without_its_brackets(asked: str) -> None:
    schema = own_schemas().document("Observation")
    resource = {"resourceType": "Observation", "valueString": "a", "status": "final"}
    resource |= {"effectiveDateTime": "2026", "issued": "x"}

    found = subset(
        resource | {"id": "1", "meta": {"versionId": "1"}}, schema, summary="", elements=asked
    )

    assert "valueString" in found
    assert "effectiveDateTime" not in found


@pytest.mark.parametrize(
    ("summary", "elements", "is_kept"),
    [("data", "", True), ("true", "", True), ("", "other", True), ("text", "", False)],
)
def test_an_element_with_extensions_alone_is_kept_as_its_value_would_be(
    summary: str, elements: str, *, is_kept: bool
) -> None:
    resource = {**RESOURCE, "_other": {"id": "j"}}

    found = subset(resource, SCHEMA, summary=summary, elements=elements)

    assert ("_other" in found) is is_kept
