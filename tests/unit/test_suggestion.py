"""Which of the known words was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.suggestion import did_you_mean, nearest

KNOWN = ["effective", "effectiveDateTime", "value", "valueBoolean", "valueString", "status"]
WORDS = st.text(alphabet="abAB-_", max_size=6)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("Status", "status"),
        ("status", "status"),
        ("stauts", "status"),
        ("effective_date_time", "effectiveDateTime"),
        ("effectiveDate", "effectiveDateTime"),
        ("eff", ""),
        ("x", ""),
        ("", ""),
        ("s" * 65, ""),
    ],
)
def test_the_nearest_word_is_returned(word: str, meant: str) -> None:
    assert nearest(word, KNOWN) == meant


def test_of_the_forms_of_a_choice_the_plainest_is_returned() -> None:
    assert nearest("value", ["valueBoolean", "valueString"]) == "valueString"


@given(WORDS, st.lists(WORDS))
def test_any_word_is_answered_with_a_known_one_or_nothing(word: str, known: list[str]) -> None:
    assert nearest(word, known) in {*known, ""}


@given(WORDS)
def test_a_known_word_is_the_nearest_to_itself(word: str) -> None:
    assert word in (nearest(word, [word]), "")


@pytest.mark.parametrize(("length", "meant"), [(64, "s" * 64), (65, "")])
def test_what_is_too_long_to_be_a_name_is_not_compared(length: int, meant: str) -> None:
    assert nearest("s" * length, ["s" * length]) == meant


def test_nothing_is_asked_where_no_word_is_near() -> None:
    assert (did_you_mean("x", KNOWN), did_you_mean("Value", KNOWN)) == ("", "did you mean value?")
