"""Escapes of commas, bars and backslashes in search values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.search_value import (
    Token,
    pair_of,
    plain,
    quantity_of,
    token_of,
    typed_of,
    values_of,
)

texts = st.text(alphabet="ab,|$\\ é\n", max_size=12)


def escaped(text: str) -> str:
    for character in "\\,|$":
        text = text.replace(character, f"\\{character}")
    return text


@given(st.lists(texts.filter(bool), min_size=1, max_size=5))
def test_alternatives_come_back_as_they_were_joined(values: list[str]) -> None:
    read = values_of(",".join(map(escaped, values)))

    assert read is not None
    assert [plain(name) for name in read] == values


@given(texts, texts)
def test_system_and_code_come_back_as_they_were_joined(system: str, code: str) -> None:
    token = token_of(f"{escaped(system)}|{escaped(code)}")

    if system or code:
        assert token == Token(system, code or None)
    else:
        assert token is None


@given(texts, texts, texts)
def test_type_and_value_come_back_as_they_were_joined(system: str, code: str, value: str) -> None:
    joined = "|".join(map(escaped, (system, code, value)))

    expected = (system, code, value) if system and code and value else None
    assert typed_of(joined) == expected


@given(texts.filter(bool))
def test_a_code_alone_is_of_any_system(code: str) -> None:
    assert token_of(escaped(code)) == Token(None, code)


@given(st.text(alphabet="ab,|$\\", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    read = values_of(text)

    if read is not None:
        assert all(name for name in read)
        for name in read:
            token_of(name)


@pytest.mark.parametrize("text", ["\\", "a\\b", "a,\\", "\\\\\\", "a\\ b"])
def test_a_backslash_before_what_needs_none_is_refused(text: str) -> None:
    assert values_of(text) is None


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("a", Token(None, "a")),
        ("s|a", Token("s", "a")),
        ("s|", Token("s", None)),
        ("|a", Token("", "a")),
        ("s|a|b", Token("s", "a|b")),
        (r"s\|t|a\,b", Token("s|t", "a,b")),
        ("", None),
        ("|", None),
    ],
)
def test_a_token_is_a_code_a_system_or_both(text: str, token: Token | None) -> None:
    assert token_of(text) == token


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        (",", []),
        ("a,,b,", ["a", "b"]),
        (r"a\,b,c", [r"a\,b", "c"]),
        (r"a\$b\|c\\", [r"a\$b\|c\\"]),
    ],
)
def test_alternatives_are_split_at_commas_and_keep_their_escapes(
    text: str, values: list[str]
) -> None:
    assert values_of(text) == values


@pytest.mark.parametrize("text", ["a", "a|b", "|b|c", "a||c", "a|b|", "a|b|c|d", ""])
def test_a_value_of_a_type_needs_three_parts(text: str) -> None:
    assert typed_of(text) is None


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("5.4", ("5.4", "", "")),
        ("ge5.4", ("ge5.4", "", "")),
        ("5.4|http://s|mg", ("5.4", "http://s", "mg")),
        ("5.4||mg", ("5.4", "", "mg")),
        ("5.4||", ("5.4", "", "")),
        (r"5.4|a\|b|c\,d", ("5.4", "a|b", "c,d")),
        ("", ("", "", "")),
        ("5.4|http://s|", None),
        ("|http://s|mg", None),
        ("||mg", None),
        ("5.4|mg", None),
        ("5.4|s|mg|x", None),
    ],
)
def test_a_quantity_is_a_number_with_a_unit_or_any(
    text: str, quantity: tuple[str, str, str] | None
) -> None:
    assert quantity_of(text) == quantity


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("a$b", ("a", "b")),
        (r"a\$b$c\,d", (r"a\$b", r"c\,d")),
        ("s|a$5\n", ("s|a", "5\n")),
        ("a", None),
        ("$b", None),
        ("a$", None),
        ("a$b$c", None),
        (r"a\$b", None),
    ],
)
def test_a_composite_has_two_values(text: str, pair: tuple[str, str] | None) -> None:
    assert pair_of(text) == pair


def test_every_escape_is_taken_off_once() -> None:
    assert plain("a\\,b\\\\,\\\n") == "a,b\\,\n"
