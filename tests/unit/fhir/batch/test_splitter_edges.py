"""The edges of a division: where a window ends, and how a body that is no JSON is refused."""

from __future__ import annotations

import pytest

from fhirpub.errors import InvalidContent, TooLarge
from fhirpub.fhir.batch import splitter
from fhirpub.fhir.batch.splitter import PieceTooLarge, Split, split
from fhirpub.runtime.stages import run_to_completion

BROKEN = b'{"entry":[\n 1 2]}\n'


def found_in(body: bytes, *, most: int = 9, window: int = 0) -> Split:
    return run_to_completion(split(None, body, most=most, window=window))


def refused(body: bytes) -> str:
    with pytest.raises(InvalidContent) as raised:
        found_in(body)
    (issue,) = raised.value.issues
    assert issue.details == "json-malformed"
    return issue.diagnostics


def test_a_value_that_ends_where_the_window_does_is_read_to_its_end() -> None:
    body = b'{"entry":[12345678,1]}'

    assert found_in(body, window=14).entries == [((10, 18), None), ((19, 20), None)]


def test_a_value_of_the_length_of_a_window_is_too_large_as_it_may_go_on() -> None:
    body = b'{"entry":[1234567890,1]}'

    assert len(found_in(body, window=11).entries) == 2
    with pytest.raises(PieceTooLarge):
        found_in(body, window=10)


def test_objects_that_fit_into_the_window_are_found_in_a_body_that_does_not() -> None:
    one = b'{"request":{"method":"GET"},"resource":{"id":"1"}}'
    body = b'{"entry":[%b]  ,"type":"batch"}' % b" , ".join([one] * 9)

    found = found_in(body, window=80)

    assert found == found_in(body)
    assert [body[slice(*span)] for span, _resource in found.entries] == [one] * 9


def test_a_window_is_not_moved_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    moves: list[int] = []
    move = splitter._Scanner._move

    def noted(self: splitter._Scanner) -> None:
        moves.append(self.place)
        move(self)

    monkeypatch.setattr(splitter._Scanner, "_move", noted)
    found_in(b'{"entry":[1,2,3,4,5,6]}' + b" " * 40, window=60)

    assert len(moves) <= 2


def test_as_many_entries_as_are_allowed_are_divided() -> None:
    assert len(found_in(b'{"entry":[1,2,3]}', most=3).entries) == 3


def test_too_many_entries_are_refused_at_their_place() -> None:
    with pytest.raises(TooLarge) as raised:
        found_in(b'{"entry":[1,2,3]}', most=2)

    (issue,) = raised.value.issues
    assert (issue.expression, issue.details) == ("Bundle.entry", "entries-too-many")


def test_a_resource_that_is_no_object_is_left_to_the_parser() -> None:
    (entry,) = found_in(b'{"entry":[{"resource":[1]}]}').entries

    assert entry == ((10, 26), None)


def test_an_object_behind_a_resource_that_is_none_is_taken() -> None:
    body = b'{"entry":[{"resource":1,"resource":{"b":2}}]}'

    ((_span, found),) = found_in(body).entries

    assert found is not None
    assert body[slice(*found)] == b'{"b":2}'


@pytest.mark.parametrize("spare", [0, 1])
def test_a_body_that_is_not_too_long_is_refused_in_the_words_of_the_parser(
    monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    monkeypatch.setattr(splitter, "_EXPLAINED_BYTES", len(BROKEN) + spare)

    assert "a comma, a colon or a bracket is missing before this place (line 2, column 4)" in (
        refused(BROKEN)
    )


def test_of_a_longer_body_only_the_place_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitter, "_EXPLAINED_BYTES", len(BROKEN) - 1)

    assert refused(BROKEN) == "the body is not valid JSON behind line 2, byte 4 of it"


def test_in_the_first_line_the_bytes_are_counted_from_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(splitter, "_EXPLAINED_BYTES", 0)

    assert refused(b"[1 2]").startswith("the body is not valid JSON behind line 1, byte ")
