"""Identifiers of persons as they are given on the command line."""

from __future__ import annotations

import click

_FORM = "'system|value'"


class IdentifierType(click.ParamType[tuple[str, str]]):
    """An identifier: its system, a bar, its value."""

    name = "identifier"

    def convert(
        self,
        value: str | tuple[str, str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        """Return the system and the value."""
        if isinstance(value, tuple):
            return value
        system, _, number = value.partition("|")
        if not system or not number.strip() or number != number.strip():
            self.fail(f"is not {_FORM}; quote it, since | has a meaning in a shell", param, ctx)
        return system, number
