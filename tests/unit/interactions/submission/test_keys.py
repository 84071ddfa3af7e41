"""The key of a member is taken before it is validated."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.interactions.submission.keys import key_of

WHOLE = {"system": "https://lab.example", "value": "1"}


def test_the_first_whole_identifier_counts() -> None:
    found = key_of({"id": "a", "identifier": [{"value": "0"}, WHOLE, {**WHOLE, "value": "2"}]})

    assert found == ("identifier", "https://lab.example", "1")


@pytest.mark.parametrize(
    "identifiers", [None, "x", 1, {}, WHOLE, [], ["x"], [None], [[WHOLE]], [{"system": 1}]]
)
def test_without_one_the_local_id_counts(identifiers: Any) -> None:
    assert key_of({"id": "a", "identifier": identifiers}) == ("id", "a")
    assert key_of({"id": 1, "identifier": identifiers}) == ("id", "")


@pytest.mark.parametrize("changes", [{"system": ""}, {"value": ""}, {"value": None}])
def test_an_identifier_without_a_system_or_a_value_is_not_the_key(changes: dict[str, Any]) -> None:
    assert key_of({"id": "a", "identifier": [{**WHOLE, **changes}]}) == ("id", "a")
