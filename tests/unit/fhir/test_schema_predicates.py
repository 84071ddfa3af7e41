"""Rules that JSON Schema has no keyword for, on values of each shape."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.document import marker
from fhirpub.fhir.schema_predicates import is_base64, is_distinct, is_paired

WHY: dict[str, Any] = {"extension": [{"url": "https://lab.example/why", "valueCode": "masked"}]}
GLUCOSE = {"coding": [{"system": "http://loinc.org", "code": "2345-7"}]}
SODIUM = {"coding": [{"system": "http://loinc.org", "code": "2951-2"}]}


@pytest.mark.parametrize(("text", "expected"), [("", True), ("AAAA", True), ("AAA", False)])
def test_a_text_is_base64_if_it_can_be_decoded(text: str, *, expected: bool) -> None:
    assert is_base64(text) is expected


def test_what_stands_for_a_document_that_was_base64_is_base64() -> None:
    assert is_base64(marker("0" * 64, 5))


@pytest.mark.parametrize(
    "resource",
    [
        {},
        {"given": "A"},
        {"given": "A", "_given": {"id": "a"}},
        {"_given": WHY},
        {"_given": "no object"},
        {"given": ["A", None], "_given": [None, WHY]},
        {"given": ["A"], "_given": [None]},
        {"given": ["A"], "_given": [{"id": "a"}]},
        {"_given": [WHY, WHY]},
        {"given": "no array", "_given": [None]},
    ],
)
def test_a_primitive_with_something_at_each_position_is_paired(resource: dict[str, Any]) -> None:
    assert is_paired(resource, "given")


@pytest.mark.parametrize(
    "resource",
    [
        {"_given": {"id": "a"}},
        {"_given": [{"id": "a"}]},
        {"_given": [WHY, None]},
        {"given": [None], "_given": [None]},
        {"given": [None], "_given": [{"id": "a"}]},
        {"given": [None], "_given": ["no object"]},
        {"given": ["A", "B"], "_given": [None]},
        {"given": ["A"], "_given": [None, WHY]},
    ],
)
def test_a_primitive_with_a_gap_is_not_paired(resource: dict[str, Any]) -> None:
    assert not is_paired(resource, "given")


def test_an_item_with_the_code_of_its_resource_is_not_distinct() -> None:
    two = {"coding": [*SODIUM["coding"], *GLUCOSE["coding"]]}

    assert not is_distinct({"code": GLUCOSE, "component": [{"code": two}]}, "component")


def test_each_item_is_compared() -> None:
    parts = [{"code": SODIUM}, {"code": GLUCOSE}]

    assert not is_distinct({"code": GLUCOSE, "component": parts}, "component")


def test_two_codes_without_a_system_are_alike() -> None:
    code = {"coding": [{"code": "x"}]}

    assert not is_distinct({"code": code, "component": [{"code": code}]}, "component")


@pytest.mark.parametrize(
    "part",
    [
        {"code": SODIUM},
        {"code": {"coding": [{"system": "https://lab.example", "code": "2345-7"}]}},
        {"code": {"coding": [{"system": "http://loinc.org"}]}},
        {"code": {"coding": ["no object"]}},
        {"code": {"coding": ["a text with the word code", 5]}},
        {"code": {"coding": "no array"}},
        {"code": "no object"},
        {},
        "no object",
    ],
)
def test_an_item_with_another_code_or_none_is_distinct(part: Any) -> None:
    assert is_distinct({"code": GLUCOSE, "component": [part]}, "component")


def test_two_items_without_codes_are_distinct() -> None:
    coding = {"coding": [{"system": "http://loinc.org"}]}

    assert is_distinct({"code": coding, "component": [{"code": coding}]}, "component")


def test_what_is_no_array_is_left_to_another_keyword() -> None:
    assert is_distinct({"code": GLUCOSE, "component": {"code": GLUCOSE}}, "component")
