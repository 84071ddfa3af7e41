"""Writes the table of operations into docs/administration.md, from the table in the code."""

from __future__ import annotations

from pathlib import Path

from fhirpub.administration.table import OPERATIONS

PAGE = Path(__file__).resolve().parents[1] / "docs/administration.md"
_BEGIN, _END = "<!-- operations -->\n", "<!-- end of operations -->\n"


def page() -> str:
    """Return the page with the table as it should be."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    return f"{head}{_BEGIN}{_table()}{_END}{tail}"


def _table() -> str:
    rows = [
        f"| `{one.method} {one.path}` | {one.summary}{' (final)' if one.is_final else ''} | "
        f"`fhirpub {one.command}` |\n"
        for one in OPERATIONS
    ]
    return "| request | what it does | command |\n|---|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
