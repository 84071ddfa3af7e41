"""One spelling for each value: what is the same content has the same bytes, and nothing else."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.strict_json import loads
from fhirpub.interactions.repetition.canonical import canonical

XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))
numbers = st.integers(-(10**15), 10**15) | st.decimals(
    allow_nan=False, allow_infinity=False, places=5, min_value=-(10**9), max_value=10**9
)
values = st.recursive(
    st.none() | st.booleans() | texts | numbers,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)


def spelled(value: Any, dice: random.Random) -> str:
    """Return a JSON value in one of its spellings."""
    blank = dice.choice(["", " ", "\n\t"])
    if isinstance(value, dict):
        members = [
            f"{json.dumps(name)}{blank}:{blank}{spelled(member, dice)}"
            for name, member in value.items()
        ]
        dice.shuffle(members)
        return f"{{{blank}{f'{blank},'.join(members)}}}"
    if isinstance(value, list):
        return f"[{blank}{f',{blank}'.join(spelled(one, dice) for one in value)}]"
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        exact = Decimal(value)
        return dice.choice(
            [f"{exact:f}", f"{exact:e}", f"{exact:f}{'0' if '.' in f'{exact:f}' else '.0'}"]
        )
    return json.dumps(value, ensure_ascii=dice.random() < 0.5)


@given(values, st.randoms(use_true_random=False))
def test_spelling_does_not_count(value: Any, dice: random.Random) -> None:
    first, second = (loads(spelled(value, dice).encode()) for _ in range(2))

    assert canonical(first) == canonical(second)


@given(values, values)
def test_different_values_have_different_bytes(one: Any, other: Any) -> None:
    plain = [json.dumps(each, default=_exact, sort_keys=True) for each in (one, other)]
    sent = [loads(spelled(each, random.Random(0)).encode()) for each in (one, other)]

    assert (canonical(sent[0]) == canonical(sent[1])) is (plain[0] == plain[1])


def _exact(number: Decimal) -> Any:
    return int(number) if number == int(number) else [str(number.normalize())]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0"),
        ("1", "1.0e0"),
        ("0", "-0.0"),
        ("13.2", "13.20"),
        ("13.2", "132e-1"),
        ("0.0000001", "1E-7"),
        ("1e16", " 1e16"),
        ("10000000000000000.0", "1e16"),
        ("12345678901234567890", "[12345678901234567890 ]"),
        ("0.1234567890123456789012345678901", "0.12345678901234567890123456789010"),
        ("1e-400", "10e-401"),
    ],
)
def test_equal_numbers_are_equal(one: str, other: str) -> None:
    listed = [loads(f"[{text.strip('[]')}]".encode()) for text in (one, other)]

    assert canonical(listed[0]) == canonical(listed[1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0.1234567890123456789012345678901", "0.1234567890123456789012345678902"),
        ("1e-400", "0"),
        ("1", '"1"'),
        ("12345678901234567890", "12345678901234567891"),
        ('"1.0"', '"1"'),
        ("true", "1"),
    ],
)
def test_different_numbers_are_different(one: str, other: str) -> None:
    assert canonical(loads(one.encode())) != canonical(loads(other.encode()))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-03-02T08:15:00Z", "2026-03-02T09:15:00+01:00"),
        ("2026-03-02T08:15:00Z", "2026-03-02T08:15:00+00:00"),
        ("2026-03-01T23:15:00.120-03:00", "2026-03-02T02:15:00.120Z"),
    ],
)
def test_a_time_is_the_same_in_any_offset(one: str, other: str) -> None:
    assert canonical({"issued": one}) == canonical({"issued": other})


def test_each_time_of_many_is_found_among_texts_that_end_alike() -> None:
    offset, utc = "2026-03-02T09:15:00+01:00", "2026-03-02T08:15:00Z"
    others = ["T09:15:00+01:00", "2T09:15:00+01:00", f"x{offset}", "TT", ""]

    def mixed(time: str) -> list[str]:
        return [time, time, *others, time, *(each for other in others for each in (other, time))]

    assert canonical(mixed(offset)) == canonical(mixed(utc))
    assert all(json.dumps(other).encode() in canonical(mixed(offset)) for other in others)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-03-02T08:15:00Z", "2026-03-02T08:15:00"),
        ("2026-03-02T08:15:00Z", "2026-03-02T08:15:00.000Z"),
        ("2026-03-02T08:15:00+01:00", "2026-03-02T08:15:00+02:00"),
        ("at 2026-03-02T08:15:00+00:00", "at 2026-03-02T08:15:00Z"),
        ("2026-02-30T08:15:00+00:00", "2026-02-30T08:15:00Z"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z"),
    ],
)
def test_what_is_not_the_same_time_is_different(one: str, other: str) -> None:
    assert canonical({"issued": one}) != canonical({"issued": other})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"<div {XHTML}>a<br/></div>", f"<div {XHTML}>a<br></br></div>"),
        (f'<div {XHTML} id="1" class="c">a</div>', f"<div class='c' id='1' {XHTML} >a</div>"),
        (f"<div {XHTML}>1&nbsp;mg &#181;</div>", f"<div {XHTML}>1\u00a0mg \u00b5</div>"),
    ],
)
def test_the_markup_of_a_narrative_does_not_count(one: str, other: str) -> None:
    sent = [{"text": {"status": "generated", "div": div}} for div in (one, other)]

    assert canonical(sent[0]) == canonical(sent[1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"<div {XHTML}>benign</div>", f"<div {XHTML}>malignant</div>"),
        ('<div>"benign', '<div>"malignant'),
        ('"', '\\"'),
    ],
)
def test_another_narrative_is_different(one: str, other: str) -> None:
    assert canonical({"div": one}) != canonical({"div": other})


@pytest.mark.parametrize(
    ("number", "written"),
    [
        ("0.00", b"0"),
        ("-0.0", b"0"),
        ("5.0", b"5"),
        ("-5.00", b"-5"),
        ("1E+15", b"1000000000000000"),
        ("9999999999999999.0", b"9999999999999999"),
        ("1E+16", b"1e+16"),
        ("1.50", b"1.5"),
        ("1.5E+300", b"1.5e+300"),
        ("-2E+20", b"-2e+20"),
        ("12345678901234567890", b"12345678901234567890"),
        ("123456789012345678901234.5", b"1234567890123456789012345e-1"),
        ("-0.12345678901234567890", b"-1234567890123456789e-19"),
    ],
)
def test_a_number_is_written_in_one_way(number: str, written: bytes) -> None:
    assert canonical(Decimal(number)) == written


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (2.0, b"2"),
        (-2.0, b"-2"),
        (9_999_999_999_999_998.0, b"9999999999999998"),
        (1e16, b"1e+16"),
        (-1e16, b"-1e+16"),
        (2.5, b"2.5"),
    ],
)
def test_a_float_that_is_an_integer_is_written_as_one(number: float, written: bytes) -> None:
    assert canonical({"a": [number]}) == b'{"a":[' + written + b"]}"


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (9_999_999_999_999_998.0, b"9999999999999998"),
        (1e16, b"1e+16"),
        (-1e16, b"-1e+16"),
        (2e16, b"2e+16"),
    ],
)
def test_a_large_number_is_written_alike_beside_one_without_a_fraction(
    number: float, written: bytes
) -> None:
    assert canonical([1.0, number]) == b"[1," + written + b"]"


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        ("1e16", b"1e+16"),
        ("1E+16", b"1e+16"),
        ("-1.5e+300", b"-1.5e+300"),
        ("[1e22, 1.0]", b"[1e+22,1]"),
        ('"1e+16"', b'"1e+16"'),
        ('{"a": 1e20, "b": "e+"}', b'{"a":1e+20,"b":"e+"}'),
    ],
)
def test_a_large_number_is_written_alike_by_all_versions_of_the_encoder(
    sent: str, written: bytes
) -> None:
    assert canonical(loads(sent.encode())) == written


def test_names_are_in_one_order_and_a_narrative_keeps_its_name() -> None:
    div = f"<div {XHTML}>a</div>"

    found = canonical({"status": "generated", "div": div})

    assert found.startswith(b'{"div":"<')
    assert json.loads(found)["status"] == "generated"


def test_a_value_of_another_type_is_a_fault() -> None:
    with pytest.raises(TypeError) as raised:
        canonical({"a": {1, 2}})

    assert str(raised.value.__cause__) == "set"


@pytest.mark.parametrize("time", ["2026-02-30T08:15:00+00:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_that_cannot_be_stored_is_as_it_was_sent(time: str) -> None:
    assert json.loads(canonical({"issued": time})) == {"issued": time}


def test_a_text_before_a_narrative_stays_as_it_was_sent() -> None:
    div = f"<div {XHTML}>a<br/></div>"
    sent = {"a": "1.0", "div": div, "z": "2026-03-02T08:15:00"}

    found = json.loads(canonical(sent))

    assert (found["a"], found["z"]) == ("1.0", "2026-03-02T08:15:00")


def test_each_narrative_of_several_is_in_one_form() -> None:
    one, other = f"<div {XHTML}>a<br/></div>", f"<div {XHTML}>a<br></br></div>"

    def texts(*divs: str) -> list[dict[str, str]]:
        return [{"status": "generated", "div": div} for div in divs]

    assert canonical(texts(one, other)) == canonical(texts(other, one))


def test_a_time_at_the_beginning_is_in_utc() -> None:
    assert canonical("2026-03-02T09:15:00+01:00") == b'"2026-03-02T08:15:00Z"'


def test_what_stands_around_a_time_stays() -> None:
    sent = {"a": 1, "b": "2026-03-02T09:15:00+01:00", "c": ["x", 2]}

    assert canonical(sent) == b'{"a":1,"b":"2026-03-02T08:15:00Z","c":["x",2]}'
