"""Which fields a body names in each of its forms, and what they become."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import BrokenRule, InvalidContent
from fhirpub.interactions.patch_formats import FORMS, Form, fields_of
from fhirpub.problems import ContentProblem, OperationProblem
from tests.unit.interactions.patches import (
    CHOICE,
    FIELDS,
    before,
    fields,
    issues,
    merge,
    not_updatable,
    partial,
    put,
)


def test_each_media_type_has_one_form() -> None:
    assert FORMS == {
        "application/fhir+json": "fhir",
        "application/fhir+xml": "fhir",
        "application/merge-patch+json": "merge-patch",
        "application/json-patch+json": "json-patch",
    }


# All forms


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("fhir", {"resourceType": "DiagnosticReport"}),
        ("merge-patch", {}),
        ("merge-patch", {"resourceType": "DiagnosticReport"}),
        ("json-patch", []),
        ("json-patch", [put("/code", {"text": "Blood count"}, "test")]),
    ],
)
def test_a_body_that_names_no_field_is_refused_with_those_that_can_be(
    form: Form, content: Any
) -> None:
    with pytest.raises(InvalidContent) as refused:
        fields(form, content)

    assert issues(refused) == [
        (
            "DiagnosticReport",
            OperationProblem.UPDATE_EMPTY,
            f"names no field to update; fields that can: {FIELDS}",
        )
    ]


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("fhir", {"resourceType": "DiagnosticReport", "code": {}, "_issued": {}}),
        ("merge-patch", {"code": None, "_issued": {}}),
        ("json-patch", [put("/code/text", "x"), put("/_issued", {}, "add")]),
    ],
)
def test_fields_that_cannot_be_updated_are_refused_if_no_other_is_named(
    form: Form, content: Any
) -> None:
    with pytest.raises(BrokenRule) as refused:
        fields(form, content)

    assert issues(refused) == [not_updatable("code"), not_updatable("_issued", "issued")]


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("fhir", {"resourceType": "DiagnosticReport", "code": {}, "status": "amended"}),
        ("merge-patch", {"code": {}, "status": "amended"}),
        ("json-patch", [put("/code/text", "x"), put("/status", "amended")]),
    ],
)
def test_fields_that_cannot_be_updated_are_reported_beside_those_that_can(
    form: Form, content: Any
) -> None:
    found = fields(form, content)

    assert [issue.expression for issue in found.refused] == ["DiagnosticReport.code"]
    assert found.values == {"status": "amended"}
    assert "code" not in found.names


@pytest.mark.parametrize("name", ["a b", "é", "1a", "a" * 65, "x\u202ey", ""])
def test_a_name_that_fhir_cannot_have_is_not_repeated(name: str) -> None:
    with pytest.raises(BrokenRule) as refused:
        merge(**{name: 1})

    assert issues(refused) == [
        (
            "DiagnosticReport",
            OperationProblem.ELEMENT_NOT_UPDATABLE,
            f"(unknown) cannot be updated; fields that can: {FIELDS}",
        )
    ]


def test_a_name_of_64_characters_is_shown() -> None:
    with pytest.raises(BrokenRule) as refused:
        merge(**{"a" * 64: 1})

    assert issues(refused) == [not_updatable("a" * 64)]


def test_a_document_has_no_extensions_of_its_own() -> None:
    with pytest.raises(BrokenRule) as refused:
        merge(_presentedForm=[None])

    assert issues(refused) == [not_updatable("_presentedForm", "presentedForm")]


def test_a_field_takes_the_place_of_its_own_and_leaves_the_others() -> None:
    merged = partial(status="amended", conclusion="New").merge(before())

    untouched = {name: before()[name] for name in ("resourceType", "code", "presentedForm")}
    assert merged == {**untouched, "status": "amended", "conclusion": "New"}


# FHIR's own form


def test_a_field_is_replaced_with_its_extensions() -> None:
    found = partial(status="amended")

    assert found.names == {"status", "_status"}
    assert found.values == {"status": "amended"}


def test_extensions_come_beside_their_field() -> None:
    found = partial(status="amended", _status={"id": "t"})

    assert found.values == {"status": "amended", "_status": {"id": "t"}}


def test_extensions_without_their_field_are_refused() -> None:
    with pytest.raises(InvalidContent) as refused:
        partial(_status={"id": "t"}, _conclusion={"id": "c"}, code={})

    rule = "needs a value beside its extensions: a field is replaced whole"
    assert issues(refused) == [
        (f"DiagnosticReport.{name}", ContentProblem.ELEMENT_REQUIRED, rule)
        for name in ("status", "conclusion")
    ]


def test_a_choice_takes_the_place_of_its_other_types() -> None:
    stored = {**before(), "valueString": "x", "_valueString": {"id": "v"}, "valueless": 1}
    content = {"resourceType": "DiagnosticReport", "valueQuantity": {"value": 1}}

    found = fields_of("fhir", content, stored, CHOICE, most=0)

    assert found.names == {"valueQuantity", "valueString", "_valueString"}


@pytest.mark.parametrize("content", [None, [], "x", {}, {"resourceType": "Patient"}])
def test_a_body_that_is_no_report_is_of_another_form(content: Any) -> None:
    with pytest.raises(InvalidContent) as refused:
        fields("fhir", content)

    ((place, problem, said),) = issues(refused)
    assert (place, problem) == ("DiagnosticReport", OperationProblem.PATCH_OF_OTHER_FORM)
    assert "a DiagnosticReport with the fields to update" in said


# Merge patch


def test_null_takes_a_field_away() -> None:
    found = merge(conclusion=None)

    assert found.names == {"conclusion"}
    assert found.values == {}
    assert "conclusion" not in found.merge(before())


def test_a_merge_patch_may_name_the_type() -> None:
    assert merge(resourceType="DiagnosticReport", status="amended").names == {"status"}


def test_objects_are_merged_to_any_depth() -> None:
    stored = {**before(), "code": {"a": 1, "b": {"c": 2, "d": 3}, "e": [1]}}
    content = {"code": {"b": {"c": None, "f": {"g": None, "h": 4}}, "e": [2], "i": {}}}

    found = fields_of("merge-patch", content, stored, CHOICE, most=0)

    assert found.values == {"code": {"a": 1, "b": {"d": 3, "f": {"h": 4}}, "e": [2], "i": {}}}


def test_an_object_takes_the_place_of_what_is_none() -> None:
    stored = {**before(), "code": "x"}

    found = fields_of("merge-patch", {"code": {"a": None, "b": 1}}, stored, CHOICE, most=0)

    assert found.values == {"code": {"b": 1}}


def test_a_list_is_replaced_and_not_merged() -> None:
    found = merge(presentedForm=[{"title": "New"}])

    assert found.values == {"presentedForm": [{"title": "New"}]}


@pytest.mark.parametrize("content", [None, [], "x", {"resourceType": "Patient"}])
def test_a_body_that_is_no_merge_patch_is_of_another_form(content: Any) -> None:
    with pytest.raises(InvalidContent) as refused:
        fields("merge-patch", content)

    ((place, problem, said),) = issues(refused)
    assert (place, problem) == ("DiagnosticReport", OperationProblem.PATCH_OF_OTHER_FORM)
    assert "an object with the fields of a DiagnosticReport to update" in said
