from __future__ import annotations

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fhirpub.storage.criteria import (
    Criterion,
    Order,
    SearchValue,
    TextMatch,
    TimeMatch,
    TokenMatch,
    comes_after,
    holds,
)
from fhirpub.testing.store_contract import found_by

LAST = chr(sys.maxunicode)
EDGES = "ab\ud7ff\ue000\uffff\U00010000\U0010fffe" + LAST
TEXTS = st.one_of(
    st.text(EDGES, min_size=1, max_size=4),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
)


@pytest.mark.parametrize(
    ("beginning", "end"),
    [
        ("ash", "asi"),
        ("\ud7ff", "\ue000"),
        ("\uffff", "\U00010000"),
        (f"a{LAST}", "b"),
        (f"a{LAST}{LAST}", "b"),
        (LAST, None),
        (f"{LAST}{LAST}", None),
    ],
)
def test_the_end_is_the_first_text_behind_all_that_begin_so(
    beginning: str, end: str | None
) -> None:
    assert TextMatch(beginning).end == end


@given(TEXTS, TEXTS, st.integers(0, 4))
def test_texts_begin_so_exactly_if_they_are_within_the_range(
    text: str, other: str, length: int
) -> None:
    for beginning in {text[:length], other} - {""}:
        end = TextMatch(beginning).end

        by_code_points = beginning <= text and (end is None or text < end)
        by_bytes = beginning.encode() <= text.encode() and (
            end is None or text.encode() < end.encode()
        )

        assert by_code_points == by_bytes == text.startswith(beginning)


@pytest.mark.parametrize(
    ("match", "first", "last"),
    [
        (TimeMatch(from_=10), (10, 20), (9, 20)),
        (TimeMatch(before=10), (9, 20), (10, 20)),
        (TimeMatch(after=10), (5, 11), (5, 10)),
        (TimeMatch(until=10), (5, 10), (5, 11)),
    ],
    ids=["from", "before", "after", "until"],
)
def test_a_time_matches_up_to_its_bound(
    match: TimeMatch, first: tuple[int, int], last: tuple[int, int]
) -> None:
    criterion = Criterion("date", (match,))

    assert holds(criterion, found_by(("date", *first)))
    assert not holds(criterion, found_by(("date", *last)))


@pytest.mark.parametrize("descending", [False, True])
def test_what_has_no_value_comes_after_all_that_have_one(*, descending: bool) -> None:
    order = (Order("date", descending=descending),)

    assert comes_after((None, "a"), (7, "b"), order)
    assert not comes_after((7, "b"), (None, "a"), order)


NAMES = st.text("ab", min_size=1, max_size=3)
VALUES = st.lists(
    st.one_of(
        st.tuples(st.just("name"), NAMES, st.sampled_from(["", "family", "given"])),
        st.tuples(st.just("other"), NAMES, st.just("family")),
        st.just(("name", 1, 2)),
        st.just(("name", None, None)),
    ),
    max_size=4,
)
KINDS = st.sampled_from([None, "", "family", "given"])


@example(values=[("name", "a", "given")], wanted=[("a", "family")], negated=False)
@given(
    values=VALUES,
    wanted=st.lists(st.tuples(NAMES, KINDS)),
    negated=st.booleans(),
)
def test_a_text_matches_what_begins_so_and_is_of_its_kind(
    values: list[SearchValue], wanted: list[tuple[str, str | None]], *, negated: bool
) -> None:
    matches = tuple(TextMatch(*one) for one in wanted)
    expected = any(
        name == "name" and isinstance(text, str) and text.startswith(beginning)
        for name, text, kind in values
        for beginning, wanted_kind in wanted
        if wanted_kind is None or wanted_kind == kind
    )

    assert holds(Criterion("name", matches, negated), found_by(*values)) is (expected != negated)


def test_a_text_of_a_kind_is_found_by_its_presence_as_a_token_of_it() -> None:
    version = found_by(("name", "ashdown", "family"))

    assert holds(Criterion("name", (TokenMatch("family", None),)), version)
    assert not holds(Criterion("name", (TokenMatch("given", None),)), version)
