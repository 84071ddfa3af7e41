"""Sources of codes of plugins: asked in their order, and without harm if they fail."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from fhirpub.config.settings import Config
from fhirpub.plugin_host.terminology import load_code_sources
from tests.unit.plugin_host.installing import V2, Install, enabling

SOURCE = """
from fhirpub.plugin_api import CodeSource, hookimpl

class Source(CodeSource):
    def knows(self, system, code):
        if code == "fails":
            raise RuntimeError("Ashdown")
        if code == "fails too":
            raise KeyError(code)
        if system != "s":
            return None
        return {"yes": True, "no": False, "one": 1, "word": "yes"}.get(code)

@hookimpl
def fhirpub_terminology(context):
    return [Source()]
"""


@pytest.mark.parametrize(
    ("code", "known"),
    [("yes", True), ("no", False), ("other", None), ("one", None), ("word", None)],
)
def test_a_source_knows_what_it_returns_as_true_or_false(
    install: Install, code: str, *, known: bool | None
) -> None:
    install("one", SOURCE, group=V2)

    (knows,) = load_code_sources(enabling("one"))

    assert knows("s", code) is known


def test_a_source_that_fails_is_logged_once_for_each_place(install: Install) -> None:
    install("one", SOURCE, group=V2)
    (knows,) = load_code_sources(enabling("one"))

    with capture_logs() as logs:
        codes = ("fails", "fails", "fails too", "fails", "fails too", "yes")
        found = [knows("s", code) for code in codes]

    assert found == [None, None, None, None, None, True]
    assert [(line["plugin_name"], line["error"]) for line in logs] == [
        ("one", "RuntimeError"),
        ("one", "KeyError"),
    ]
    assert {(line["log_level"], line["event"]) for line in logs} == {
        ("error", "terminology failed")
    }
    assert "Ashdown" not in str(logs)


def test_without_plugins_there_are_no_sources() -> None:
    assert load_code_sources(Config()) == []
