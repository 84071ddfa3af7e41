"""No line of the log makes the event loop wait, or fail."""

from __future__ import annotations

import io
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TextIO

import pytest

from fhirpub.runtime import log_stream
from fhirpub.runtime.log_stream import MAX_WAITING, LogStream, _fits
from tests.waiting import until, wait_until

LINE = "x" * 99 + "\n"


@dataclass
class Pipe:
    """A log that is a pipe, whose reader reads only when it is asked to."""

    reading: int
    writing: TextIO
    lost: list[int] = field(default_factory=list)

    def fill(self) -> None:
        """Fill it, so that the next write would wait."""
        number = self.writing.fileno()
        os.set_blocking(number, False)
        with suppress(BlockingIOError):
            while True:
                os.write(number, b"#" * 4096)
        os.set_blocking(number, True)

    def drain(self) -> bytes:
        """Return what has come since."""
        os.set_blocking(self.reading, False)
        found = b""
        with suppress(BlockingIOError):
            while True:
                found += os.read(self.reading, 65_536)
        return found

    def read(self) -> str:
        """Return what has come up to the line "end", leaving out what filled it."""
        found = bytearray()

        def is_whole() -> bool:
            found.extend(self.drain())
            return found.endswith(b"end\n")

        assert wait_until(is_whole)
        return found.decode().lstrip("#")


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A pipe with nothing in it."""
    reading, writing = os.pipe()
    stream = io.TextIOWrapper(io.FileIO(writing, "w"), write_through=True)
    yield Pipe(reading, stream)
    os.close(reading)
    stream.close()


def test_lines_for_a_reader_that_does_not_read_wait_for_nobody(pipe: Pipe) -> None:
    log = LogStream(pipe.writing, lost=pipe.lost.append)
    pipe.fill()

    begun = time.perf_counter()
    for _ in range(1_000):
        log.write(LINE)
    seconds = time.perf_counter() - begun
    log.write("end\n")

    assert seconds < 20  # a write that waited would wait for ever: nothing reads
    assert pipe.read() == LINE * 1_000 + "end\n"
    assert pipe.lost == []


def test_lines_that_wait_are_bounded_and_the_others_are_counted(pipe: Pipe) -> None:
    log = LogStream(pipe.writing, lost=pipe.lost.append)
    pipe.fill()

    room = MAX_WAITING // len(LINE)
    for _ in range(room + 1_000):
        log.write(LINE)

    assert wait_until(lambda: not pipe.drain() and bool(pipe.lost))
    assert pipe.lost == [1_000]


def test_a_line_that_is_longer_than_a_pipe_takes_at_once_is_written_whole(pipe: Pipe) -> None:
    log = LogStream(pipe.writing, lost=pipe.lost.append)
    long = "é" * 200_000

    log.write(f"{long}\n")
    log.write("end\n")

    assert pipe.read() == f"{long}\nend\n"


def test_a_line_that_follows_those_that_wait_does_not_overtake_them(pipe: Pipe) -> None:
    log = LogStream(pipe.writing, lost=pipe.lost.append)
    pipe.fill()
    log.write("first\n")
    os.read(pipe.reading, 8_192)

    log.write("second\n")
    log.write("end\n")

    assert pipe.read() == "first\nsecond\nend\n"


def test_a_reader_that_has_left_fails_nobody(pipe: Pipe) -> None:
    log = LogStream(pipe.writing, lost=pipe.lost.append)
    other = os.dup(pipe.reading)
    os.close(pipe.reading)
    os.close(other)

    log.write(LINE)
    log.flush()

    pipe.reading = os.open(os.devnull, os.O_RDONLY)


ENDING = """
import asyncio
import os
import re
import subprocess
import sys
import sys
from fhirpub.runtime.logging import configure, end_log, logger, request_lines

configure(level="info", form="text")

async def main():
    request_lines().write("info", "answered", {"status": 200, "client": "c"}, kind="x")
    logger().info("between")
    request_lines().write("info", "answered", {"status": 204, "client": "c"}, kind="x")
    exec(sys.argv[1])

asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["", "end_log(); os._exit(0)"])
def test_lines_that_were_to_be_written_soon_are_written_at_the_end(end: str) -> None:
    words = [sys.executable, "-c", ENDING, end]

    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)

    assert re.findall(r"answered|between|status=\d+", done.stderr) == [
        *("answered", "status=200", "between", "answered", "status=204"),
    ]


def no_loss(count: int) -> None:
    raise AssertionError(count)


class Writes(io.StringIO):
    """Notes each write: together they are one call of the system."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    def write(self, text: str, /) -> int:
        self.noted.append(text)
        return len(text)


def test_without_a_loop_a_line_is_written_at_once() -> None:
    writes = Writes()

    LogStream(writes, lost=no_loss).write_soon(lambda: "one\n")

    assert writes.noted == ["one\n"]


async def test_lines_that_come_together_are_written_together_soon() -> None:
    writes = Writes()
    log = LogStream(writes, lost=no_loss)

    for line in ("one\n", "two\n"):
        log.write_soon(lambda line=line: line)  # type: ignore[misc]
    assert writes.noted == []
    await until(lambda: writes.noted)
    log.write_soon(lambda: "three\n")
    await until(lambda: len(writes.noted) > 1)

    assert writes.noted == ["one\ntwo\n", "three\n"]


async def test_a_line_that_is_written_at_once_does_not_overtake_those_of_before() -> None:
    writes = Writes()
    log = LogStream(writes, lost=no_loss)

    log.write_soon(lambda: "one\n")
    assert log.write("two\n") == 4

    assert writes.noted == ["one\n", "two\n"]


async def test_so_many_lines_are_written_before_they_are_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_stream, "_MOST_SOON", 3)
    monkeypatch.setattr(log_stream, "_SOON_SECONDS", 3_600.0)
    writes = Writes()
    log = LogStream(writes, lost=no_loss)

    for line in "1234":
        log.write_soon(lambda line=line: line)  # type: ignore[misc]

    assert writes.noted == ["123"]


async def test_lines_are_written_together_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream, "_MAX_TOGETHER", 4)
    writes = Writes()
    log = LogStream(writes, lost=no_loss)

    for line in ("12", "34", "5", "6", "678910", "11"):
        log.write_soon(lambda line=line: line)  # type: ignore[misc]
    log.end()

    assert writes.noted == ["1234", "56", "678910", "11"]


def test_lines_that_wait_have_the_size_that_is_allowed(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_stream, "MAX_WAITING", 3 * len(LINE))
    log = LogStream(pipe.writing, lost=pipe.lost.append)
    pipe.fill()

    for _ in range(4):
        log.write(LINE)

    assert wait_until(lambda: not pipe.drain() and bool(pipe.lost))
    assert pipe.lost == [1]

    # Once they are written there is room for as many again, and others are counted from none on.
    pipe.fill()
    for _ in range(5):
        log.write(LINE)
    assert wait_until(lambda: not pipe.drain() and len(pipe.lost) > 1)
    assert pipe.lost == [1, 2]


FORKING = """
import io, os
from fhirpub.runtime.log_stream import LogStream

reading, writing = os.pipe()
os.set_blocking(writing, False)
try:
    while True:
        os.write(writing, b"#" * 4096)
except BlockingIOError:
    os.set_blocking(writing, True)
stream = io.TextIOWrapper(io.FileIO(writing, "w"), write_through=True)
log = LogStream(stream, lost=print)
log.write("of the parent\\n")
child = os.fork()
if not child:
    log.end()
    os._exit(len(log._waiting))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(log._waiting), flush=True)
os._exit(0)
"""


def test_a_process_that_is_forked_begins_without_the_lines_of_its_parent() -> None:
    words = [sys.executable, "-c", FORKING]

    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "0 1\n"


class NoThread:
    """A thread that the system does not start, since there are too many."""

    def __init__(self, **_given: object) -> None:
        pass

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_lines_that_no_thread_could_be_started_for_are_written_with_the_next(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogStream(pipe.writing, lost=pipe.lost.append)
    pipe.fill()
    with monkeypatch.context() as patched:
        patched.setattr(log_stream, "threading", SimpleNamespace(Thread=NoThread))
        log.write("first\n")

    log.write("end\n")

    assert pipe.read() == "first\nend\n"


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("x" * select.PIPE_BUF, True),
        ("x" * (select.PIPE_BUF + 1), False),
        ("é" * (select.PIPE_BUF // 4), True),
        ("é" * (select.PIPE_BUF // 4 + 1), False),
    ],
    ids=["ascii", "longer", "other", "longer other"],
)
def test_a_line_fits_into_a_pipe_by_the_bytes_that_it_may_have(text: str, *, fits: bool) -> None:
    assert _fits(text) is fits
