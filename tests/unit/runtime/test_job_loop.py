"""What a process of a pool does with each job, in this process."""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime import job_loop
from fhirpub.runtime.job_loop import ANSWER, JOB, _has_next, _open, _pipes, _read, _run, _run_jobs
from fhirpub.runtime.memory_file import MemoryFile


def joined(environment: str, body: bytes, *, more: str = "") -> str:
    return f"{environment} {body.decode()}{more}"


def refuse(_environment: Any, _body: bytes) -> None:
    raise StoreUnavailable("not now")


def fail(_environment: Any, _body: bytes) -> None:
    raise ValueError("Ashdown")


def test_a_function_gets_the_environment_and_the_bytes() -> None:
    assert _run(pickle.dumps(partial(joined, more="!")), "env", b"body") == ("result", "env body!")


def test_a_refusal_is_handed_to_the_caller_as_it_is() -> None:
    kind, refusal = _run(pickle.dumps(refuse), None, b"")

    assert kind == "refusal"
    assert isinstance(refusal, StoreUnavailable)
    assert refusal.reason == "not now"


def test_a_fault_is_logged_by_its_place_without_its_text() -> None:
    with capture_logs() as lines:
        outcome = _run(pickle.dumps(fail), None, b"")

    assert outcome == ("fault", None)
    (line,) = lines
    assert (line["event"], line["log_level"]) == ("failed", "error")
    assert "Ashdown" not in str(line)


def test_what_is_no_function_is_a_fault() -> None:
    with capture_logs():
        assert _run(b"no pickle", None, b"") == ("fault", None)


def test_a_process_without_an_environment_ends() -> None:
    def wrong(_given: Any) -> None:
        raise ValueError("Ashdown")

    with capture_logs() as lines, pytest.raises(SystemExit) as ended:
        _open(wrong, None)

    assert ended.value.code == 1
    assert [one["event"] for one in lines] == ["compute process cannot start"]
    assert "Ashdown" not in str(lines)


@contextmanager
def files() -> Iterator[tuple[MemoryFile, MemoryFile]]:
    with closing(MemoryFile()) as jobs, closing(MemoryFile()) as outcomes:
        yield jobs, outcomes


@pytest.mark.parametrize("sent", [b"", b"\0" * (JOB.size - 1)])
def test_without_a_whole_announcement_no_job_follows(sent: bytes) -> None:
    with files() as (jobs, _outcomes):
        assert _read(io.BytesIO(sent), jobs) is None


def test_a_job_is_its_function_and_its_bytes() -> None:
    with files() as (jobs, _outcomes):
        for part in (b"head", b"the body"):
            jobs.append(part)
        jobs.end()

        assert _read(io.BytesIO(JOB.pack(4, 8)), jobs) == [b"head", b"the body"]


def test_a_job_that_waits_or_the_end_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_loop, "_TRIM_SECONDS", 0)
    reading, writing = os.pipe()
    with open(reading, "rb") as jobs:  # noqa: PTH123 - a descriptor
        assert _has_next(jobs) is False
        os.write(writing, b"x")
        assert _has_next(jobs) is True
        os.close(writing)
        assert _has_next(jobs) is True


@contextmanager
def streams(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Files in place of standard input, output and errors; yields the last two."""
    paths = [tmp_path / name for name in ("in", "out", "err")]
    paths[0].write_bytes(b"a job")
    kept = [os.dup(number) for number in range(3)]
    for number, path in enumerate(paths):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    try:
        yield paths[1], paths[2]
    finally:
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)


def test_what_is_printed_is_an_error_message_and_no_answer(tmp_path: Path) -> None:
    with streams(tmp_path) as (output, errors):
        jobs, answers = _pipes()
        with jobs, answers:
            os.write(1, b"printed")
            answers.write(b"answer")
            job = jobs.read()

    assert job == b"a job"
    assert (output.read_bytes(), errors.read_bytes()) == (b"answer", b"printed")


class Sent(io.BytesIO):
    """Jobs that arrive one after the other, each in the file once it is read."""

    def __init__(self, file: MemoryFile, *jobs: tuple[Any, bytes]) -> None:
        super().__init__()
        self._file, self._jobs = file, [*jobs]

    def read(self, _size: int | None = -1, /) -> bytes:
        if not self._jobs:
            return b""
        function, body = self._jobs.pop(0)
        header = pickle.dumps(function)
        for part in (header, body):
            self._file.append(part)
        self._file.end()
        return JOB.pack(len(header), len(body))


class Answers(io.BytesIO):
    """Answers of which each is taken when it is announced."""

    def __init__(self, file: MemoryFile) -> None:
        super().__init__()
        self._file, self.outcomes = file, []  # type: tuple[MemoryFile, list[Any]]

    def write(self, data: Any, /) -> int:
        (size,) = ANSWER.unpack(data)
        (outcome,) = self._file.take(size)
        self.outcomes.append(pickle.loads(outcome))
        return len(data)


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the loop does to the collector and to memory, without doing it to this process."""
    notes: list[str] = []
    collector = {name: partial(notes.append, name) for name in ("collect", "freeze", "disable")}
    monkeypatch.setattr(job_loop, "gc", SimpleNamespace(**collector))
    monkeypatch.setattr(job_loop, "return_memory", lambda: notes.append("returned"))
    monkeypatch.setattr(job_loop, "_has_next", lambda _jobs: True)
    return notes


def answered(monkeypatch: pytest.MonkeyPatch, *jobs: tuple[Any, bytes]) -> tuple[Any, list[Any]]:
    """Return what the environment was opened with, and the outcomes of jobs."""
    opened: list[Any] = []

    def open_environment(given: Any) -> str:
        opened.append(given)
        return f"env of {given}"

    with files() as (job_file, outcome_file):
        descriptors = [str(one.descriptor) for one in (job_file, outcome_file)]
        monkeypatch.setattr(sys, "argv", ["x", *descriptors])
        monkeypatch.setattr(sys, "path", [*sys.path])
        path = [*sys.path]
        first = ((path, "settings"), b"")
        answers = Answers(outcome_file)
        _run_jobs(Sent(job_file, first, *jobs), answers, open_environment)
        return opened, answers.outcomes


@pytest.mark.usefixtures("frozen")
def test_the_first_job_opens_the_environment_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened, outcomes = answered(monkeypatch, (joined, b"a"), (refuse, b""), (joined, b"b"))

    assert opened == ["settings"]
    assert [kind for kind, _value in outcomes] == ["result", "result", "refusal", "result"]
    assert [value for kind, value in outcomes if kind == "result"] == [
        None,
        "env of settings a",
        "env of settings b",
    ]


def test_what_lives_for_ever_is_frozen_once_and_the_rest_collected_after_each_job(
    monkeypatch: pytest.MonkeyPatch, frozen: list[str]
) -> None:
    answered(monkeypatch, (joined, b"a"), (joined, b"b"))

    assert frozen == ["collect", "freeze", "disable", "collect", "collect", "collect"]


@pytest.mark.parametrize(
    ("has_next", "long", "returned"), [(True, 9, 0), (False, 9, 1), (True, -1, 1)]
)
def test_memory_is_returned_after_a_long_job_or_when_none_follows(
    monkeypatch: pytest.MonkeyPatch,
    frozen: list[str],
    long: float,
    returned: int,
    *,
    has_next: bool,
) -> None:
    monkeypatch.setattr(job_loop, "_has_next", lambda _jobs: has_next)
    monkeypatch.setattr(job_loop, "_LONG_SECONDS", long)

    answered(monkeypatch)

    assert frozen.count("returned") == returned
