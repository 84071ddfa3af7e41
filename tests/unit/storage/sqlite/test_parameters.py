"""Many values as one parameter: what SQLite finds in it is what was put in."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

import pytest

from fhirpub.storage.sqlite.parameters import json_list, json_object, json_pairs

Pairs = Collection[tuple[int, str | int]]


def rows(statement: str, parameter: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(":memory:")
    try:
        return connection.execute(statement, (parameter,)).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "texts", [[], ["a"], ["b", "a", "b"], ['"', "\\", "\n", "ü", "\U0001f600", ""]]
)
def test_each_text_of_a_list_is_found_in_its_order(texts: list[str]) -> None:
    found = rows("SELECT value FROM json_each(?)", json_list(texts))

    assert [value for (value,) in found] == texts


def test_a_text_with_a_nul_is_left_out() -> None:
    assert json_list(["a\0b", "c", "\0"]) == '["c"]'


def test_each_pair_is_found_in_its_order() -> None:
    pairs: list[tuple[str | int, str | int]] = [("b", 1), ("a", -(2**63)), (3, "ü")]

    statement = "SELECT value ->> 0, value ->> 1 FROM json_each(?)"
    assert rows(statement, json_pairs(iter(pairs))) == pairs


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [(1, "a")],
        [(2, "a"), (1, 'b"')],
        [(1, "a"), (1, "b"), (2, "a")],
        [(1, "a"), (1, "a")],
        [(7, 1), (7, 2)],
    ],
)
def test_each_member_of_an_object_is_found_though_a_number_comes_repeatedly(pairs: Pairs) -> None:
    found = rows("SELECT CAST(key AS INTEGER), value FROM json_each(?)", json_object(pairs))

    assert found == [*pairs]


def test_a_text_in_a_list_takes_no_more_room_than_in_utf_8() -> None:
    assert json_list(["ü"]) == '["ü"]'
