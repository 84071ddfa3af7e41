"""Escapes of commas, bars and backslashes in search values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.search_value import Token, plain, token_of, typed_of, values_of

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
