"""The line that a request leaves in the log: one for each, and therefore cheap.

It has the form of all other lines. Made by structlog it would take ten times as long, since each
line goes through every step of a configuration that fits all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

import orjson

from fhirpub.runtime.clock import Clock

Level = Literal["debug", "info", "warning", "error"]
Fact = str | int | float | Sequence[str]
_NUMBERS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class RequestLines:
    """Writes lines of requests. Those of requests without a client are sampled."""

    def __init__(
        self,
        write: Callable[[Callable[[], str]], object],
        *,
        form: str,
        least: int,
        admits: Callable[[str, str, str], bool],
        clock: Clock,
    ) -> None:
        """Write lines from a level on; ``admits`` counts a level, an event and a reason.

        ``write`` is handed a function that renders a line, and may call it later.
        """
        self._write = write
        self._least = least
        self._admits = admits
        self._clock = clock
        self._render = _as_text if form == "text" else _as_json
        self._second = -1
        self._prefix = ""

    def write(self, level: Level, event: str, facts: Mapping[str, Fact], *, kind: str) -> None:
        """Write a line. ``kind`` is what the sampled lines of an event are distinguished by."""
        if _NUMBERS[level] < self._least:
            return
        if "client" not in facts and not self._admits(level, event, kind):
            return
        self._write(partial(self._line, self._clock(), level, event, facts))

    def _line(self, at: int, level: Level, event: str, facts: Mapping[str, Fact]) -> str:
        timestamp = self._timestamp(at)
        line = self._render(timestamp, level, event, facts)
        if line[:-1].isprintable():
            return line
        # Hardly ever: what came from outside, or a traceback.
        clean = {name: plain(value) for name, value in facts.items()}
        return self._render(timestamp, level, event, clean)

    def _timestamp(self, at: int) -> str:
        second, milliseconds = divmod(at, 1000)
        if second != self._second:
            self._second = second
            self._prefix = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._prefix}.{milliseconds:03}Z"


def plain(value: Any) -> Any:
    """Return a value without control characters, which came from outside (CWE-117)."""
    if isinstance(value, str):
        return value if value.isprintable() else _printable(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _printable(text: str) -> str:
    return "".join(name if name.isprintable() else "\N{REPLACEMENT CHARACTER}" for name in text)


def _as_json(timestamp: str, level: str, event: str, facts: Mapping[str, Any]) -> str:
    line = {"timestamp": timestamp, "level": level, "event": event, **facts}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE).decode()


def _as_text(timestamp: str, level: str, event: str, facts: Mapping[str, Any]) -> str:
    words = [
        f"{name}={value if type(value) is int else _in_words(value)}"
        for name, value in facts.items()
        if name != "traceback"
    ]
    line = f"{timestamp} [{level:<9}] {event:<24} {' '.join(words)}\n"
    frames = facts.get("traceback", ())
    return line + "".join([f"    {frame}\n" for frame in frames]) if frames else line


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(value)
    text = str(value)
    return repr(text) if " " in text or not text else text
