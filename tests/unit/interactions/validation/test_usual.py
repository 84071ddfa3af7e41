"""What is plain enough for the short way: resources, attachments and references."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.document import Document
from fhirpub.interactions.validation.usual import (
    find_plain,
    has_usual_attachments,
    has_usual_references,
    mark_if_plain,
)
from fhirpub.plugin_api import Entry
from tests.bodies import PDF, patient
from tests.unit.interactions.checks.submitted import submitted
from tests.unit.interactions.updating import CONTEXT

TYPE = CONTEXT.types["DiagnosticReport"]
SHA256 = hashlib.sha256(PDF).hexdigest()
KEPT = Document(SHA256, "application/pdf", PDF, "presentedForm[0]")


def usual(*documents: Document, **changes: Any) -> bool:
    form = {"contentType": "application/pdf", "hash": SHA256, **changes}
    return has_usual_attachments({"presentedForm": [form]}, TYPE, documents or (KEPT,))


def test_a_pdf_with_its_hash_is_usual() -> None:
    assert usual()
    assert usual(size=len(PDF))


@pytest.mark.parametrize(
    "changes",
    [
        {"hash": SHA256.upper()},
        {"hash": None},
        {"hash": "0" * 64},
        {"url": "https://x.example/a"},
        {"size": len(PDF) + 1},
        {"size": 0},
    ],
)
def test_an_attachment_that_differs_is_not_usual(changes: dict[str, Any]) -> None:
    assert not usual(**changes)


@pytest.mark.parametrize(
    "changes", [{"content_type": "text/plain"}, {"content_type": ""}, {"data": b" " + PDF}]
)
def test_a_document_that_is_no_pdf_is_not_usual(changes: dict[str, Any]) -> None:
    assert not usual(replace(KEPT, **changes))


def test_each_attachment_has_its_document() -> None:
    form = {"contentType": "application/pdf", "hash": SHA256}

    assert has_usual_attachments({"presentedForm": [form, form]}, TYPE, (KEPT, KEPT))
    assert not has_usual_attachments({"presentedForm": [form, form]}, TYPE, (KEPT,))
    assert not has_usual_attachments({"presentedForm": [form]}, TYPE, (KEPT, KEPT))


@pytest.mark.parametrize("required", [True, False])
def test_a_document_may_be_missing_where_none_is_required(required: bool) -> None:  # noqa: FBT001
    of_type = replace(TYPE, attachments_required=required)

    assert has_usual_attachments({}, of_type, ()) is not required


def references(**changes: Any) -> bool:
    submission = submitted(report_changes=changes)
    find_plain(submission, CONTEXT)
    assert submission.entry.is_plain
    return has_usual_references(submission)


def test_references_to_the_parts_are_usual() -> None:
    assert references()


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": {"reference": "Patient/p2"}},
        {"subject": {"reference": "Organization/o1"}},
        {"subject": None},
        {"performer": None},
        {"performer": [{"reference": "Patient/p1"}]},
        {"resultsInterpreter": [{"reference": "Practitioner/d1"}]},
    ],
)
def test_references_to_others_or_to_none_are_not_usual(changes: dict[str, Any]) -> None:
    assert not references(**changes)


def test_only_what_is_valid_is_plain() -> None:
    right, wrong = Entry(patient(), "a"), Entry(patient(gender="x"), "a")

    mark_if_plain(right, CONTEXT)
    mark_if_plain(wrong, CONTEXT)

    assert right.is_plain
    assert not wrong.is_plain


def test_parts_are_marked_as_the_resource_is() -> None:
    submission = submitted(patient_changes={"gender": "x"})

    find_plain(submission, CONTEXT)

    assert submission.entry.is_plain
    assert not submission.parts["patient"].is_plain
    assert submission.parts["organization"].is_plain
