"""The body of a registration, and documents inserted in the right place."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.publish.documents import Documents, attachment
from fhirpub.cli.publish.submission import Submission, UnusableSubmission
from fhirpub.plugin_host.loader import load

REPORTS = ["diagnosticreport"]
WRITTEN_NS = 1_700_000_000_123_000_000


def parameters(*entries: Any) -> bytes:
    return json.dumps({"resourceType": "Parameters", "parameter": list(entries)}).encode()


def entry(type_name: str, **others: Any) -> dict[str, Any]:
    name = type_name[0].lower() + type_name[1:]
    return {"name": name, "resource": {"resourceType": type_name}, **others}


def reporting(*forms: Any) -> dict[str, Any]:
    """Return the entry of a report with documents."""
    report = entry("DiagnosticReport")
    report["resource"]["presentedForm"] = [*forms]
    return report


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    file = tmp_path / "blood count.pdf"
    file.write_bytes(b"%PDF-1.4 \x00\xff")
    return file


@pytest.mark.parametrize("type_name", ["DiagnosticReport", "Observation", "MedicationRequest"])
def test_the_entry_named_after_its_type_is_registered(type_name: str) -> None:
    raw = parameters(entry("Patient"), entry(type_name), entry("Organization"))

    assert Submission.from_json(raw).type_name == type_name


@pytest.mark.parametrize("order", [1, -1])
def test_a_report_may_follow_its_results(order: int) -> None:
    entries = [entry("ServiceRequest"), entry("Observation"), entry("DiagnosticReport")][::order]

    submission = Submission.from_json(parameters(*entries), load(["observation", *REPORTS]))

    assert submission.type_name == "DiagnosticReport"


def test_of_entries_that_do_not_belong_together_the_first_is_registered() -> None:
    raw = parameters(entry("Encounter"), entry("DiagnosticReport"))

    assert Submission.from_json(raw, load(REPORTS)).type_name == "Encounter"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "JSON"),
        (b"[]", "must be a Parameters resource"),
        (b'{"resourceType": "DiagnosticReport"}', "must be a Parameters resource"),
        (parameters(), "no entry to register"),
        (parameters(entry("Patient"), 7, {"name": "x"}), "no entry to register"),
        (
            parameters({"name": "report", "resource": {"resourceType": "DiagnosticReport"}}),
            "no en",
        ),
        (b'{"resourceType": "Parameters", "parameter": {}}', "no entry to register"),
        (parameters({"name": "../x", "resource": {"resourceType": "../x"}}), "no entry"),
        (parameters({"name": "a/x", "resource": {"resourceType": "A/x"}}), "no entry"),
    ],
)
def test_a_file_without_a_report_is_refused(raw: bytes, words: str) -> None:
    with pytest.raises(UnusableSubmission, match=words):
        Submission.from_json(raw)


def without_date(pdf: Path) -> dict[str, Any]:
    """Return a document as a report has it that names it by path."""
    data = pdf.read_bytes()
    return {
        "contentType": "application/pdf",
        "title": "blood count.pdf",
        "data": base64.b64encode(data).decode(),
        "hash": hashlib.sha256(data).hexdigest(),
    }


def test_an_attachment_carries_its_data_and_their_hash(pdf: Path) -> None:
    os.utime(pdf, ns=(WRITTEN_NS, WRITTEN_NS))

    assert attachment(pdf) == {**without_date(pdf), "creation": "2023-11-14T22:13:20.123Z"}


def test_a_document_of_unknown_kind_is_bytes(tmp_path: Path) -> None:
    file = tmp_path / "document.of-no-known-kind"
    file.write_bytes(b"")

    assert attachment(file)["contentType"] == "application/octet-stream"


@pytest.mark.skipif(sys.platform != "linux", reason="others have only names in UTF-8")
def test_a_name_that_is_not_utf_8_is_a_title_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"m\xe9dico.pdf")
    file.write_bytes(b"")
    submission = Submission.from_json(parameters(entry("DiagnosticReport")))

    submission.attach([file])

    (sent,) = json.loads(submission.to_json())["parameter"]
    assert sent["resource"]["presentedForm"][0]["title"] == "m\N{REPLACEMENT CHARACTER}dico.pdf"


def test_documents_follow_those_that_are_there(pdf: Path) -> None:
    there = {"url": "https://documents.example/1"}
    submission = Submission.from_json(parameters(reporting(there)))

    submission.attach([pdf, pdf])

    sent = json.loads(submission.to_json())["parameter"][0]["resource"]["presentedForm"]
    assert sent == [there, attachment(pdf), attachment(pdf)]


def test_documents_join_a_list_that_stands_next_to_the_resource(pdf: Path) -> None:
    submission = Submission.from_json(parameters(entry("DiagnosticReport", presentedForm=[])))

    submission.attach([pdf])

    (sent,) = json.loads(submission.to_json())["parameter"]
    assert len(sent["presentedForm"]) == 1
    assert "presentedForm" not in sent["resource"]


def test_without_documents_nothing_is_added() -> None:
    submission = Submission.from_json(parameters(entry("DiagnosticReport")))

    submission.attach([])

    assert json.loads(submission.to_json()) == json.loads(parameters(entry("DiagnosticReport")))


def test_documents_in_an_object_are_refused(pdf: Path) -> None:
    submission = Submission.from_json(parameters(entry("DiagnosticReport", presentedForm={})))

    with pytest.raises(UnusableSubmission, match="must be an array"):
        submission.attach([pdf])


@pytest.mark.parametrize("is_beside", [True, False], ids=["beside", "within"])
def test_what_a_file_states_about_a_document_is_kept(pdf: Path, *, is_beside: bool) -> None:
    stated = {"contentType": "application/dicom", "title": "Scan", "hash": "AAAA"}
    elsewhere = {"url": "https://a/x.pdf"}
    forms = [{"url": pdf.name} | more for more in (stated, {"title": "Mine"}, {})]
    report = reporting(*forms, elsewhere)
    if is_beside:
        report["presentedForm"] = report["resource"].pop("presentedForm")
    submission = Submission.from_json(parameters(report))

    submission.read_documents(Documents(pdf.parent, pdf.parent, limit=100))

    (sent,) = json.loads(submission.to_json())["parameter"]
    found = without_date(pdf)
    assert (sent if is_beside else sent["resource"])["presentedForm"] == [
        {**found, **stated},
        {**found, "title": "Mine"},
        found,
        elsewhere,
    ]


def test_numbers_keep_their_digits() -> None:
    raw = parameters(entry("Observation", x="here")).replace(b'"here"', b"1.100")

    assert b"1.100" in Submission.from_json(raw).to_json()


def test_what_is_no_attachment_is_left_as_it_is(pdf: Path) -> None:
    submission = Submission.from_json(parameters(reporting(7, {"url": pdf.name})))

    assert submission.paths == [pdf.name]
    submission.read_documents(Documents(pdf.parent, pdf.parent, limit=100))
    assert json.loads(submission.to_json()) == json.loads(
        parameters(reporting(7, without_date(pdf)))
    )


def test_a_report_of_forms_that_are_no_attachments_has_no_documents() -> None:
    submission = Submission.from_json(parameters(reporting(7, None)))

    assert not submission.has_documents


def test_each_document_that_is_named_by_path_is_read_whatever_is_before_it(pdf: Path) -> None:
    elsewhere = {"url": "https://a.example/x.pdf"}
    forms = [elsewhere, {"url": pdf.name}, elsewhere, {"url": pdf.name}]
    submission = Submission.from_json(parameters(reporting(*forms)))

    submission.read_documents(Documents(pdf.parent, pdf.parent, limit=100))

    (sent,) = json.loads(submission.to_json())["parameter"]
    found = without_date(pdf)
    assert sent["resource"]["presentedForm"] == [elsewhere, found, elsewhere, found]


@pytest.mark.parametrize(
    ("entries", "place"),
    [
        ([], "Parameters.parameter[0].resource.presentedForm[1].url"),
        ([entry("Patient")], "Parameters.parameter[1].resource.presentedForm[1].url"),
        ([7, entry("Patient")], "Parameters.parameter[2].resource.presentedForm[1].url"),
    ],
)
def test_a_document_that_cannot_be_read_is_named_with_its_place(
    pdf: Path, entries: list[Any], place: str
) -> None:
    report = reporting({"url": pdf.name}, {"url": "none.pdf"})
    submission = Submission.from_json(parameters(*entries, report))

    with pytest.raises(UnusableSubmission) as refused:
        submission.read_documents(Documents(pdf.parent, pdf.parent, limit=100))

    assert str(refused.value).startswith(f"{place} names a document that does not exist")


def test_of_several_problems_of_a_file_the_first_is_the_reason() -> None:
    inside = '<parameter><name value="a"/><x/></parameter><parameter><y/></parameter>'
    raw = f'<Parameters xmlns="http://hl7.org/fhir">{inside}</Parameters>'.encode()

    with pytest.raises(UnusableSubmission, match=r"does not have here: x$"):
        Submission.from_xml(raw)
