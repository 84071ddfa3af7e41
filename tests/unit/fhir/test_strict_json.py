"""Numbers as they were sent, and counting a byte that is rare in a body with a document."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.errors import InvalidContent
from fhirpub.fhir.strict_json import (
    MAX_DEPTH,
    SentDecimal,
    count,
    dumps,
    in_decimals,
    in_plain_decimals,
    loads,
    pretty,
)

_PIECES = st.lists(st.sampled_from([b",", b"x", b"{" * 3, b"y" * 4_095, b"z" * 9_000]))


def test_a_mark_across_the_end_of_what_is_counted_at_a_time_counts() -> None:
    raw = b'="' + b"x" * 4_093 + b'="'

    assert count(raw, b'="') == 2


@given(_PIECES)
def test_a_byte_is_counted_as_often_as_it_occurs(pieces: list[bytes]) -> None:
    raw = b"".join(pieces)

    assert count(raw, b",") == raw.count(b",")


BLANKS = '"\\n' + "  " * MAX_DEPTH + '"'
"""A text that looks like the beginning of a line at the deepest level, but for its line break."""


@pytest.mark.parametrize("deepest", ["[]", "{}", "[1]", '{"a":[]}', f"[{BLANKS}]", "[0.50]"])
def test_many_values_are_read_down_to_the_limit_and_no_deeper(deepest: str) -> None:
    inner = deepest.count("[") + deepest.count("{")

    def nested(levels: int) -> bytes:
        around = levels - inner
        text = "[" * around + deepest + "]" * around
        return f'{{"wide":[{",".join(["[]"] * 100)}],"deep":{text}}}'.encode()

    assert loads(nested(MAX_DEPTH - 1))["deep"]
    with pytest.raises(InvalidContent, match="deeper than 64"):
        loads(nested(MAX_DEPTH))


NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


def read(number: str) -> Any:
    """Return a number as the strict reader has it."""
    return in_decimals(loads(b'{"a": [%b]}' % number.encode()))


@given(NUMBERS)
def test_a_number_is_written_as_it_was_read(number: str) -> None:
    value, text = loads(b'{"a": [%b]}' % number.encode()), b'{"a":[%b]}' % number.encode()

    assert dumps(value) == text
    assert pretty(value).split() == [b"{", b'"a":', b"[", number.encode(), b"]", b"}"]
    for again in (copy.deepcopy(value), pickle.loads(pickle.dumps(value)), in_decimals(value)):
        assert dumps(again) == text


@given(NUMBERS)
def test_a_number_means_what_it_says(number: str) -> None:
    (value,) = read(number)["a"]

    assert value == Decimal(number)
    assert not isinstance(value, float)


@given(NUMBERS)
def test_plain_decimals_are_equal_to_what_was_sent(number: str) -> None:
    value = read(number)

    plain = in_plain_decimals(value)

    assert plain == value
    assert type(plain["a"][0]) is not SentDecimal
    assert (plain is value) == (type(value["a"][0]) is not SentDecimal)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_of_compact_json_is_written_as_it_was_read(number: float) -> None:
    for raw in (dumps([number]), json.dumps([number], separators=(",", ":")).encode()):
        assert dumps(loads(raw)) == raw
