"""Changed bodies are the same for the same seed, and leave the body as it is."""

from __future__ import annotations

import copy
import json

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
