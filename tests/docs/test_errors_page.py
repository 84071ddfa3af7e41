"""The page of errors is what the tables of problems say."""

from __future__ import annotations

from fhirpub.problems import ALL
from scripts.errors_page import PAGE, page


def test_the_page_is_written_from_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python scripts/errors_page.py"


def test_every_code_has_one_anchor() -> None:
    written = page()

    assert [written.count(f'<a id="{problem}"></a>') for problem in ALL] == [1] * len(ALL)
