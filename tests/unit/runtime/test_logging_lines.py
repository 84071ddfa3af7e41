"""What a line of the log has, in which form, and what it never has."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fhirpub.runtime import logging as module
from fhirpub.runtime.clock import now_ms
from fhirpub.runtime.faults import name_plugins
from fhirpub.runtime.logging import configure, end_log, logger, request_lines

pytestmark = pytest.mark.usefixtures("log_as_before", "faults_as_before")

SECRET = "Ashdown"


def fail() -> None:
    raise ValueError(SECRET)


def opened(level: str = "info", form: str = "json") -> io.StringIO:
    """Send log lines to memory."""
    stream = io.StringIO()
    configure(level=level, form=form, stream=stream)
    return stream


def lines_of(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_its_facts_its_level_and_its_time() -> None:
    stream = opened()

    logger().warning("swept", documents=3, tenant="größe")

    (line,) = lines_of(stream)
    time = datetime.fromisoformat(line.pop("timestamp"))
    assert line == {"event": "swept", "level": "warning", "documents": 3, "tenant": "größe"}
    assert time.utcoffset() == UTC.utcoffset(None)
    assert abs(time.timestamp() * 1000 - now_ms()) < 600_000


def test_a_line_for_developers_begins_with_its_time_and_names_its_facts() -> None:
    stream = opened(form="text")

    logger().info("swept", documents=3)

    (line,) = stream.getvalue().splitlines()
    assert line.startswith("20")
    assert "swept" in line
    assert "documents=3" in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_lines_below_the_level_are_left_out(level: str, written: list[str]) -> None:
    stream = opened(level)

    for one in ("debug", "info", "warning", "error"):
        getattr(logger(), one)("happened")

    assert [line["level"] for line in lines_of(stream)] == written


@pytest.mark.parametrize(
    ("level", "written"), [("debug", ["warning", "error"]), ("error", ["error"])]
)
def test_lines_of_libraries_are_warnings_at_least(level: str, written: list[str]) -> None:
    stream = opened(level)

    for number in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("a.library").log(number, "text")

    assert [line["level"] for line in lines_of(stream)] == written


def test_a_library_is_named_and_its_text_is_left_out() -> None:
    stream = opened()

    logging.getLogger("a.library").warning("refused %s", SECRET)

    (line,) = lines_of(stream)
    assert (line["event"], line["library"]) == ("a library logged", "a.library")
    assert line["at"].startswith("test_logging_lines.py:")
    assert SECRET not in stream.getvalue()


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("given", ["flag", "exception", "triple"])
def test_of_an_exception_its_place_is_logged_and_not_its_text(form: str, given: str) -> None:
    stream = opened(form=form)
    name_plugins({}, shows_tracebacks=False)

    try:
        fail()
    except ValueError as problem:
        if given == "flag":
            logging.getLogger("a.library").exception("failed")
        else:
            triple = (type(problem), problem, problem.__traceback__)
            logger().error("failed", exc_info=problem if given == "exception" else triple)

    text = stream.getvalue()
    assert "ValueError" in text
    assert "test_logging_lines.py:" in text
    assert SECRET not in text


def test_developers_see_a_traceback_below_its_line() -> None:
    stream = opened(form="text")
    name_plugins({}, shows_tracebacks=True)

    try:
        fail()
    except ValueError as problem:
        logger().error("failed", exc_info=problem)

    first, *below = stream.getvalue().splitlines()
    assert "traceback" not in first
    assert below[-1] == f"    ValueError: {SECRET}"


def test_what_comes_from_outside_begins_no_line() -> None:
    stream = opened()

    logger().info("refused", reason="a\nb\x1b[31m")

    (line,) = stream.getvalue().splitlines()
    assert "\x1b" not in json.loads(line)["reason"]
    assert "\n" not in json.loads(line)["reason"]


def test_lines_that_nothing_has_read_are_reported() -> None:
    stream = opened()

    module._report_lost(7)

    (line,) = lines_of(stream)
    assert (line["event"], line["level"]) == ("lines left out", "warning")
    assert (line["line"], line["reason"], line["count"]) == ("any", "the log is not read", 7)


@pytest.mark.parametrize(("level", "count"), [("info", 1), ("warning", 0)])
def test_lines_of_requests_have_the_level_of_all_others(level: str, count: int) -> None:
    stream = opened(level)
    lines = request_lines()
    assert lines is not None

    lines.write("info", "answered", {"status": 200, "client": "c"}, kind="x")

    assert len(lines_of(stream)) == count


async def test_what_still_waits_is_written_at_the_end() -> None:
    stream = opened()
    lines = request_lines()
    assert lines is not None
    lines.write("info", "answered", {"status": 200, "client": "c"}, kind="x")
    assert stream.getvalue() == ""

    end_log()

    assert [line["event"] for line in lines_of(stream)] == ["answered"]


def test_where_no_log_is_configured_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_stream", None)
    monkeypatch.setattr(module, "_request_lines", None)

    end_log()

    assert request_lines() is None


def test_without_standard_error_lines_go_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)

    with module._standard_error() as stream:
        assert stream.name == os.devnull
        stream.write("größe\n")


def test_standard_error_takes_each_line_at_once_whatever_is_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "errors"
    with path.open("w", encoding="latin-1") as errors:
        monkeypatch.setattr(sys, "stderr", errors)
        stream = module._standard_error()

        stream.write("größe \ud800\n")

        assert path.read_bytes() == "größe \\ud800\n".encode()
        stream.close()
        errors.write("still open\n")


def test_a_standard_error_that_is_no_file_is_taken_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = io.StringIO()
    monkeypatch.setattr(sys, "stderr", memory)

    assert module._standard_error() is memory
