"""The progress line of long commands on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from fhirpub.cli.printing import is_terminal

_SECONDS_BETWEEN_LINES = 10
_SECONDS_ON_TERMINAL = 0.1


class ProgressLine:
    """A line that is updated in place on a terminal, and written now and then elsewhere."""

    def __init__(self, *, at_once: bool) -> None:
        """Begin; ``at_once`` is whether the first call writes, however soon it comes."""
        self._terminal = is_terminal(sys.stderr)
        self._between = _SECONDS_ON_TERMINAL if self._terminal else _SECONDS_BETWEEN_LINES
        self._next = 0.0 if at_once else time.monotonic() + self._between
        self._shown = False

    def show(self, describe: Callable[[], str]) -> None:
        """Write what is described, unless the last line is too young."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next, self._shown = now + self._between, True
        text = describe()
        click.echo(f"\r{text:<70}" if self._terminal else text, err=True, nl=not self._terminal)

    def end(self) -> None:
        """Start a new line behind one that was updated in place."""
        if self._terminal and self._shown:
            click.echo(err=True)
