"""Whether an attachment is complete, and whether its document is what it states."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from fhirpub.errors import Issue
from fhirpub.fhir.document import Document
from fhirpub.interactions.checks.attachments import check_attachments, missing_attachments
from fhirpub.plugin_api import ResourceType

PDF = b"%PDF-1.4 synthetic"
HASH = hashlib.sha256(PDF).hexdigest()


def type_with(*attachments: str, required: bool = True) -> ResourceType:
    return ResourceType(
        name="DiagnosticReport",
        parts=(),
        create_statuses=frozenset(),
        update_statuses=frozenset(),
        attachments=attachments,
        attachments_required=required,
    )


def document(data: bytes, kind: str = "application/pdf", at: str = "presentedForm[0]") -> Document:
    return Document(hashlib.sha256(data).hexdigest(), kind, data, at)


def attachment(content: bytes = PDF, **changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "contentType": "application/pdf",
        "data": base64.b64encode(content).decode(),
        "hash": hashlib.sha256(content).hexdigest(),
    }
    return {name: item for name, item in (usual | changes).items() if item is not None}


def issues_of(one: dict[str, Any], data: bytes = PDF, check: str = "strict") -> list[Issue]:
    kind = one.get("contentType", "")
    documents = [document(data, kind)] if "data" in one else []
    resource = {"presentedForm": [one]}
    return [*check_attachments(resource, type_with("presentedForm"), documents, check)]


def found(one: dict[str, Any], data: bytes = PDF, check: str = "strict") -> list[tuple[str, str]]:
    return [(issue.severity, issue.expression) for issue in issues_of(one, data, check)]


def test_nothing_is_wrong_with_a_document_that_is_right() -> None:
    assert found(attachment()) == []
    assert found(attachment(size=len(PDF))) == []


def test_a_document_may_be_elsewhere() -> None:
    assert found(attachment(data=None, hash=None, url="https://lab.example/1.pdf")) == []


def test_all_that_is_wrong_around_a_document_is_named() -> None:
    assert found(attachment(contentType="text/plain", url="x")) == [
        ("information", "presentedForm[0].contentType"),
        ("error", "presentedForm[0].url"),
    ]


# What is missing


@pytest.mark.parametrize(
    ("resource", "missing"),
    [
        ({}, ["presentedForm", "content.attachment"]),
        ({"presentedForm": []}, ["content.attachment"]),
        ({"presentedForm": [{}], "content": [{}]}, ["content.attachment"]),
        ({"presentedForm": [{}], "content": [{}, {"attachment": {}}]}, []),
    ],
)
def test_an_element_without_an_attachment_is_missing(
    resource: dict[str, Any], missing: list[str]
) -> None:
    assert missing_attachments(resource, type_with("presentedForm", "content.attachment")) == (
        missing
    )


@pytest.mark.parametrize("required", [True, False])
def test_attachments_are_required_where_a_type_requires_them(*, required: bool) -> None:
    declared = type_with("presentedForm", required=required)
    issues = [*check_attachments({}, declared, (), "strict")]

    assert [(one.expression, one.diagnostics, one.details) for one in issues] == (
        [("presentedForm", "is required", "element-required")] if required else []
    )


@pytest.mark.parametrize("changes", [{"data": None}, {"data": None, "hash": None}])
def test_an_attachment_needs_data_or_a_url(changes: dict[str, Any]) -> None:
    (issue,) = issues_of(attachment(**changes))

    assert (issue.severity, issue.expression) == ("error", "presentedForm[0]")
    assert issue.diagnostics == "must have data and hash, or a url"
    assert issue.details == "attachment-incomplete"


@pytest.mark.parametrize("url", [None, "https://lab.example/1.pdf"])
def test_data_need_a_hash(url: str | None) -> None:
    (issue,) = issues_of(attachment(hash=None, url=url))

    assert (issue.severity, issue.expression) == ("error", "presentedForm[0]")
    assert issue.diagnostics.startswith("data needs a hash: the SHA-256 or SHA-1")


# The type of the content


@pytest.mark.parametrize(
    "kind",
    ["application/pdf", "APPLICATION/PDF", "application/pdf; version=1.7", "application/pdf ;x"],
)
def test_a_pdf_may_be_named_in_several_ways(kind: str) -> None:
    assert found(attachment(contentType=kind)) == []


def test_another_type_is_a_remark() -> None:
    (issue,) = issues_of(attachment(b"text", contentType="text/plain"), b"text")

    assert (issue.severity, issue.expression) == ("information", "presentedForm[0].contentType")
    assert issue.diagnostics == "application/pdf is preferred"


def test_a_type_need_not_be_named() -> None:
    assert found(attachment(contentType=None)) == []


@pytest.mark.parametrize(
    "kind", ["", "pdf", "application/", "a/b/c", "a b/c", "application/pdf,x", "a/b;\n"]
)
def test_what_is_no_type_is_wrong(kind: str) -> None:
    (issue,) = issues_of(attachment(contentType=kind))

    assert (issue.severity, issue.expression) == ("error", "presentedForm[0].contentType")
    assert issue.diagnostics == (
        "must be a MIME type such as application/pdf, of at most 1000 characters"
    )


@pytest.mark.parametrize(("length", "severity"), [(1_000, "information"), (1_001, "error")])
def test_a_type_has_a_longest_name(length: int, severity: str) -> None:
    kind = "text/" + "x" * (length - 5)

    assert [one for one, _at in found(attachment(contentType=kind))] == [severity]


@pytest.mark.parametrize("url", ["ftp://lab.example/1", "1.pdf", "", "https://a b"])
def test_a_url_leads_to_the_web(url: str) -> None:
    (issue,) = issues_of(attachment(data=None, hash=None, url=url))

    assert (issue.severity, issue.expression) == ("error", "presentedForm[0].url")
    assert issue.diagnostics.startswith("must be an absolute http or https URL of at most")


# What the data turn out to be


@pytest.mark.parametrize(
    ("check", "severities"), [("strict", ["error"]), ("warn", ["warning"]), ("off", [])]
)
def test_a_wrong_hash_is_as_severe_as_the_setting(check: str, severities: list[str]) -> None:
    wrong = hashlib.sha256(b"other").hexdigest()
    issues = issues_of(attachment(hash=wrong), check=check)

    assert [one.severity for one in issues] == severities
    for issue in issues:
        assert issue.expression == "presentedForm[0].hash"
        assert issue.diagnostics.startswith("is not the hash of data: it must be the SHA-256")
        assert issue.details == "hash-wrong"
        assert (issue.code == "invalid") is (check != "strict")


def test_a_hash_of_another_kind_is_not_checked() -> None:
    (issue,) = issues_of(attachment(hash="abc"))

    assert (issue.severity, issue.expression) == ("information", "presentedForm[0].hash")
    assert issue.diagnostics == "is neither SHA-256 nor SHA-1, in hex or base64: not checked"
    assert found(attachment(hash="abc"), check="off") == []


@pytest.mark.parametrize("size", [len(PDF) - 1, len(PDF) + 1, 0])
def test_another_size_is_a_warning(size: int) -> None:
    (issue,) = issues_of(attachment(size=size))

    assert (issue.severity, issue.code) == ("warning", "invalid")
    assert issue.details == "document-questionable"
    assert issue.expression == "presentedForm[0].size"
    assert issue.diagnostics == (
        "is not the size of data: it must be the number of the decoded bytes"
    )


@pytest.mark.parametrize("data", [b"", b"%PDF", b" %PDF-1.4", b"plain"])
def test_what_does_not_begin_as_a_pdf_is_a_warning(data: bytes) -> None:
    (issue,) = issues_of(attachment(data), data)

    assert (issue.severity, issue.code) == ("warning", "invalid")
    assert issue.details == "document-questionable"
    assert issue.expression == "presentedForm[0].data"
    assert issue.diagnostics == (
        "does not begin as a PDF does: check the file, or its contentType"
    )


def test_only_a_pdf_begins_as_one() -> None:
    assert found(attachment(b"x", contentType="text/plain"), b"x") == [
        ("information", "presentedForm[0].contentType")
    ]


def test_each_document_is_compared_with_its_own_attachment() -> None:
    other = b"%PDF-1.4 other"
    documents = [document(PDF), document(other, at="presentedForm[1]")]
    resource = {"presentedForm": [attachment(), attachment(other, hash=HASH)]}

    issues = [*check_attachments(resource, type_with("presentedForm"), documents, "strict")]

    assert [issue.expression for issue in issues] == ["presentedForm[1].hash"]
