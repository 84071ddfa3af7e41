"""Which submission is made of a report, and which documents belong to it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.publish.bulk.items import Item, submission_in, submission_of
from fhirpub.cli.publish.files import UnusableFile
from tests.bodies import document, register_body
from tests.unit.cli.publish.services import service_at


def report_in(folder: Path, **changes: Any) -> Path:
    file = folder / "a.json"
    file.write_text(json.dumps(register_body("R-1", **{"presentedForm": None} | changes)))
    return file


def forms(item: Item, *, limit: int = 100_000) -> list[dict[str, Any]]:
    """Return the documents of the report that would be sent."""
    body = json.loads(submission_of(item, service_at(limit=limit)).to_json())
    reports = [one["resource"] for one in body["parameter"]]
    found = [one for one in reports if one["resourceType"] == "DiagnosticReport"]
    presented: list[dict[str, Any]] = found[0].get("presentedForm", [])
    return presented


def test_a_document_of_its_name_belongs_to_a_report_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"pdf")
    item = Item(file=report_in(tmp_path), base=tmp_path, has_siblings=True)

    (form,) = forms(item)

    assert (base64.b64decode(form["data"]), form["contentType"]) == (b"pdf", "application/pdf")


def test_a_document_of_its_name_is_left_out_for_a_named_file(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"pdf")

    assert forms(Item(file=report_in(tmp_path), base=tmp_path)) == []


def test_a_report_that_has_its_documents_gets_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"pdf")
    file = report_in(tmp_path, presentedForm=[document()])

    found = forms(Item(file=file, base=tmp_path, has_siblings=True))

    assert [form["data"] for form in found] == [document()["data"]]


def test_a_document_above_the_limit_is_refused(tmp_path: Path) -> None:
    file = report_in(tmp_path)
    size = file.stat().st_size
    (tmp_path / "a.pdf").write_bytes(b"p" * (size + 1))

    with pytest.raises(UnusableFile, match=f"larger than {size} bytes"):
        forms(Item(file=file, base=tmp_path, has_siblings=True), limit=size)


def test_a_report_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    file = report_in(tmp_path)
    size = file.stat().st_size

    assert submission_in(Item(file=file, base=tmp_path), service_at(limit=size)).type_name
    with pytest.raises(UnusableFile):
        submission_in(Item(file=file, base=tmp_path), service_at(limit=size - 1))


def test_a_line_is_read_from_its_bytes_whatever_the_file_is_called(tmp_path: Path) -> None:
    raw = json.dumps(register_body("R-1")).encode()
    item = Item(file=tmp_path / "none.xml", base=tmp_path, line=1, raw=raw)

    assert submission_in(item, service_at()).type_name == "DiagnosticReport"


def test_a_file_that_is_called_xml_is_read_as_xml(tmp_path: Path) -> None:
    file = report_in(tmp_path).rename(tmp_path / "a.XML")

    with pytest.raises(UnusableFile):
        submission_in(Item(file=file, base=tmp_path), service_at())


def test_a_document_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.pdf").write_bytes(b"pdf")
    folder = tmp_path / "in"
    folder.mkdir()
    file = report_in(folder, presentedForm=[{"url": "../secret.pdf"}])

    with pytest.raises(UnusableFile, match="leads out of the folder"):
        submission_of(Item(file=file, base=folder), service_at())


def test_a_report_that_has_a_problem_is_refused_with_it(tmp_path: Path) -> None:
    item = Item(file=report_in(tmp_path), base=tmp_path, problem="is a link")

    with pytest.raises(UnusableFile, match=r"^is a link$"):
        submission_in(item, service_at())


def test_all_documents_of_its_name_belong_to_a_report(tmp_path: Path) -> None:
    for name in ("a.txt", "a.pdf", "b.pdf"):
        (tmp_path / name).write_bytes(name.encode())

    found = forms(Item(file=report_in(tmp_path), base=tmp_path, has_siblings=True))

    assert [form["title"] for form in found] == ["a.pdf", "a.txt"]


def test_a_path_is_relative_to_the_folder_of_its_report(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for folder, content in ((tmp_path, b"other"), (tmp_path / "sub", b"own")):
        (folder / "x.pdf").write_bytes(content)
    file = report_in(tmp_path / "sub", presentedForm=[{"url": "x.pdf"}])

    (form,) = forms(Item(file=file, base=tmp_path))

    assert base64.b64decode(form["data"]) == b"own"
