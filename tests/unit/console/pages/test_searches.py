"""What the forms of several pages ask of a search, and the page that follows one."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.console.pages.searches import (
    common_criteria,
    cursor_of_next,
    next_page,
    page_asked_for,
)
from tests.unit.console.pages.visiting import a_visit

NEXT = {"relation": "next", "url": "https://fhir.example.org/Patient?_count=2&_cursor=a%2Bb"}
SELF = {"relation": "self", "url": "https://fhir.example.org/Patient?_cursor=own"}


@pytest.mark.parametrize(
    ("query", "criteria"),
    [
        ({}, []),
        ({"since": " 2024-05-01 "}, [("date", "ge2024-05-01")]),
        ({"until": "2024-05-02"}, [("date", "le2024-05-02")]),
        ({"since": " ", "until": ""}, []),
        (
            {"until": "2024-05-02", "since": "2024-05-01", "cursor": "c"},
            [("date", "ge2024-05-01"), ("date", "le2024-05-02"), ("_cursor", "c")],
        ),
    ],
)
def test_the_days_and_the_page_of_a_form_are_parameters(
    query: dict[str, str], criteria: list[tuple[str, str]]
) -> None:
    assert common_criteria(a_visit(**query)) == criteria


@pytest.mark.parametrize(
    ("query", "asked"), [({}, []), ({"cursor": ""}, []), ({"cursor": "c"}, [("_cursor", "c")])]
)
def test_the_first_page_is_asked_for_without_a_cursor(
    query: dict[str, str], asked: list[tuple[str, str]]
) -> None:
    assert page_asked_for(a_visit(**query)) == asked


@pytest.mark.parametrize(
    ("bundle", "cursor"),
    [
        ({"link": [SELF, NEXT]}, "a+b"),
        ({"link": [SELF]}, ""),
        ({"link": [SELF, {**NEXT, "relation": "previous"}]}, ""),
        ({"link": []}, ""),
        ({}, ""),
        ({"link": [{"relation": "next", "url": "https://fhir.example.org/Patient"}]}, ""),
    ],
)
def test_the_cursor_is_that_of_the_page_that_follows(bundle: dict[str, Any], cursor: str) -> None:
    assert cursor_of_next(bundle) == cursor


def test_the_page_that_follows_keeps_what_was_looked_for() -> None:
    visit = a_visit(status="final", cursor="old")

    path = next_page(visit, {"link": [NEXT]}, "resources", "Patient")

    assert path == "/console/resources/Patient?status=final&cursor=a%2Bb"


def test_no_page_follows_the_last() -> None:
    assert next_page(a_visit(status="final"), {"link": [SELF]}, "resources") == ""
