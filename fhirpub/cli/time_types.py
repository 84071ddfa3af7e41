"""Option types for times and durations."""

from __future__ import annotations

import re

import click

from fhirpub.fhir.times import parse_instant
from fhirpub.runtime.clock import now_ms

_SPAN = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Span(click.ParamType[int]):
    """A duration such as ``90s``, ``15m``, ``24h`` or ``7d``, in seconds."""

    name = "duration"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the duration in seconds."""
        if isinstance(value, int):
            return value
        seconds = _seconds(value)
        if seconds is None:
            self.fail("must be a duration such as 90s, 15m, 24h or 7d", param, ctx)
        return seconds


class UtcTimeType(click.ParamType[int]):
    """A time such as ``2026-11-21T10:00:00Z``, or ``24h`` for a day ago, in milliseconds UTC."""

    name = "time"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the time in milliseconds since 1970, UTC."""
        if isinstance(value, int):
            return value
        seconds = _seconds(value)
        if seconds is not None:
            return now_ms() - seconds * 1000
        moment = parse_instant(value)
        if moment is None:
            rule = "must be a time such as 2026-11-21T10:00:00Z, or 24h for a day ago"
            self.fail(rule, param, ctx)
        return moment


def _seconds(text: str) -> int | None:
    match = _SPAN.fullmatch(text)
    return int(match["number"]) * _SECONDS[match["unit"]] if match else None
