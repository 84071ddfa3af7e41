"""Where log lines are written: no write fails, and none waits for the process that reads them."""

from __future__ import annotations

import asyncio
import atexit
import io
import os
import select
import stat
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

MAX_WAITING = 1024 * 1024
"""Characters of lines that wait for a slow reader; further lines are dropped, and counted."""
_LAST_SECONDS = 1.0
_SOON_SECONDS = 0.05
_MOST_SOON = 100
"""To render so many takes less than a millisecond."""
_MAX_TOGETHER = 64 * 1024


class LogStream(io.TextIOBase):
    """A stream of whole lines, so that those of several workers stay apart.

    A line that cannot be written is dropped: no request and no task fails for it. The disk may
    be full (OSError), the reading process may have ended (OSError), or the stream has been closed
    before this one, as at the end of a process (ValueError).

    A pipe is asked first whether it takes a line: its reader may be slow or stopped, and the event
    loop would wait for it. What it does not take waits for a thread, which exists only then.
    Of several processes that write to one full pipe, one may still take the room from another
    between its question and its line. ``lost`` is called with the number of dropped lines once
    there is room again.
    """

    def __init__(self, stream: TextIO, *, lost: Callable[[int], None]) -> None:
        self._stream = stream
        self._most_together = _MAX_TOGETHER if _is_file(stream) else select.PIPE_BUF
        self._is_ready = _readiness(stream)
        self._report_lost = lost
        self._reset()
        os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.end)

    def _reset(self) -> None:
        """Begin without waiting lines: after a fork they are the parent's."""
        self._waiting: deque[str] = deque()
        self._size = self._lost = 0
        self._soon: list[Callable[[], str]] = []
        self._writer: threading.Thread | None = None
        self._lock = threading.Lock()

    def write_soon(self, render: Callable[[], str]) -> None:
        """Write a line with others that come within some milliseconds, in one call of the system.

        Each such call lets another thread have the interpreter, which costs far more than itself.
        Lines that are rendered together find the code for it in the processor's caches.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.write(render())
            return
        with self._lock:
            self._soon.append(render)
            count = len(self._soon)
        if count == _MOST_SOON:
            self._write_together()
        elif count == 1:
            loop.call_later(_SOON_SECONDS, self._write_together)

    def _write_together(self) -> None:
        with self._lock:
            renders, self._soon = self._soon, []
        group, size = list[str](), 0
        for render in renders:
            line = render()
            if group and size + len(line) > self._most_together:
                self._write_line("".join(group))
                group, size = [], 0
            group.append(line)
            size += len(line)
        if group:
            self._write_line("".join(group))

    def write(self, text: str) -> int:
        """Write a line, now or when the reader is ready, behind those that came before."""
        if self._soon:
            self._write_together()
        self._write_line(text)
        return len(text)

    def _write_line(self, text: str) -> None:
        if self._waiting or not self._is_ready(text):
            self._set_aside(text)
        else:
            self._write_now(text)

    def flush(self) -> None:
        """Flush the stream."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def _write_now(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)

    def _set_aside(self, text: str) -> None:
        with self._lock:
            if self._size + len(text) > MAX_WAITING:
                self._lost += 1
                return
            self._waiting.append(text)
            self._size += len(text)
            if self._writer is None:
                writer = threading.Thread(target=self._write_waiting, daemon=True)
                with suppress(RuntimeError):  # none can be started: the next line asks
                    writer.start()
                    self._writer = writer

    def _write_waiting(self) -> None:
        while text := self._first_waiting():
            self._write_now(text)
            with self._lock:
                self._waiting.popleft()
                self._size -= len(text)

    def _first_waiting(self) -> str:
        """Return the line to write next; empty if there is none, which ends the thread."""
        with self._lock:
            if self._waiting:
                return self._waiting[0]
            self._writer, lost, self._lost = None, self._lost, 0
        if lost:
            self._report_lost(lost)
        return ""

    def end(self) -> None:
        """Write the last lines, and give their reader a moment: the process ends."""
        self._write_together()
        writer = self._writer
        if writer is not None and writer.is_alive():
            writer.join(_LAST_SECONDS)


def _is_file(stream: TextIO) -> bool:
    """Return whether it is a file, or memory, which take every line at once."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return True


def _readiness(stream: TextIO) -> Callable[[str], bool]:
    """Return a function that checks whether a line can be written at once."""
    if _is_file(stream):
        return lambda _line: True
    poll = select.poll()
    poll.register(stream.fileno(), select.POLLOUT)
    return lambda text: _fits(text) and bool(poll.poll(0))


def _fits(text: str) -> bool:
    """Return whether a pipe that is ready takes the text at once: PIPE_BUF bytes."""
    return len(text) <= select.PIPE_BUF // (1 if text.isascii() else 4)
