"""Which indexes serve alternatives of identifiers, and what holds of each of them."""

from __future__ import annotations

import pytest

from fhirpub.storage.criteria import ANYTHING, TokenMatch
from fhirpub.storage.sqlite.search.conditions import Parameters, match_identified

SYSTEM = TokenMatch("urn:s", None)
VALUE = TokenMatch(None, "v")
BOTH = TokenMatch("urn:t", "w")


@pytest.mark.parametrize(
    ("group", "indexes"),
    [
        ([SYSTEM], {"version_by_system"}),
        ([VALUE], {"version_by_value"}),
        ([BOTH], {"version_by_system", "version_by_value"}),
        ([BOTH, BOTH], {"version_by_system", "version_by_value", "version_by_time"}),
        ([SYSTEM, BOTH], {"version_by_system", "version_by_time"}),
        ([VALUE, BOTH], {"version_by_value", "version_by_time"}),
        ([SYSTEM, VALUE], {"version_by_time"}),
        ([SYSTEM, VALUE, BOTH], {"version_by_time"}),
        ([SYSTEM, ANYTHING], set()),
    ],
)
def test_an_index_serves_alternatives_of_which_each_has_what_it_is_by(
    group: list[TokenMatch], indexes: set[str]
) -> None:
    parameters: Parameters = {}

    needed = match_identified(group, "0", parameters)

    assert needed.keys() == indexes
    for condition in needed.values():
        named = [name for name in parameters if f":{name}" in condition]
        assert named
