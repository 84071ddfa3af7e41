"""One load from its beginning to its end, with a service of prepared responses."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.publish.bulk import run as module
from fhirpub.cli.publish.bulk.done import Done
from fhirpub.cli.publish.bulk.intake import Intake
from fhirpub.cli.publish.bulk.items import Item
from fhirpub.cli.publish.bulk.lines import Reading
from fhirpub.cli.publish.bulk.progress import Expected
from fhirpub.cli.publish.bulk.report import Report, ReportFailed
from fhirpub.cli.publish.bulk.run import Ending, Options, _counted, _Run, load_all
from fhirpub.cli.publish.bulk.sources import Source, source_of
from fhirpub.cli.publish.outcome import Outcome
from tests.bodies import register_body
from tests.unit.cli.publish.services import PUBLISHED, REFUSED, service_at

INVALID: Any = (422, {}, {"resourceType": "OperationOutcome", "issue": []})


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "x.ndjson"
    file.write_text("\n".join(json.dumps(register_body(f"R-{n}")) for n in range(3)))
    return file


def load(stub: Any, file: Path, **options: Any) -> Ending:
    service = service_at(stub.address, grant={"client_id": "a"})
    return load_all(service, sources(file), Options(jobs=1, **options))


def sources(file: Path) -> list[Source]:
    return [source_of(str(file), all_lines=False)]


def registered(stub: Any) -> int:
    return sum(path.endswith("$register") for path, _, _ in stub.requests)


def test_all_lines_are_published_and_counted(stub: Any, lines: Path) -> None:
    stub.answers = [PUBLISHED, INVALID, PUBLISHED]

    ending = load(stub, lines)

    assert registered(stub) == 3
    assert dict(ending.tally.results) == {"created": 2, "refused": 1}
    assert (ending.skipped, ending.left, ending.failure, ending.interrupted) == (0, 0, None, False)


def test_one_token_is_requested_with_the_grant(stub: Any, lines: Path) -> None:
    stub.answers = [PUBLISHED]

    load(stub, lines)

    tokens = [body for path, _, body in stub.requests if path == "/oauth/token"]
    assert tokens == [b"grant_type=client_credentials&client_id=a"]


def test_a_refusal_of_the_client_ends_the_load_and_what_is_left_is_known(
    stub: Any, lines: Path
) -> None:
    stub.answers = [PUBLISHED, REFUSED]

    ending = load(stub, lines)

    assert registered(stub) == 2
    assert ending.failure is not None
    assert "the service refuses this client (403" in ending.failure.message
    assert (ending.tally.total, ending.left) == (1, 2)


def test_each_outcome_is_in_the_report(stub: Any, lines: Path, tmp_path: Path) -> None:
    stub.answers = [PUBLISHED, INVALID, PUBLISHED]

    load(stub, lines, report=tmp_path / "report")

    records = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    assert [(one["line"], one["result"]) for one in records] == [
        (1, "created"),
        (2, "refused"),
        (3, "created"),
    ]


def test_only_a_load_with_a_report_can_be_resumed(stub: Any, lines: Path, tmp_path: Path) -> None:
    stub.answers = [PUBLISHED] * 6

    endings = [load(stub, lines), load(stub, lines, report=tmp_path / "report")]

    assert [ending.has_report for ending in endings] == [False, True]


def test_a_load_that_is_resumed_leaves_out_what_is_published(
    stub: Any, lines: Path, tmp_path: Path
) -> None:
    stub.answers = [PUBLISHED, INVALID, PUBLISHED]
    load(stub, lines, report=tmp_path / "report")
    stub.requests.clear()
    stub.answers = [PUBLISHED]

    ending = load(stub, lines, report=tmp_path / "report", resume=True)

    assert registered(stub) == 1
    assert (ending.skipped, ending.tally.total, ending.left) == (2, 1, 0)


def test_items_of_a_source_are_read_in_their_order(lines: Path) -> None:
    reading = Reading(10**7, lambda: False, lambda _count: None)
    items: list[Item] = [item for source in sources(lines) for item in source.items(reading)]

    assert [item.line for item in items] == [1, 2, 3]


# Notes


def a_run() -> _Run:
    return _Run(service_at(), [], Options(jobs=1), None, Done())


def test_of_notes_in_one_moment_the_first_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run()

    run._note("one")
    run._note("two")

    assert "one" in (shown := capsys.readouterr().err)
    assert "two" not in shown
    assert "\r" not in shown  # this is no terminal


def test_notes_of_other_moments_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run()

    for ago, text in ((1, "soon"), (10, "later")):
        run._noted = time.monotonic() - ago
        run._note(text)

    shown = capsys.readouterr().err
    assert ("soon" in shown, "later" in shown) == (False, True)


def test_a_stop_is_noted_once_although_there_was_a_note(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = a_run()
    run._note("one")

    run._stop()
    first = capsys.readouterr().err
    run._stop()

    assert "waiting for requests in flight; Ctrl-C again to give them up" in first
    assert capsys.readouterr().err == ""
    assert run.stopped.is_set()


def test_what_is_left_is_never_less_than_nothing() -> None:
    run = a_run()

    assert (run._left(5, 2), run._left(1, 2), run._left(None, 2)) == (3, 0, None)


def test_on_a_terminal_a_note_replaces_the_line_of_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "is_terminal", lambda _stream: True)

    a_run()._note("one")

    shown = capsys.readouterr().err
    assert shown.startswith(f"\r{'':<90}\r")
    assert shown.endswith("\n")


def test_what_was_not_sent_is_in_the_report_too(stub: Any, lines: Path, tmp_path: Path) -> None:
    stub.answers = [PUBLISHED]
    lines.write_text("{\n" + lines.read_text())

    load(stub, lines, report=tmp_path / "report")

    records = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    assert sorted((one["line"], one["result"]) for one in records) == [
        *((1, "not sent"), (2, "created"), (3, "created"), (4, "created")),
    ]


def test_lines_that_are_too_long_count_as_read(lines: Path) -> None:
    run, reading = a_run(), Reading(9, lambda: False, lambda _count: None)
    expected = Expected(sources(lines), run.stopped)

    items = list(_counted(sources(lines), reading, expected))

    assert [bool(item.problem) for item in items] == [True] * 3
    assert expected.lines_read == 3


def test_a_line_counts_as_read_when_it_is_taken(lines: Path) -> None:
    run, reading = a_run(), Reading(10**7, lambda: False, lambda _count: None)
    expected = Expected(sources(lines), run.stopped)

    taken = [expected.lines_read for _ in _counted(sources(lines), reading, expected)]

    assert taken == [1, 2, 3]


def test_what_cannot_be_written_into_the_report_does_not_count() -> None:
    run = a_run()
    run.report = Report(Path("/dev/full"), os.open("/dev/full", os.O_WRONLY), lambda: 0)

    with pytest.raises(ReportFailed):
        run._record(Item(file=Path("a"), base=Path()), Outcome(file="a", result="created"))
    os.close(run.report.descriptor)

    assert run.tally.total == 0


def test_progress_counts_what_was_left_out(tmp_path: Path) -> None:
    run = a_run()
    expected = Expected([], run.stopped, files=4)

    shown = run._progress(Intake(iter(()), run.service, run.stopped, skipped=2), expected)

    assert "  2 of 4  " in shown
