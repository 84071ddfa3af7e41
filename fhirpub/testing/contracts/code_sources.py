"""The promises of a source of codes as tests."""

from __future__ import annotations

import time

import pytest

from fhirpub.plugin_api import CodeSource

_SECONDS = 30.0
_CALLS = 1_000
_MAX_CALL_SECONDS = 0.001
_TEXTS = ("", " ", "a|b&c=d#e?f", "\u0000", "é\U0001f600", "x" * 100_000)


class CodeSourceContract:
    """A test for every promise of `fhirpub.plugin_api.CodeSource`; inherit it.

    The fixture ``source`` to provide is the source, new for each test.

    Attributes:
        known: A code system and a code that the source knows.
        denied: The system, and a code that it does not have.
        elsewhere: A code system that the source knows nothing of, and a code.
    """

    known: tuple[str, str]
    denied: tuple[str, str]
    elsewhere: tuple[str, str] = ("urn:uuid:0b5c2f2e-4a0e-4a39-8c36-8d1c0b9d4a11", "x")

    def learned(self, source: CodeSource, system: str, code: str) -> bool | None:
        """Return what a source knows of a code, once it knows anything or has had the time."""
        until = time.monotonic() + _SECONDS
        while (found := source.knows(system, code)) is None and time.monotonic() < until:
            time.sleep(0.02)
        return found

    def test_it_knows_a_code_of_its_system(self, source: CodeSource) -> None:
        assert self.learned(source, *self.known) is True

    def test_it_denies_a_code_that_its_system_does_not_have(self, source: CodeSource) -> None:
        assert self.learned(source, *self.denied) is False

    def test_it_says_nothing_of_another_system(self, source: CodeSource) -> None:
        assert source.knows(*self.elsewhere) is None
        assert self.learned(source, *self.known) is True  # which was asked later

        assert source.knows(*self.elsewhere) is None

    def test_it_answers_at_once(self, source: CodeSource) -> None:
        begun = time.perf_counter()
        for number in range(_CALLS):
            source.knows(self.known[0], f"no-such-code-{number}")
        took = time.perf_counter() - begun

        assert took < _CALLS * _MAX_CALL_SECONDS

    @pytest.mark.parametrize("text", _TEXTS)
    def test_it_takes_every_text(self, source: CodeSource, text: str) -> None:
        assert source.knows(text, text) in (True, False, None)
        assert source.knows(self.known[0], text) in (True, False, None)
        assert self.learned(source, *self.known) is True
