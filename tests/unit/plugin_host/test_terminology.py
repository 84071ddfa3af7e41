"""Sources of codes of plugins: asked in their order, and without harm if they fail."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.config.settings import Config
from fhirpub.plugin_host.terminology import _SafeSource, load_code_sources


class Source:
    """Answers, or raises."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def knows(self, system: str, code: str) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if (system, code) == ("s", "c") else "swapped"


class Twofold:
    """Fails at two places."""

    def knows(self, _system: str, code: str) -> Any:
        if code == "first":
            raise ValueError(code)
        raise KeyError(code)


@pytest.mark.parametrize(
    ("answer", "known"), [(True, True), (False, False), (None, None), (1, None), ("yes", None)]
)
def test_a_source_knows_a_code_or_not(answer: Any, *, known: bool | None) -> None:
    source: Any = Source(answer)

    assert _SafeSource("lab", source).knows("s", "c") is known


def test_a_source_that_fails_knows_nothing_and_is_logged_without_its_text() -> None:
    source: Any = Source(ValueError("secret"))

    with capture_logs() as lines:
        assert _SafeSource("lab", source).knows("s", "c") is None

    (line,) = lines
    assert (line["log_level"], line["event"]) == ("error", "terminology failed")
    assert line["plugin_name"] == "lab"
    assert "secret" not in str(line)


def test_the_first_failure_of_each_place_is_logged() -> None:
    source: Any = Twofold()
    safe = _SafeSource("lab", source)

    with capture_logs() as lines:
        for code in ("first", "second", "first", "second"):
            assert safe.knows("s", code) is None

    assert len(lines) == 2


def test_without_plugins_there_are_no_sources() -> None:
    assert load_code_sources(Config()) == []
