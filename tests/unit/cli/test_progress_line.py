"""A progress line is replaced on a terminal, and written now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fhirpub.cli import progress_line
from fhirpub.cli.progress_line import ProgressLine


class Clock:
    now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress_line, "time", clock)
    return clock


def words(text: str) -> Callable[[], str]:
    return lambda: text


@pytest.mark.usefixtures("terminal")
def test_a_line_on_a_terminal_covers_the_one_before(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    line = ProgressLine(at_once=True)

    line.show(words("one"))
    clock.now += 0.11
    line.show(words("two"))

    assert capsys.readouterr().err == f"\r{'one':<70}\r{'two':<70}"


@pytest.mark.usefixtures("terminal")
def test_a_line_on_a_terminal_stays_for_a_tenth_of_a_second(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    line = ProgressLine(at_once=True)

    line.show(words("one"))
    clock.now += 0.09
    line.show(words("two"))

    assert "two" not in capsys.readouterr().err


def test_elsewhere_a_line_is_written_each_ten_seconds(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    line = ProgressLine(at_once=True)

    for number in range(4):
        line.show(words(str(number)))
        clock.now += 5.0

    assert capsys.readouterr().err == "0\n2\n"


def test_what_is_over_soon_writes_nothing(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    line = ProgressLine(at_once=False)

    line.show(words("one"))
    clock.now += 9.9
    line.show(words("two"))
    line.end()

    assert capsys.readouterr().err == ""


def test_what_takes_longer_is_described_when_its_time_has_come(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    line = ProgressLine(at_once=False)

    clock.now += 10.0
    line.show(words("one"))

    assert capsys.readouterr().err == "one\n"


@pytest.mark.usefixtures("terminal")
def test_the_text_behind_a_line_on_a_terminal_begins_below_it(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    line = ProgressLine(at_once=True)
    line.end()
    assert capsys.readouterr().err == ""

    line.show(words("one"))
    line.end()

    assert capsys.readouterr().err.endswith(" \n")


def test_elsewhere_nothing_is_written_at_the_end(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    line = ProgressLine(at_once=True)

    line.show(words("one"))
    line.end()

    assert capsys.readouterr().err == "one\n"
