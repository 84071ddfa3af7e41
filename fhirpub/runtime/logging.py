"""Log lines: an event's name and its facts, never a body, a patient's data or a secret."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, TextIO, cast

import structlog

from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.runtime.faults import where
from fhirpub.runtime.log_sampling import WINDOW_MS, LineSampler
from fhirpub.runtime.log_stream import LogStream
from fhirpub.runtime.request_lines import RequestLines, plain

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_SAMPLED = {
    "keys not fetched": "reason",
    "address not permitted": "client_id",
    "administration refused": "reason",
    "sign-in refused": "reason",
    "keys of a caller not read": "file",
    "failed": "place",
}
"""Events that a caller without a token can cause, and the field that distinguishes their kinds."""


def configure(
    *, level: str, form: str, stream: TextIO | None = None, clock: Clock = now_ms
) -> None:
    """Send log lines, also those of libraries, to a stream (standard error) in one form.

    Of lines that a caller without a token can cause, only some are written (D-300).
    """
    global _request_lines, _stream  # noqa: PLW0603 - as structlog keeps its configuration
    sampling = _Sampling(clock)
    lines = _stream = LogStream(stream or _standard_error(), lost=_report_lost)
    _request_lines = RequestLines(
        lines.write_soon, form=form, least=_LEVELS[level], admits=sampling.admits, clock=clock
    )
    renderer: Any = structlog.processors.JSONRenderer()
    below: list[Any] = []
    if form == "text":
        renderer = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=24)
        below = [_traceback_below]
    shared: list[Any] = [
        _fault,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _one_line,
        *below,
    ]
    structlog.configure(
        processors=[sampling, *shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", lines)),  # a line is one write
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(lines)
    chain = [_library, *shared]
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(renderer, foreign_pre_chain=chain))
    handler.addFilter(sampling.admits_record)
    logging.basicConfig(handlers=[handler], level=max(_LEVELS[level], logging.WARNING), force=True)


def _standard_error() -> TextIO:
    """Return standard error, without a buffer if it is a file.

    A line that cannot be written would stay in the buffer, and the process exit with status 120
    because it still cannot be written then. Without a standard error, no log lines are wanted
    among a command's results.
    """
    if sys.stderr is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    try:
        file = io.FileIO(sys.stderr.fileno(), "w", closefd=False)
    except OSError:
        return sys.stderr
    # As Python itself does it with PYTHONUNBUFFERED.
    return io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", write_through=True)


class _Sampling:
    """Drops lines without a client beyond some of each kind, and reports how many it dropped."""

    def __init__(self, clock: Clock) -> None:
        self._sampler = LineSampler(clock)
        self._clock = clock
        self._due = 0

    def __call__(
        self, _logger: object, level: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        name = event["event"]
        field = _SAMPLED.get(name)
        if field is None or event.get("client") is not None:
            return event
        if self.admits(level, name, str(event.get(field))):
            return event
        raise structlog.DropEvent

    def admits_record(self, record: logging.LogRecord) -> bool:
        """Return whether a library's line is written, as a filter of a handler."""
        place = f"{record.filename}:{record.lineno}"
        return self.admits(record.levelname.lower(), "a library logged", place)

    def admits(self, level: str, event: str, reason: str) -> bool:
        """Count a line of a kind, and return whether it is one of those that are written."""
        if not self._sampler.milliseconds_left():
            self._report()
        if self._sampler.admits(level, event, reason):
            return True
        self._report_later()
        return False

    def _report_later(self) -> None:
        """Report at the end of the window; without an event loop, the next line does it."""
        now = self._clock()
        if self._due - WINDOW_MS <= now < self._due:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        left = self._sampler.milliseconds_left()
        self._due = now + left
        loop.call_later(left / 1000, self._report)

    def _report(self) -> None:
        for kind, count in self._sampler.renew():
            write = getattr(logger(), kind.level)
            write("lines left out", line=kind.event, reason=kind.reason, count=count)


_request_lines: RequestLines | None = None
_stream: LogStream | None = None


def end_log() -> None:
    """Write the last lines, in a process that ends without what Python does at an exit."""
    if _stream is not None:
        _stream.end()


def request_lines() -> RequestLines | None:
    """Return what writes the lines of requests; None where no log is configured."""
    return _request_lines


def _report_lost(count: int) -> None:
    logger().warning("lines left out", line="any", reason="the log is not read", count=count)


def logger() -> Any:
    """Return a logger: ``logger().info("refused", status=422)``."""
    return structlog.get_logger()


def _library(_logger: object, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Return where a library logged, not what: its text may hold a request or a secret."""
    record: logging.LogRecord = event["_record"]
    event["event"] = "a library logged"
    event["library"] = record.name
    event["at"] = f"{record.filename}:{record.lineno}"
    return event


def _fault(_logger: object, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Return the type and place of an exception; its text may hold the data it failed on."""
    problem = event.pop("exc_info", None)
    if isinstance(problem, tuple):
        problem = problem[1]
    if isinstance(problem, BaseException):
        event |= where(problem)
    return event


def _one_line(_logger: object, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Take control characters out of what came from outside (CWE-117)."""
    return {key: plain(value) for key, value in event.items()}


def _traceback_below(_logger: object, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Put a traceback below its line, for developers."""
    if frames := event.pop("traceback", None):
        event["exception"] = "\n".join(f"    {frame}" for frame in frames)
    return event
