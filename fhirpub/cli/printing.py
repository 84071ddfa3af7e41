"""Prints records on standard output: aligned for people, as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import click

Record = Mapping[str, Any]


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream is a terminal; it is None if it was closed before."""
    return stream is not None and stream.isatty()


def print_json(value: Any) -> None:
    """Print one JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))


def print_record(heading: str, record: Record, *, as_json: bool, then: str = "") -> None:
    """Print one record below a heading and above the next step."""
    if as_json:
        print_json(record)
        return
    click.secho(heading, bold=True)
    width = max(len(_title(key)) for key in record)
    for key, value in record.items():
        click.echo(f"  {_title(key):<{width}}  {as_text(value)}")
    if then:
        click.echo(then)


def print_table(records: Sequence[Record], *, as_json: bool, empty: str) -> None:
    """Print records as a table, or the text ``empty`` if there are none."""
    if as_json:
        print_json(list(records))
        return
    if not records:
        click.echo(empty)
        return
    rows = [[as_text(value) for value in record.values()] for record in records]
    titles = [_title(key) for key in records[0]]
    widths = [max(len(row[n]) for row in [titles, *rows]) for n in range(len(titles))]
    click.secho(_align(titles, widths), bold=True)
    for row in rows:
        click.echo(_align(row, widths))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 report``, ``2 Observations``, ``3 ImagingStudies``."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def _align(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)]
    return "  ".join(padded).rstrip()


def _title(key: str) -> str:
    return key.replace("_", " ")


def as_text(value: Any) -> str:
    """Return a value as people read it, without control characters."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ("", []):
        return "-"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    # Text from others must not send control sequences to the terminal.
    return "".join(name if name.isprintable() else "\N{REPLACEMENT CHARACTER}" for name in text)
