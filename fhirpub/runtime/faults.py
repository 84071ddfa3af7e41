"""What is logged of an unexpected exception: where it happened, not its text.

The text may hold what the code failed on: a rule that fails with KeyError names the patient's
data. Tracebacks are logged with their texts only for developers, on synthetic data (D-375).
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

_MAX_FRAMES = 40
_MAX_CAUSES = 5

_plugins: Mapping[str, str] = {}
_shows_tracebacks = False


def name_plugins(plugins: Mapping[str, str], *, shows_tracebacks: bool) -> None:
    """Let faults name the plugin in whose code they are.

    Args:
        plugins: The names of the plugins by the packages that hold their code.
        shows_tracebacks: Whether :func:`where` returns tracebacks, as developers need them.
    """
    global _plugins, _shows_tracebacks
    _plugins, _shows_tracebacks = dict(plugins), shows_tracebacks


def where(problem: BaseException) -> dict[str, Any]:
    """Return the type of an exception, the file and line that raised it, and whose they are."""
    frames = traceback.extract_tb(problem.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    facts: dict[str, Any] = {"error": type(problem).__name__, "place": place}
    if _plugins and (plugin := _plugin_in(problem.__traceback__)):
        facts["plugin"] = plugin
    if _shows_tracebacks:
        facts["traceback"] = list(_lines_of(problem))
    return facts


def _plugin_in(trace: TracebackType | None) -> str:
    """Return the plugin of the innermost frame that is in a plugin's code."""
    found = ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        while module:
            if module in _plugins:
                found = _plugins[module]
                break
            module = module.rpartition(".")[0]
        trace = trace.tb_next
    return found


def _lines_of(problem: BaseException) -> Iterator[str]:
    """Yield the frames of an exception and of those that led to it, the cause first."""
    for number, each in enumerate(reversed(list(_chain(problem)))):
        if number:
            yield "which led to:"
        for frame in traceback.extract_tb(each.__traceback__)[-_MAX_FRAMES:]:
            yield f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line or ''}"
        yield from "".join(traceback.format_exception_only(each)).splitlines()


def _chain(problem: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what it was raised from, as Python itself shows them."""
    each: BaseException | None = problem
    for _ in range(_MAX_CAUSES):
        if each is None:
            return
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
