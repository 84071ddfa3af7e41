"""Documents are found by path, inside their folder only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.publish.documents import Documents, is_path, siblings_of
from fhirpub.cli.publish.files import UnusableFile

LIMIT = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "blood count.pdf").write_bytes(b"%PDF-")
    (tmp_path / "secret.pdf").write_bytes(b"%PDF-secret")
    return folder


@pytest.mark.parametrize(
    "url", ["blood count.pdf", "blood%20count.pdf", "./blood count.pdf", "file:blood%20count.pdf"]
)
def test_a_path_leads_to_its_document(folder: Path, url: str) -> None:
    attachment = Documents(folder, folder, LIMIT).read(url)

    assert attachment["contentType"] == "application/pdf"
    assert attachment["data"] == "JVBERi0="


def test_a_name_may_look_like_one_that_is_encoded(folder: Path) -> None:
    (folder / "100%20.pdf").write_bytes(b"as it is written")
    (folder / "b%2520.pdf").write_bytes(b"as it is written")
    (folder / "b%20.pdf").write_bytes(b"decoded")
    documents = Documents(folder, folder, LIMIT)

    assert documents.find("100%20.pdf").read_bytes() == b"as it is written"
    assert documents.find("b%2520.pdf").read_bytes() == b"as it is written"


def test_a_copy_of_a_document_is_the_same_attachment(folder: Path) -> None:
    before = Documents(folder, folder, LIMIT).read("blood count.pdf")
    os.utime(folder / "blood count.pdf", (0, 0))

    assert Documents(folder, folder, LIMIT).read("blood count.pdf") == before


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}"])
def test_a_path_may_be_absolute(folder: Path, form: str) -> None:
    url = form.format(folder / "blood count.pdf")

    assert Documents(folder, folder, LIMIT).find(url).name == "blood count.pdf"


@pytest.mark.parametrize("url", ["../secret.pdf", "link.pdf", "%2e%2e/secret.pdf", "/etc/hosts"])
def test_a_path_that_leads_out_of_the_folder_is_refused(folder: Path, url: str) -> None:
    (folder / "link.pdf").symlink_to("../secret.pdf")

    with pytest.raises(UnusableFile, match="leads out of the folder"):
        Documents(folder, folder, LIMIT).read(url)


@pytest.mark.parametrize("url", ["none.pdf", "a\0b", "x" * 5000, "Binary/1"])
def test_a_document_that_does_not_exist_is_refused(folder: Path, url: str) -> None:
    with pytest.raises(UnusableFile, match="names a document that does not exist"):
        Documents(folder, folder, LIMIT).read(url)


def test_a_document_above_the_limit_is_refused(folder: Path) -> None:
    with pytest.raises(UnusableFile, match="is larger than 3 bytes"):
        Documents(folder, folder, 3).read("blood count.pdf")


def test_a_folder_is_no_document(folder: Path) -> None:
    with pytest.raises(UnusableFile, match=r"cannot be read|is not a regular file"):
        Documents(folder, folder, LIMIT).read(".")


@pytest.mark.parametrize(
    ("attachment", "expected"),
    [
        ({"url": "a.pdf"}, True),
        ({"url": "file:a.pdf"}, True),
        ({"url": "https://lab.example/a.pdf"}, False),
        ({"url": "urn:oid:1.2"}, False),
        ({"url": "C:/scans/a.pdf"}, True),
        ({"url": "a.pdf", "data": "QQ=="}, False),
        ({"url": 3}, False),
        ({}, False),
        ("a.pdf", False),
    ],
)
def test_a_url_without_a_scheme_is_a_path(attachment: Any, expected: Any) -> None:
    assert is_path(attachment) is expected


def test_documents_of_the_same_name_belong_to_a_report(folder: Path) -> None:
    for name in ("a.json", "a.pdf", "a.PNG", "ab.pdf", "a.exe"):
        (folder / name).touch()
    (folder / "a.txt").symlink_to("/etc/hosts")

    assert [file.name for file in siblings_of(folder / "a.json")] == ["a.pdf", "a.PNG"]


@pytest.mark.parametrize(
    "ending", [".pdf", ".html", ".txt", ".rtf", ".jpg", ".jpeg", ".png", ".tif", ".tiff"]
)
def test_a_document_of_each_kind_is_found_beside_its_report(tmp_path: Path, ending: str) -> None:
    for name in (f"a{ending}", "b.pdf", "a.docx"):
        (tmp_path / name).touch()

    assert [file.name for file in siblings_of(tmp_path / "a.json")] == [f"a{ending}"]


@pytest.mark.parametrize("url", ["#a", "", "https://a.example/x.pdf", "urn:uuid:1", None, 7])
def test_what_is_no_path_is_left_as_it_is(url: Any) -> None:
    assert not is_path({"url": url})


def test_a_folder_that_is_reached_by_a_link_has_its_documents(folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    linked = folder.parent / "link"

    assert Documents(linked, linked, LIMIT).find("blood%20count.pdf").read_bytes() == b"%PDF-"
