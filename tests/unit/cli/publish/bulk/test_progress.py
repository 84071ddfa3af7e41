"""The progress shows what is known."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from fhirpub.cli.publish.bulk.progress import Expected, bar
from fhirpub.cli.publish.bulk.sources import source_of
from tests.waiting import wait_until


def test_the_bar_has_rate_and_time_left() -> None:
    drawn = bar(1_000, 4_000, 10.0, failed=2)

    assert drawn == "[#####...............]  1,000 of 4,000  10/s  5 min 0 s left  2 not published"


def test_without_a_total_only_what_was_done_is_shown() -> None:
    assert bar(5, None, 1.0, failed=0) == "5  1/s"


def test_files_are_counted_and_lines_estimated(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").touch()
    (tmp_path / "x.ndjson").write_bytes(b"1234\n" * 10)
    sources = [source_of(str(tmp_path / name), all_lines=False) for name in ("in", "x.ndjson")]
    expected = Expected(sources, threading.Event())

    expected.start()
    assert wait_until(lambda: expected.files is not None)
    assert expected.total() is None
    expected.read(25)
    expected.lines_read = 5

    assert expected.total() == 11


@pytest.mark.parametrize(
    ("left", "shown"),
    [(59, "59 s"), (60, "1 min 0 s"), (3_599, "59 min 59 s"), (7_325, "2 h 2 min")],
)
def test_the_time_left_is_in_two_units_at_most(left: int, shown: str) -> None:
    assert f"  {shown} left" in bar(1, 1 + left, 1.0, failed=0)


def test_of_standard_input_no_total_is_known() -> None:
    expected = Expected([source_of("-", all_lines=True)], threading.Event())

    expected.start()
    assert wait_until(lambda: expected.files is not None)
    expected.lines_read = 5

    assert expected.total() is None


def test_with_standard_input_among_files_no_total_is_known(tmp_path: Path) -> None:
    sources = [source_of(str(tmp_path), all_lines=True), source_of("-", all_lines=True)]
    expected = Expected(sources, threading.Event())

    expected.start()
    assert wait_until(lambda: expected.files is not None)
    expected.lines_read = 5

    assert expected.total() is None


def test_files_that_are_not_counted_to_the_end_have_no_number(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch()
    expected = Expected([source_of(str(tmp_path), all_lines=False)] * 2, threading.Event())
    expected.stopped.set()

    expected._count()

    assert expected.files is None


def test_a_file_that_has_grown_while_it_is_read_takes_nothing_from_the_total(
    tmp_path: Path,
) -> None:
    (tmp_path / "x.ndjson").write_bytes(b"1234\n" * 2)
    source = source_of(str(tmp_path / "x.ndjson"), all_lines=False)
    expected = Expected([source], threading.Event())

    expected.start()
    assert wait_until(lambda: expected.files is not None)
    expected.read(50)
    expected.lines_read = 10

    assert expected.total() == 10


def test_a_bar_is_full_and_no_time_left_when_there_was_more_than_expected() -> None:
    assert bar(8, 4, 1.0, failed=0) == f"[{'#' * 20}]  8 of 4  1/s  0 s left"


def test_of_files_alone_the_total_is_their_number(tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "c.pdf"):
        (tmp_path / name).touch()
    expected = Expected([source_of(str(tmp_path), all_lines=False)], threading.Event())

    expected.start()
    assert wait_until(lambda: expected.files is not None)

    assert expected.total() == 2
