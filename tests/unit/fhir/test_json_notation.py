"""JSON in the notations of other writers is read as fast as ours, and just as strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fhirpub.errors import InvalidContent
from fhirpub.fhir.strict_json import dumps, loads


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


BLANKS = st.sampled_from(["", "", " ", "\n  ", "\t", "\r\n"])
NUMBERS = st.sampled_from(
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
PLAIN = st.one_of(NUMBERS, STRINGS, st.sampled_from(["true", "false", "null"]))


def written(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return lists and objects of values, with blanks wherever they may stand."""
    padded = st.tuples(BLANKS, value, BLANKS).map("".join)
    member = st.tuples(BLANKS, NAMES, BLANKS, st.just(":"), padded).map("".join)
    return st.one_of(
        st.lists(padded, max_size=4).map(lambda items: f"[{','.join(items)}]"),
        st.lists(member, max_size=4).map(lambda members: f"{{{','.join(members)}}}"),
    )


@given(st.recursive(PLAIN, written, max_leaves=12))
@example('{"a": 1, "a": 1}')
@example('{"a": " ", "a": ""}')
@example("[ 1.10]")
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
