"""Processes of a measurement that are started once and run several phases on command.

A child is a module. It reads one line of JSON, prepares, prints ``"ready"``, and then runs a
phase for each line with a number of seconds. After each phase it prints one line of JSON. The
first line may contain a token: it is in no list of processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Self

READY = "ready"
_AUTOGROUP = Path("/proc/self/autogroup")
_STOP_SECONDS = 5.0
_SAID_CHARACTERS = 2_000


class ChildFailed(Exception):
    """A child ended, or did not answer in time."""


class Child:
    """A running child; use it as a context manager, which always ends the process."""

    def __init__(self, module: str, setup: Mapping[str, Any], log: Path) -> None:
        self._module = module
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self._received = b""
        self._write(setup)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                _stream(stream).close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_STOP_SECONDS)

    @property
    def pid(self) -> int:
        return self._process.pid

    def await_ready(self, seconds: float) -> None:
        """Wait until the child is prepared. Raises ChildFailed."""
        if self.result(seconds) != READY:
            raise ChildFailed(f"{self._module} is not ready")

    def begin(self, seconds: float) -> None:
        """Start a phase."""
        self._write(seconds)

    def result(self, seconds: float) -> Any:
        """Return the next value that the child prints. Raises ChildFailed."""
        stream = _stream(self._process.stdout)
        until = time.monotonic() + seconds
        while b"\n" not in self._received:
            left = max(0.0, until - time.monotonic())
            readable, _, _ = select.select([stream], [], [], left)
            piece = os.read(stream.fileno(), 65_536) if readable else b""
            if not piece:
                reason = "ended" if readable else f"did not answer within {seconds:.0f} s"
                said = self._log.read_text(errors="replace")[-_SAID_CHARACTERS:]
                raise ChildFailed(f"{self._module} {reason}\n{said}".rstrip())
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)

    def _write(self, value: Any) -> None:
        stream = _stream(self._process.stdin)
        try:
            stream.write(json.dumps(value).encode() + b"\n")
            stream.flush()
        except BrokenPipeError:
            said = self._log.read_text(errors="replace")[-_SAID_CHARACTERS:]
            raise ChildFailed(f"{self._module} ended\n{said}".rstrip()) from None


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ChildFailed("a child without pipes")
    return stream


def lower_priority(nice: int) -> None:
    """Let the processes of other sessions come first, by so much niceness (0 to 19).

    Where Linux groups processes by session, each session gets an equal share of the processor,
    whatever the niceness of its processes: that of the session has to be changed as well.
    """
    os.nice(nice)
    with contextlib.suppress(OSError):  # no such groups
        _AUTOGROUP.write_text(str(nice), encoding="ascii")


def read_setup() -> dict[str, Any]:
    """Return the setup that the parent sends to this child."""
    setup: dict[str, Any] = json.loads(sys.stdin.readline())
    return setup


def read_phase() -> float | None:
    """Return the seconds of the next phase; None if the parent has ended."""
    line = sys.stdin.readline()
    return float(line) if line.strip() else None


def write(value: Any) -> None:
    """Send a value to the parent."""
    print(json.dumps(value), flush=True)


def run_phases(phase: Callable[[float], Any]) -> None:
    """Run a blocking phase for each command of the parent."""
    write(READY)
    while (seconds := read_phase()) is not None:
        write(phase(seconds))
