"""Long lists in pages, and what of them is looked for."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.console.operators.listing import ROWS, Listing, page_of
from tests.unit.console.test_visit import a_visit

RECORDS = [{"name": f"Lab {number:03}", "id": f"id-{number}"} for number in range(2 * ROWS + 1)]


async def listed(records: Any = RECORDS, **query: str) -> Listing:
    return await page_of(a_visit(query=query), records)


@pytest.mark.parametrize(
    ("page", "number", "first", "count"),
    [
        ("", 1, 0, ROWS),
        ("1", 1, 0, ROWS),
        ("2", 2, ROWS, ROWS),
        ("3", 3, 2 * ROWS, 1),
        ("4", 3, 2 * ROWS, 1),
        ("0", 1, 0, ROWS),
        ("-1", 1, 0, ROWS),
        ("x", 1, 0, ROWS),
        ("٣", 1, 0, ROWS),
        ("999999", 3, 2 * ROWS, 1),
        ("1000000", 1, 0, ROWS),
    ],
)
async def test_a_page_has_its_part_of_the_list(
    page: str, number: int, first: int, count: int
) -> None:
    found = await listed(page=page)

    assert (found.page, found.pages, found.total) == (number, 3, len(RECORDS))
    assert found.records == RECORDS[first : first + count]


@pytest.mark.parametrize(
    ("count", "pages"), [(0, 1), (1, 1), (ROWS, 1), (ROWS + 1, 2), (2 * ROWS, 2)]
)
async def test_a_page_that_is_exactly_full_is_the_last(count: int, pages: int) -> None:
    assert (await listed(RECORDS[:count])).pages == pages


@pytest.mark.parametrize(
    ("find", "total"),
    [("lab 007", 1), ("LAB 007", 1), (" id-100 ", 1), ("nothing", 0), ("", len(RECORDS)),
     ("   ", len(RECORDS))],
)  # fmt: skip
async def test_what_is_looked_for_is_in_any_text_of_a_record(find: str, total: int) -> None:
    found = await listed(find=find)

    assert (found.total, found.find) == (total, find.strip())


async def test_texts_are_looked_through_as_records_are() -> None:
    assert (await listed(["Lab", "Other"], find="lab")).records == ["Lab"]


async def test_only_texts_are_looked_through() -> None:
    assert (await listed([{"count": 7, "list": ["7"]}], find="7")).total == 0


async def test_another_page_is_asked_for_with_all_else_that_was() -> None:
    found = await listed(find="lab", tenant="a&b", page="1")

    assert found.at(2) == "?find=lab&tenant=a%26b&page=2"
