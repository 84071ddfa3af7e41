"""Texts as searches compare them."""

# ruff: noqa: RUF001 - letters of all scripts, some of which look alike

from __future__ import annotations

import unicodedata
from typing import Any, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.interactions.indexing.texts import (
    _MAX_KEPT as KEPT,
)
from fhirpub.interactions.indexing.texts import (
    MAX_TEXT,
    exact_text,
    exact_under,
    normalize_text,
    shorten,
    texts_of,
)

IOTA_BELOW = "\u0345"  # a mark that becomes a letter in upper case
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters=IOTA_BELOW)
TEXTS = st.text(
    st.one_of(CHARACTERS, st.sampled_from("aÅßøı \u00a0\u200f\u2019\ufb01\u0301한")), max_size=40
).filter(lambda text: IOTA_BELOW not in unicodedata.normalize("NFKD", text))
Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ashdown", "ashdown"),
        ("MÜLLER", "muller"),
        ("Straße", "strasse"),
        ("Łukasz Źrebiec", "lukasz zrebiec"),
        ("Søren Ærø", "soren aero"),
        ("Œuvre Ħal", "oeuvre hal"),
        ("\u2018A\u02bc \u2014 B\u2212C", "'a' - b-c"),
        ("IŞIK", "isik"),
        ("ışık", "isik"),
        ("İpek", "ipek"),
        ("Đặng", "dang"),
        ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
        ("Ёлкин", "елкин"),
        ("  van \t der\n\u00a0Berg ", "van der berg"),
        ("O\u2019Brien", "o'brien"),
        ("O'Brien", "o'brien"),
        ("Smith\u2011Jones", "smith-jones"),
        ("\u200fדוד\u200f", "דוד"),
        ("co\u00adoperative", "cooperative"),
        ("ﬁn", "fin"),
        ("Ａｎｎ", "ann"),
        ("राम", "राम"),
        ("", ""),
        (" \u00b4\u200b", ""),
    ],
)
def test_a_text_is_compared_without_case_accents_and_the_form_of_blanks(
    text: str, expected: str
) -> None:
    assert normalize_text(text) == expected


def test_letters_stay_different() -> None:
    names = ["ash", "äsh", "esh", "a-sh", "a'sh", "a sh", "αsh", "аsh", "रम", "राम"]

    assert len({normalize_text(name) for name in names}) == len(names) - 1  # a and ä are one


@given(TEXTS)
def test_a_text_is_normalized_once(text: str) -> None:
    normalized = normalize_text(text)

    assert normalize_text(normalized) == normalized
    assert normalized == " ".join(normalized.split())
    assert not any(map(unicodedata.combining, normalized))
    assert len(normalized) <= MAX_TEXT


@given(TEXTS, st.integers(0, 40))
def test_a_beginning_stays_a_beginning(text: str, length: int) -> None:
    assert normalize_text(text).startswith(normalize_text(text[:length]))


@given(TEXTS, st.sampled_from(get_args(Form)))
def test_the_form_and_the_case_of_a_text_make_no_difference(text: str, form: Form) -> None:
    expected = normalize_text(text)

    for other in (text.upper(), text.lower(), text.casefold(), unicodedata.normalize(form, text)):
        assert normalize_text(other) == expected


def test_what_is_beyond_the_limit_is_not_compared() -> None:
    text = "ab " * 100

    assert normalize_text(text) == ("ab " * 100)[:MAX_TEXT]
    assert normalize_text("a" * (MAX_TEXT - 1) + " b") == "a" * (MAX_TEXT - 1)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("Ward 3", [("ward 3", "")]),
        ("\u00b4", []),
        (
            {"use": "official", "family": "Ashdown", "given": ["Juniper", None, "Faye"]},
            [("ashdown", "family"), ("juniper", "given"), ("faye", "given")],
        ),
        (
            {"text": "Dr.  Juniper Ashdown", "prefix": ["Dr."], "suffix": ["PhD"]},
            [
                ("dr. juniper ashdown", "text"),
                ("juniper ashdown", "text"),
                ("ashdown", "text"),
            ],
        ),
        ({"family": "\u00b4", "period": {"start": "2026"}}, []),
        ({}, []),
    ],
)
def test_the_texts_of_an_element_have_kinds(
    item: str | dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert list(texts_of(item)) == expected


def test_a_name_of_very_many_words_is_found_by_the_first_of_them() -> None:
    words = " ".join("abcdefghijklmnopqrstuvwxyz")

    found = [text for text, _kind in texts_of({"text": words})]

    assert [text[0] for text in found] == list("abcdefghijklmnop")
    assert found[-1] == words[words.index("p") :]


@pytest.mark.parametrize("length", [0, 1, KEPT])
def test_a_text_of_a_usual_length_is_compared_as_it_is(length: int) -> None:
    assert shorten("x" * length) == "x" * length


def test_what_stands_for_a_longer_text_shows_how_it_begins() -> None:
    short = shorten("x" * (KEPT + 1))

    shown, _, digest = short.partition("#")
    assert ({*shown}, len(digest)) == ({"x"}, 64)
    assert len(short) <= KEPT
    assert short == shorten("x" * (KEPT + 1))


def test_long_texts_that_begin_alike_stay_different() -> None:
    one, other = ("x" * (KEPT + 1) + end for end in "ab")

    assert shorten(one) != shorten(other)


def test_a_text_as_it_was_written_has_a_name_and_a_kind_of_its_own() -> None:
    long = "x" * (KEPT + 1)

    assert exact_under("name") == "name:exact"
    assert exact_text("Ash Down", "family") == "family|Ash Down"
    assert exact_text("Ann |", "given") == "given|Ann |"
    assert exact_text(long, "") == f"|{shorten(long)}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ann", ["ann"]),
        ("Ann Ash", ["ann ash", "ash"]),
        (" \u00a0", []),
        ("\u200b", []),
    ],
)
def test_a_name_as_a_text_is_found_by_each_of_its_words(text: str, found: list[str]) -> None:
    assert texts_of({"text": text}) == [(one, "text") for one in found]


@pytest.mark.parametrize("gap", [" " * 150, "\u0301" * 150, "\u200b" * 150])
def test_what_is_left_out_does_not_shorten_a_text(gap: str) -> None:
    found = normalize_text(f"a{gap}b")

    assert found == ("a b" if gap.isspace() else "ab")
