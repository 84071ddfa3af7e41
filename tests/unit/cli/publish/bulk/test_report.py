"""The report of a load is whole at any moment, and never overwrites another file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from fhirpub.cli.publish.bulk import report
from fhirpub.cli.publish.bulk.report import ReportFailed, opened_report
from fhirpub.cli.publish.outcome import Outcome

ISSUE = {
    "severity": "error",
    "code": "required",
    "details": {"coding": [{"code": "element-required"}]},
    "diagnostics": "is required",
    "expression": ["a.b"],
}
REFUSED = Outcome(
    file="a.ndjson",
    line=7,
    result="refused",
    status=400,
    attempts=2,
    issues=[ISSUE],
    reason="400 Bad Request",
)


def write(file: Path, *, resume: bool = False) -> list[dict[str, Any]]:
    with opened_report(file, lambda: 0, resume=resume) as report:
        report.add(REFUSED)
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def test_a_line_has_the_result_and_the_problems(tmp_path: Path) -> None:
    (record,) = write(tmp_path / "out.ndjson")

    assert record == {
        "file": "a.ndjson",
        "line": 7,
        "result": "refused",
        "status": 400,
        "id": None,
        "version": None,
        "location": None,
        "attempts": 2,
        "reason": "400 Bad Request",
        "problems": [
            {
                "severity": "error",
                "code": "element-required",
                "path": ["a.b"],
                "message": "is required",
            }
        ],
        "at": "1970-01-01T00:00:00.000Z",
    }


def test_a_resumed_report_is_continued_behind_its_last_whole_line(tmp_path: Path) -> None:
    write(tmp_path / "out.ndjson")
    with (tmp_path / "out.ndjson").open("ab") as file:
        file.write(b'{"file": "incompl' + b"e" * 100_000)

    assert len(write(tmp_path / "out.ndjson", resume=True)) == 2


@pytest.mark.parametrize("end", [b"", b'{"file": "incompl', b'{"file": "' + b"e" * 100_000])
def test_every_whole_line_of_a_long_report_is_kept(tmp_path: Path, end: bytes) -> None:
    write(tmp_path / "out.ndjson")
    whole = (tmp_path / "out.ndjson").read_bytes() * 1_000
    (tmp_path / "out.ndjson").write_bytes(whole + end)

    with opened_report(tmp_path / "out.ndjson", lambda: 0, resume=True):
        assert (tmp_path / "out.ndjson").read_bytes() == whole


def test_a_report_is_on_the_disk_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def sync(number: int) -> None:
        sizes.append(os.fstat(number).st_size)

    monkeypatch.setattr(report, "os", SimpleNamespace(**{**vars(os), "fsync": sync}))

    write(tmp_path / "out.ndjson")

    assert sizes == [(tmp_path / "out.ndjson").stat().st_size]


def test_a_report_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    write(tmp_path / "out.ndjson")

    with pytest.raises(click.UsageError, match="is not empty: add --resume"):
        write(tmp_path / "out.ndjson")


def test_a_file_that_is_no_report_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "data.ndjson").write_bytes(b'{"resourceType": "Parameters"}')

    with pytest.raises(click.UsageError, match="is not the report of a run"):
        write(tmp_path / "data.ndjson", resume=True)

    assert (tmp_path / "data.ndjson").read_bytes() == b'{"resourceType": "Parameters"}'


def test_two_runs_do_not_write_one_report(tmp_path: Path) -> None:
    with (
        opened_report(tmp_path / "out.ndjson", lambda: 0, resume=False),
        pytest.raises(click.UsageError, match="of a run that has not ended"),
    ):
        write(tmp_path / "out.ndjson")


def test_a_full_disk_is_reported() -> None:
    with (
        pytest.raises(ReportFailed, match="/dev/full cannot be written: No space left"),
        opened_report(Path("/dev/full"), lambda: 0, resume=False) as report,
    ):
        report.add(REFUSED)


def test_a_line_of_what_is_published_names_its_version_and_address(tmp_path: Path) -> None:
    outcome = Outcome(
        file="a.json", result="created", status=201, id="d-1", version="3", location="/x"
    )

    with opened_report(tmp_path / "out.ndjson", lambda: 0, resume=False) as report:
        report.add(outcome)

    (record,) = map(json.loads, (tmp_path / "out.ndjson").read_bytes().splitlines())
    assert (record["id"], record["version"], record["location"]) == ("d-1", "3", "/x")
    assert (record["reason"], record["problems"], record["line"]) == (None, [], None)


@pytest.mark.parametrize("content", [b'[{"file": "a"}]', b'\n{"file": "a"}\n', b"x"])
def test_only_a_file_that_begins_as_a_report_is_continued(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data").write_bytes(content)

    with pytest.raises(click.UsageError, match="is not the report of a run"):
        write(tmp_path / "data", resume=True)

    assert (tmp_path / "data").read_bytes() == content


def test_only_the_user_can_read_a_new_report(tmp_path: Path) -> None:
    write(tmp_path / "out.ndjson")

    assert (tmp_path / "out.ndjson").stat().st_mode & 0o777 == 0o600


ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from fhirpub.cli.publish.bulk.report import opened_report
from fhirpub.cli.publish.outcome import Outcome

file = Path(sys.argv[1])
with opened_report(file, lambda: 0, resume=True) as report:
    most = file.stat().st_size + 10
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    report.add(Outcome(file="a.json", result="refused"))
"""
"""A program of its own: no file of a process with that limit can grow beyond it."""


def test_a_line_that_does_not_fit_on_the_disk_leaves_no_part_of_it(tmp_path: Path) -> None:
    (line,) = write(tmp_path / "out.ndjson")

    program = [sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path / "out.ndjson")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)

    assert "ReportFailed" in done.stderr
    assert "cannot be written: the disk is full" in done.stderr
    assert json.loads((tmp_path / "out.ndjson").read_bytes()) == line
