"""Numbers as they were sent, other notations, and counting a byte that is rare in a body."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fhirpub.errors import InvalidContent
from fhirpub.fhir import strict_json
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


@pytest.mark.parametrize("raw", [r'{"a":["\u0001"]}', r'{"a":{"\u0001":1}}', r'{"\u0001":1}'])
def test_a_control_character_is_refused_in_a_value_and_in_a_name(raw: str) -> None:
    with pytest.raises(InvalidContent, match="control character"):
        loads(raw.encode())


# Notations of other writers are read as fast as ours, and just as strictly.


class Number(str):
    """A number by its text."""

    __slots__ = ()


class Repeated(Exception):
    """An object has two members of one name."""


def by_text(raw: bytes) -> Any:
    """Read JSON with a reader that is not ours: numbers by their text, no name twice."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise Repeated
        return dict(pairs)

    return json.loads(raw, object_pairs_hook=members, parse_float=Number, parse_int=Number)


WHITE_SPACE = st.sampled_from(["", "", " ", "\n  ", "\t", "\r\n"])
TEXTS_OF_NUMBERS = st.sampled_from(
    ["0", "-0", "1", "13.2", "13.20", "1e2", "1E+2", "0.0000001", "123456789012345678901", "1.0"]
)
CHARACTERS = st.sampled_from(
    [
        "a",
        " ",
        "9",
        "u00e9",
        "é",
        "中",
        "🧪",
        r"\"",
        r"\\",
        r"\/",
        "/",
        r"\n",
        r"\t",
        r"\u00e9",
        r"\u0041",
        r"\u0022",
        r"\u005c",
        r"\ud83e\uddea",
    ]
)
STRINGS = st.lists(CHARACTERS, max_size=4).map(lambda parts: f'"{"".join(parts)}"')
NAMES = st.sampled_from(['"a"', '"b"', '"a "', '" a"', r'"\u0061"', '"\u00e9"', r'"\u00e9"'])
PLAIN = st.one_of(TEXTS_OF_NUMBERS, STRINGS, st.sampled_from(["true", "false", "null"]))


def written(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return lists and objects of values, with blanks wherever they may stand."""
    padded = st.tuples(WHITE_SPACE, value, WHITE_SPACE).map("".join)
    member = st.tuples(WHITE_SPACE, NAMES, WHITE_SPACE, st.just(":"), padded).map("".join)
    return st.one_of(
        st.lists(padded, max_size=4).map(lambda items: f"[{','.join(items)}]"),
        st.lists(member, max_size=4).map(lambda members: f"{{{','.join(members)}}}"),
    )


@given(st.recursive(PLAIN, written, max_leaves=12))
@example('{"a": 1, "a": 1}')
@example('{"a": " ", "a": ""}')
@example("[ 1.10]")
@example(r'["\ud83e\uddea"]')
def test_any_notation_is_read_as_by_a_strict_reader_of_others(text: str) -> None:
    raw = text.encode()
    try:
        expected = by_text(raw)
    except Repeated:
        with pytest.raises(InvalidContent):
            loads(raw)
    else:
        assert by_text(dumps(loads(raw))) == expected


VALUE = {"a": 13.2, "note": 'Pérez said "1/2" at \\ 🧪', "list": [{"b": None}, []]}


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(VALUE, ensure_ascii=False).encode(),
        json.dumps(VALUE, ensure_ascii=False, indent=2).encode(),
        json.dumps(VALUE, ensure_ascii=False, indent="\t").encode().replace(b"\n", b"\r\n"),
        json.dumps(VALUE, ensure_ascii=False).replace("/", r"\/").encode(),
        json.dumps(dict(VALUE, note="Pérez, 中文"), indent=2).encode(),
    ],
    ids=["blanks", "indented", "tabs", "escaped slashes", "ASCII"],
)
def test_the_fast_reader_is_enough_for_what_other_writers_write(raw: bytes) -> None:
    # The strict reader, which is slow, reads numbers as decimals.
    assert type(loads(raw)["a"]) is float


def test_each_notation_of_a_number_is_read_as_a_class_of_numbers() -> None:
    read = {type(loads(text)) for text in (b"1", b"0.5", b"1.50", b"1e+2")}

    assert read == {int, float, Decimal, SentDecimal} == strict_json.NUMBERS
