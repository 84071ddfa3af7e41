"""A body of another form is named as what it is; documents behind new ones are compared too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import BrokenRule, InvalidContent
from fhirpub.interactions.patch_formats import Form
from tests.unit.interactions.patches import (
    HASH_STAYS,
    KEPT,
    REPORT,
    divided,
    fields,
    issues,
    merge,
)


@pytest.mark.parametrize(
    ("form", "content", "words"),
    [
        ("fhir", [], "a JSON Patch has the Content-Type application/json-patch+json"),
        ("fhir", {"resourceType": "Patient"}, "is a Patient"),
        ("merge-patch", [], "a JSON Patch has the Content-Type application/json-patch+json"),
        ("merge-patch", {"resourceType": "Patient"}, "is a Patient"),
        ("json-patch", {"op": "add"}, "a JSON Patch is an array, also of one operation"),
        ("json-patch", {"resourceType": "Patient"}, "is a Patient"),
    ],
)
def test_a_body_of_another_form_is_named_as_what_it_is(
    form: Form, content: Any, words: str
) -> None:
    with pytest.raises(InvalidContent) as refused:
        fields(form, content)

    ((_place, _problem, said),) = issues(refused)
    assert words in said


def test_a_document_behind_a_new_one_is_compared_with_those_that_are_kept() -> None:
    with pytest.raises(BrokenRule) as refused:
        merge(presentedForm=[{"title": "New"}, {"data": KEPT, "hash": "x"}])

    assert issues(refused) == [divided(HASH_STAYS, ".presentedForm[1].hash")]


DOCUMENTS = replace(
    REPORT, attachments=("content.attachment",), updatable=frozenset({"content", "status"})
)


@pytest.mark.parametrize("form", ["fhir", "merge-patch"])
def test_extensions_beside_what_holds_documents_cannot_be_updated(form: Form) -> None:
    content = {"resourceType": "DiagnosticReport", "status": "final", "_content": [{"id": "x"}]}

    found = fields(form, content, of=DOCUMENTS)

    assert [issue.expression for issue in found.refused] == ["DiagnosticReport.content"]
    assert "_content" not in found.names


@pytest.mark.parametrize("value", [False, 0, "", []])
def test_a_merge_patch_sets_what_counts_as_nothing_elsewhere(value: object) -> None:
    found = fields("merge-patch", {"status": value})

    assert found.values == {"status": value}
