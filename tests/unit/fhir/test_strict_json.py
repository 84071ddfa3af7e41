"""Counting a byte that is rare, such as those of JSON in a body with a document."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.strict_json import count

_PIECES = st.lists(st.sampled_from([b",", b"x", b"{" * 3, b"y" * 4_095, b"z" * 9_000]))


def test_a_mark_across_the_end_of_what_is_counted_at_a_time_counts() -> None:
    raw = b'="' + b"x" * 4_093 + b'="'

    assert count(raw, b'="') == 2


@given(_PIECES)
def test_a_byte_is_counted_as_often_as_it_occurs(pieces: list[bytes]) -> None:
    raw = b"".join(pieces)

    assert count(raw, b",") == raw.count(b",")
