"""Only regular files are read, and only up to a size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fhirpub.cli.publish.files import UnusableFile, is_regular, read_file


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")

    with pytest.raises(UnusableFile, match="is not a regular file"):
        read_file(tmp_path / "pipe.json", 10)


@pytest.mark.parametrize("name", ["none.json", "x" * 300, "a\0b"])
def test_a_file_that_cannot_be_opened_is_unusable(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnusableFile, match="cannot be read"):
        read_file(tmp_path / name, 10)


def test_a_file_of_the_limit_is_read_and_a_larger_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1234")

    assert read_file(tmp_path / "a", 4) == b"1234"
    with pytest.raises(UnusableFile, match="is larger than 3 bytes"):
        read_file(tmp_path / "a", 3)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("none.json", "No such file or directory"), ("a\0b", "its name is not valid")],
)
def test_why_a_file_cannot_be_opened_is_named(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(UnusableFile) as refusal:
        read_file(tmp_path / name, 10)

    assert str(refusal.value) == f"cannot be read: {reason}"


def test_a_regular_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    assert is_regular(tmp_path / "a") is True


@pytest.mark.parametrize("name", ["none", "folder", "link", "a\0b"])
def test_what_is_missing_or_a_folder_or_a_link_is_no_regular_file(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("a")

    assert is_regular(tmp_path / name) is False
