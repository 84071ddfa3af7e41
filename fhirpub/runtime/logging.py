"""Log lines: an event's name and its facts, never a body, a patient's data or a secret."""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import structlog

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(*, level: str, form: str, stream: TextIO | None = None) -> None:
    """Send every log line, also those of libraries, to a stream (standard error) in one form."""
    lines: Any = _Lines(stream or _standard_error())
    renderer: Any = structlog.processors.JSONRenderer()
    if form == "text":
        renderer = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=24)
    shared: list[Any] = [
        _fault,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _one_line,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(lines),  # a line is one write
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(lines)
    chain = [_library, *shared]
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(renderer, foreign_pre_chain=chain))
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


class _Lines(io.TextIOBase):
    """A stream that drops a line which cannot be written: no request and no task fails for it.

    The disk may be full (OSError), the reading process may have ended (OSError), or the stream
    has been closed before this one, as at the end of a process (ValueError).
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


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


def where(problem: BaseException) -> dict[str, Any]:
    """Return the type of an exception, and the file and line that raised it."""
    frames = traceback.extract_tb(problem.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return {"error": type(problem).__name__, "place": place}


def _one_line(_logger: object, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Take control characters out of what came from outside (CWE-117)."""
    return {key: _plain(value) for key, value in event.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(name if name.isprintable() else "\N{REPLACEMENT CHARACTER}" for name in value)
