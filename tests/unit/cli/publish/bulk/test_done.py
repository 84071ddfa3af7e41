"""A resumed run leaves out what is published, unless its file has changed since."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fhirpub.cli.publish.bulk.done import Done
from fhirpub.cli.publish.bulk.items import Item
from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import now_ms


def done_after(
    folder: Path, *records: tuple[str, int | None, str], later_ms: int = 60_000
) -> Done:
    """Return what a report says that was written ``later_ms`` from now."""
    moment = instant(now_ms() + later_ms)
    lines = [
        json.dumps({"file": str(folder / name), "line": line, "result": result, "at": moment})
        for name, line, result in records
    ]
    (folder / "out.ndjson").write_text("\n".join([*lines, '{"file": "incompl']))
    return Done.read(folder / "out.ndjson")


def item(folder: Path, name: str, line: int | None = None) -> Item:
    (folder / name).touch()
    return Item(file=folder / name, base=folder, line=line)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("created", True),
        ("replayed", True),
        ("refused", False),
        ("other content", False),
        ("not sent", False),
    ],
)
def test_only_what_is_published_is_left_out(tmp_path: Path, result: str, expected: object) -> None:
    done = done_after(tmp_path, ("a.json", None, result))

    assert done.has(item(tmp_path, "a.json")) is expected
    assert not done.has(item(tmp_path, "b.json"))


def test_lines_are_known_one_by_one(tmp_path: Path) -> None:
    listed = [("a.ndjson", line, "created") for line in (1, 8, 9, 4000)]
    done = done_after(tmp_path, *listed)

    known = [line for line in range(1, 5000) if done.has(item(tmp_path, "a.ndjson", line))]

    assert known == [1, 8, 9, 4000]


def test_a_file_that_has_changed_since_is_sent_again(tmp_path: Path) -> None:
    done = done_after(
        tmp_path, ("a.json", None, "created"), ("a.ndjson", 1, "created"), later_ms=-60_000
    )

    assert not done.has(item(tmp_path, "a.json"))
    assert not done.has(item(tmp_path, "a.ndjson", 1))


def test_without_a_report_nothing_is_done(tmp_path: Path) -> None:
    assert not Done.read(tmp_path / "none").has(item(tmp_path, "a.json"))


def test_a_file_that_is_gone_is_not_done(tmp_path: Path) -> None:
    done = done_after(tmp_path, ("a.json", None, "created"))

    assert not done.has(Item(file=tmp_path / "a.json", base=tmp_path))


def test_lines_of_standard_input_have_no_age(tmp_path: Path) -> None:
    done = Done(lines={"-": bytearray([0b10])}, since_ms=0)

    assert done.has(Item(file=Path("-"), base=tmp_path, line=1))
    assert not done.has(Item(file=Path("-"), base=tmp_path, line=2))


def test_the_first_moment_of_a_report_counts(tmp_path: Path) -> None:
    lines = [
        json.dumps({"file": str(tmp_path / "a"), "line": None, "result": "created", "at": at})
        for at in (instant(now_ms() - 60_000), instant(now_ms() + 60_000))
    ]
    (tmp_path / "out").write_text("\n".join(lines))

    assert not Done.read(tmp_path / "out").has(item(tmp_path, "a"))


def test_what_stands_in_a_report_behind_a_line_that_is_no_record_counts(tmp_path: Path) -> None:
    done_after(tmp_path, ("a.json", None, "created"))
    report = tmp_path / "out.ndjson"
    report.write_text(f'[]\n{{"at": 1}}\n{{}}\nx\n{report.read_text()}')

    assert Done.read(report).has(item(tmp_path, "a.json"))


def test_a_file_that_changed_in_the_moment_of_the_first_result_is_sent_again(
    tmp_path: Path,
) -> None:
    done = done_after(tmp_path, ("a.json", None, "created"))
    listed = item(tmp_path, "a.json")
    about = listed.file.stat()
    done.since_ms = max(about.st_mtime, about.st_ctime) * 1000

    assert not done.has(listed)


def test_a_file_that_was_put_there_later_is_sent_again_whatever_its_own_time(
    tmp_path: Path,
) -> None:
    done = done_after(tmp_path, ("a.json", None, "created"), later_ms=-60_000)
    listed = item(tmp_path, "a.json")
    os.utime(listed.file, (1, 1))  # as by `mv` or `cp -p`

    assert not done.has(listed)


def test_the_first_moment_counts_although_that_report_was_refused(tmp_path: Path) -> None:
    at = {"refused": instant(now_ms() - 60_000), "created": instant(now_ms() + 60_000)}
    lines = [
        json.dumps({"file": str(tmp_path / "a"), "line": None, "result": result, "at": moment})
        for result, moment in at.items()
    ]
    (tmp_path / "out").write_text("\n".join(lines))

    assert not Done.read(tmp_path / "out").has(item(tmp_path, "a"))
