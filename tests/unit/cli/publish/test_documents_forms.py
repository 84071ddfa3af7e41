"""Attachments of files, and paths of documents below a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fhirpub.cli.publish.documents import Documents, attachment, to_attachment

LIMIT = 1000


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.pdf", "application/pdf"),
        ("a.png", "image/png"),
        ("a", "application/octet-stream"),
        ("a.unknown-kind", "application/octet-stream"),
    ],
)
def test_an_attachment_has_its_type_title_content_and_hash(name: str, kind: str) -> None:
    assert to_attachment(Path("folder") / name, b"abc") == {
        "contentType": kind,
        "title": name,
        "data": "YWJj",
        "hash": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    }


def test_an_attachment_of_a_command_has_the_date_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"abc")
    os.utime(file, ns=(0, 1_800_000_000_123_456_789))

    found = attachment(file)

    assert found["creation"] == "2027-01-15T08:00:00.123Z"
    assert found["title"] == "a.pdf"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("a.pdf", "a.pdf"),
        ("scans/a.pdf", "scans/a.pdf"),
        ("scans/../a.pdf", "a.pdf"),
        ("file:a%20b.pdf", "a b.pdf"),
        ("../a.pdf", None),
        ("scans/../../a.pdf", None),
        (".", None),
        ("", None),
        ("file:///etc/a.pdf", None),
    ],
)
def test_a_path_is_relative_to_its_folder_unless_it_leads_out(
    tmp_path: Path, url: str, path: str | None
) -> None:
    found = Documents(tmp_path, tmp_path, LIMIT).relative(url)

    assert found == (None if path is None else Path(path))


def test_an_absolute_path_is_not_relative_even_below_the_folder(tmp_path: Path) -> None:
    assert Documents(tmp_path, tmp_path, LIMIT).relative(f"{tmp_path}/a.pdf") is None


def test_a_name_with_a_percent_sign_is_taken_as_it_is_if_it_exists(tmp_path: Path) -> None:
    (tmp_path / "a%20b.pdf").touch()
    documents = Documents(tmp_path, tmp_path, LIMIT)

    assert documents.relative("a%20b.pdf") == Path("a%20b.pdf")

    (tmp_path / "a b.pdf").touch()
    assert documents.relative("a%20b.pdf") == Path("a b.pdf")
