"""Changed bodies are the same for the same seed, and leave the body as it is."""

from __future__ import annotations

import copy
import json

import pytest

from fhirpub.testing.mutations import ADDITIONS, mutants, near_misses
from tests.bodies import register_body

BODY = register_body("A-1")


def test_they_follow_from_the_seed() -> None:
    first, again, other = ([*mutants(BODY, seed=seed, number=50)] for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_the_body_is_not_changed() -> None:
    before = copy.deepcopy(BODY)

    assert [*mutants(BODY, seed=1, number=50), *near_misses(BODY, {})]
    assert before == BODY


def test_each_place_is_changed_and_each_object_gets_each_addition() -> None:
    body = {"a": [{"b": "x"}]}

    found = [*near_misses(body, {"b": ("y", "z")})]

    for text in ("{}", '{"a": []}', '{"a": [{}]}', '{"a": [{"b": "y"}]}', '{"a": [{"b": "z"}]}'):
        assert json.loads(text) in found
    for name, value in ADDITIONS:
        assert {"a": [{"b": "x"}], name: value} in found
        assert {"a": [{"b": "x", name: value}]} in found


@pytest.mark.parametrize("number", [0, 1, 7])
def test_there_are_as_many_copies_as_asked_for(number: int) -> None:
    assert len([*mutants(BODY, seed=1, number=number)]) == number


def test_what_is_put_into_a_list_leaves_its_other_items() -> None:
    body = {"a": [{"b": "x"}, {"b": "y"}, {"b": "z"}]}

    found = [*near_misses(body, {})]

    lists = [mutant["a"] for mutant in found if isinstance(mutant.get("a"), list)]
    lists = [one for one in lists if not all(isinstance(item, dict) for item in one)]
    assert {"a": body["a"][1:]} in found
    assert {"a": body["a"][:2]} in found
    assert any(len(one) == 3 and one[1:] == body["a"][1:] != one for one in lists)
    assert any(len(one) == 3 and one[:2] == body["a"][:2] != one for one in lists)


def test_a_copy_that_is_changed_changes_no_other() -> None:
    kept = copy.deepcopy(ADDITIONS)

    for mutant in near_misses({"a": {"b": "x"}}, {}):
        for value in [*mutant.values()]:
            if isinstance(value, list | dict):
                value.clear()

    assert kept == ADDITIONS


def test_a_likely_value_is_tried_where_a_text_stands_under_its_name() -> None:
    found = [*near_misses({"a": "x", "b": "x"}, {"b": ("p", "q")})]

    assert [{"a": "x", "b": value} in found for value in ("p", "q")] == [True, True]
    assert {"a": "p", "b": "x"} not in found


def test_nearly_every_copy_differs_from_the_body() -> None:
    same = sum(mutant == BODY for mutant in mutants(BODY, seed=1, number=400))

    assert same < 60
