"""Files of lines are read line by line, however long the file and its lines are."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fhirpub.cli.publish.bulk import lines
from fhirpub.cli.publish.bulk.lines import Reading, lines_of

LIMIT = 8


def read(file: Path, limit: int = LIMIT) -> list[tuple[int | None, bytes, bool]]:
    reading = Reading(limit, stopped=lambda: False, read=lambda _size: None)
    items = lines_of(file, file.parent, reading)
    return [(item.line, item.raw, bool(item.problem)) for item in items]


def test_lines_keep_their_numbers_and_blank_ones_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\n\n \r\ntwo\r\nlast")

    assert read(tmp_path / "a") == [
        (1, b"one", False),
        (4, b"two\r", False),
        (5, b"last", False),
    ]


def test_a_line_above_the_limit_is_a_problem_and_does_not_hide_the_next(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123456789\n12345678\n")

    assert read(tmp_path / "a") == [(1, b"", True), (2, b"12345678", False)]


def test_a_line_of_a_gigabyte_takes_no_memory(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1_000_000_000)  # it is sparse: one line of NUL

    assert read(tmp_path / "a") == [(1, b"", True)]


def test_a_file_that_cannot_be_opened_is_a_problem(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == [(None, b"", True)]


def test_reading_ends_when_it_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\n" * 10)
    reading = Reading(LIMIT, stopped=lambda: True, read=lambda _size: None)

    assert list(lines_of(tmp_path / "a", tmp_path, reading)) == []


@given(parts=st.lists(st.text("ab\n", max_size=6).map(str.encode), max_size=8))
def test_lines_do_not_depend_on_the_parts_in_which_they_are_read(parts: list[bytes]) -> None:
    whole = b"".join(parts).split(b"\n")
    expected = [line if len(line) <= 4 else None for line in whole]
    expected = expected if expected[-1] != b"" else expected[:-1]

    assert list(lines._lines(iter(parts), 4)) == expected


def is_open(file: Path) -> bool:
    """Return whether a descriptor of this process is one of the file."""
    for one in Path("/dev/fd").iterdir():
        with suppress(OSError):  # that of the listing is closed
            if os.path.samestat(os.fstat(int(one.name)), file.stat()):
                return True
    return False


def test_a_file_is_closed_when_it_was_read_or_given_up(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\nb\n")

    read(tmp_path / "a")
    assert not is_open(tmp_path / "a")
    reading = Reading(LIMIT, stopped=lambda: False, read=lambda _size: None)
    begun = lines_of(tmp_path / "a", tmp_path, reading)
    next(iter(begun))
    assert is_open(tmp_path / "a")
    del begun
    gc.collect()

    assert not is_open(tmp_path / "a")


def test_what_is_read_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\nbcd\n")
    sizes: list[int] = []

    list(lines_of(tmp_path / "a", tmp_path, Reading(LIMIT, lambda: False, sizes.append)))

    assert sum(sizes) == 6
