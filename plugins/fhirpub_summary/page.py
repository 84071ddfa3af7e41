"""HTML of which every text is escaped: the one place where markup is written."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from fhirpub.plugin_api import OperationResult

_STYLE = (
    "body{font-family:sans-serif;max-width:60em;margin:1em auto;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}caption{text-align:left;font-weight:bold}"
    "th,td{border:1px solid #999;padding:.3em .5em;text-align:left;vertical-align:top}"
    "p{margin:.3em 0}"
)


def page(title: str, body: Iterable[str]) -> OperationResult:
    """Return a document with a heading above what other functions here have made."""
    heading = html.escape(title)
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{heading}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{heading}</h1>{''.join(body)}</body></html>\n"
    )
    return OperationResult(body=text.encode(), styles=[_STYLE])


def paragraph(name: str, text: str) -> str:
    """Return a text behind its name."""
    return f"<p><strong>{html.escape(name)}:</strong> {html.escape(text)}</p>"


def link(address: str, text: str) -> str:
    """Return a link that opens elsewhere."""
    target = html.escape(address)
    return f'<p><a href="{target}" rel="noreferrer" target="_blank">{html.escape(text)}</a></p>'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    first = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    others = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{first}</tr></thead>"
        f"<tbody>{others}</tbody></table>"
    )


def text_of(value: Any) -> str:
    """Return a primitive as a text, numbers without an exponent; nothing for what is none."""
    if isinstance(value, Decimal | float):
        return f"{Decimal(str(value)):f}"
    return str(value) if isinstance(value, str | int) else ""
