"""The table of operations in the page about administration is what the code has."""

from __future__ import annotations

from scripts.operations_table import PAGE, page


def test_the_table_is_written_from_the_operations() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m scripts.operations_table"
