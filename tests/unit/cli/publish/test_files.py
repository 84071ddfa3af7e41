"""Only regular files are read, and only up to a size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fhirpub.cli.publish.files import UnusableFile, read_file


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
