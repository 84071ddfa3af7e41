"""Entries of a Bundle, found in its bytes: the same as a parser of JSON finds."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fhirpub.errors import FhirpubError, TooLarge
from fhirpub.fhir.batch.splitter import PieceTooLarge, Split, split
from fhirpub.fhir.strict_json import dumps
from fhirpub.runtime.stages import run_to_completion

_MOST = 1_000
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
_RESOURCES = st.dictionaries(st.text(), _VALUES)
_ENTRIES = st.lists(
    _VALUES | st.fixed_dictionaries({"resource": _RESOURCES, "request": _VALUES}), max_size=6
)
few = settings(max_examples=20)
"""A Bundle has much that varies, and takes long to make."""
_BLANKS = st.sampled_from(["", " ", "\n", "\r\n\t ", "  "])


def found_in(body: bytes, *, window: int = 0) -> Split:
    return run_to_completion(split(None, body, most=_MOST, window=window))


def written(value: Any, *, blank: str, is_ascii: bool) -> bytes:
    separators = (f"{blank},{blank}", f"{blank}:{blank}")
    text = json.dumps(value, separators=separators, ensure_ascii=is_ascii)
    return f"{blank}{text}{blank}".encode("utf-8", "surrogatepass")


@st.composite
def bundles(draw: st.DrawFn) -> tuple[list[Any], bytes]:
    """Return entries, and a Bundle with them as text."""
    entries = draw(_ENTRIES)
    before, behind = draw(_RESOURCES), draw(_RESOURCES)
    bundle = {**before, "entry": entries, **behind}
    bundle["entry"] = entries
    return entries, written(bundle, blank=draw(_BLANKS), is_ascii=draw(st.booleans()))


@few
@given(bundles())
def test_every_entry_and_its_resource_are_found(case: tuple[list[Any], bytes]) -> None:
    entries, body = case

    found = found_in(body)

    assert found.array is not None
    assert json.loads(body[slice(*found.array)]) == entries
    assert [json.loads(body[slice(*span)]) for span, _resource in found.entries] == entries
    for entry, (_span, resource) in zip(entries, found.entries, strict=True):
        has_one = isinstance(entry, dict) and isinstance(entry.get("resource"), dict)
        assert (resource is not None) == has_one
        if resource is not None:
            assert json.loads(body[slice(*resource)]) == entry["resource"]


@few
@given(bundles(), st.integers(1, 300))
def test_a_window_changes_nothing_but_may_be_too_small(
    case: tuple[list[Any], bytes], window: int
) -> None:
    _entries, body = case

    with suppress(PieceTooLarge):
        assert found_in(body, window=window) == found_in(body)


@few
@given(bundles(), st.data())
def test_a_damaged_body_is_refused_or_divided(
    case: tuple[list[Any], bytes], data: st.DataObject
) -> None:
    _entries, body = case
    place = data.draw(st.integers(0, len(body)))
    damage = data.draw(st.binary(max_size=3) | st.sampled_from([b'"', b"\\", b"{", b"]", b","]))
    damaged = body[:place] + damage + body[place + data.draw(st.integers(0, 5)) :]

    with suppress(FhirpubError):
        found = found_in(damaged)
        ends = [place for span, _resource in found.entries for place in span]
        assert ends == sorted(ends)


def test_an_escaped_quotation_mark_ends_no_text() -> None:
    resource = {"a": 'x\\"}]', "b": "\\\\", "c": '"'}
    body = dumps({"entry": [{"resource": resource}]})

    ((_span, found),) = found_in(body).entries

    assert found is not None
    assert json.loads(body[slice(*found)]) == resource


def test_a_second_resource_is_left_to_the_parser() -> None:
    body = b'{"entry":[{"resource":{"a":1},"resource":{"b":2}}]}'

    ((_span, found),) = found_in(body).entries

    assert found is not None
    assert body[slice(*found)] == b'{"a":1}'


def test_one_entry_too_many_is_refused_before_the_rest_is_searched() -> None:
    body = b'{"entry":[' + b"1," * (_MOST + 1) + b"{"

    with pytest.raises(TooLarge, match="at most 1000 entries"):
        found_in(body)


def test_a_resource_that_is_a_little_too_deep_is_found_alone() -> None:
    deep = b'{"a":' * 66 + b"1" + b"}" * 66
    body = b'{"entry":[{"resource":%b},{"resource":{}}]}' % deep

    first, second = found_in(body).entries

    assert first[1] is not None
    assert body[slice(*first[1])] == deep
    assert second[1] is not None


_HOSTILE = {
    "open objects": b'{"a":' * 400_000,
    "open arrays": b"[" * 2_000_000,
    "an open text": b'{"a":"' + b"x" * 2_000_000,
    "escapes": b'{"a":"' + b"\\" * 2_000_001,
    "quotation marks": b'{"a":' + b'"' * 2_000_001,
    "blanks": b"{" + b" " * 2_000_000,
    "wide and open": b'{"a":[' + b"[]," * 600_000,
    "alternating": b'{"entry":[' + b'{"resource":{' * 150_000,
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_the_time_is_proportional_to_the_length(name: str) -> None:
    """Twice as much takes about twice as long: four times would be the square of it."""

    def seconds(body: bytes) -> float:
        began = time.process_time()
        with suppress(FhirpubError, PieceTooLarge):
            found_in(body, window=len(body))
        return time.process_time() - began

    whole = _HOSTILE[name]
    half = min(seconds(whole[: len(whole) // 2]) for _ in range(3))

    assert min(seconds(whole) for _ in range(3)) < 3 * half + 0.1


def test_of_two_arrays_of_entries_the_first_is_read() -> None:
    found = found_in(b'{"entry":[{"a":1}],"entry":[{"b":2},{"c":3}]}')

    assert (len(found.entries), found.array) == (1, (9, 18))
