"""Messages are split by their own delimiters, in their own character set."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub_hl7v2 import message as splitting
from fhirpub_hl7v2.message import MAX_DELIMITERS, Segment, parse, split_messages
from fhirpub_hl7v2.problems import Code, Unsupported, Unusable
from tests.hl7v2.messages import (
    mapped,
    message,
    obr,
    observation,
    obx,
    pid,
    resources,
    segment,
)

TWO = message() + message(msh={10: "M2"})


def text(escaped: str) -> str:
    raw = message(pid(), obr(), obx({2: "ST", 5: escaped}))
    (made,) = resources(raw, "observation")
    return str(made["valueString"])


@pytest.mark.parametrize(
    ("escaped", "meant"),
    [
        ("a\\F\\b\\S\\c\\T\\d\\R\\e\\E\\f", "a|b^c&d~e\\f"),
        ("5 \\X4D\\mol", "5 Mmol"),
        ("\\XC2B5\\g", "µg"),
        ("one\\.br\\two\\.sp2\\three", "one\ntwo\n\nthree"),
        ("\\H\\bold\\N\\", "bold"),
        ("\\Zunknown\\ kept", "\\Zunknown\\ kept"),
        ("alone \\ it stays", "alone \\ it stays"),
        ("\\E\\F\\E\\", "\\F\\"),
        ("a\\X00\\b\\X0D\\c", "ab\nc"),
        ("\\.sp999\\end", "end"),
    ],
)
def test_escape_sequences_mean_characters(escaped: str, meant: str) -> None:
    assert text(escaped) == meant


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("8859/1", "latin-1"), ("UNICODE UTF-8", "utf-8"), ("", "utf-8"), ("8859/15", "iso8859-15")],
)
def test_the_header_names_the_character_set(name: str, encoding: str) -> None:
    raw = message(pid({5: "Müller^Zoë"}), obr(), obx(), msh={18: name})

    (patient,) = resources(raw.decode().encode(encoding), "patient")

    assert patient["name"][0]["family"] == "Müller"


def test_bytes_of_another_character_set_are_a_problem() -> None:
    raw = message(pid({5: "Müller^Zoë"}), obr(), obx()).decode().encode("latin-1")

    with pytest.raises(Unusable, match="MSH-18"):
        mapped(raw)


def test_an_unknown_character_set_is_not_supported() -> None:
    with pytest.raises(Unsupported):
        mapped(message(msh={18: "ISO IR87"}))


def test_a_message_may_have_delimiters_of_its_own() -> None:
    usual = message(pid(), obr(), obx({2: "ST", 5: "a\\F\\b~c"})).decode()
    other = usual.translate(str.maketrans("|^~\\&", "#*!?$"))

    assert mapped(other.encode())[0].body["parameter"][:3] != []
    (made,) = resources(other.encode(), "observation")
    assert made["valueString"] == "a#b\nc"


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r\n\r\n"])
def test_line_ends_may_be_others(end: str) -> None:
    raw = message().replace(b"\r", end.encode())

    assert mapped(raw)[0].body == mapped(message())[0].body


@pytest.mark.parametrize(
    "raw",
    [
        TWO,
        b"FHS|^~\\&|LIS\rBHS|^~\\&|LIS\r" + TWO + b"BTS|2\rFTS|1\r",
        b"\x0b" + message() + b"\x1c\r\x0b" + message() + b"\x1c\r",
        b"\xef\xbb\xbf\r\n" + TWO,
    ],
)
def test_a_file_may_have_several_messages(raw: bytes) -> None:
    assert len(split_messages(raw)) == 2


@pytest.mark.parametrize("raw", [b"", b"\r\n", b"PID|1\r", b"FHS|^~\\&\r"])
def test_a_file_without_a_message_is_a_problem(raw: bytes) -> None:
    with pytest.raises(Unusable):
        split_messages(raw)


@pytest.mark.parametrize("last", [16, 17, 18, 19])
def test_a_header_may_end_before_behind_and_at_its_character_set(last: int) -> None:
    fields = {last: "x"} if last != 18 else {18: "UTF-8"}

    assert len(mapped(message(msh=fields))) == 1


def test_lines_of_blanks_are_none() -> None:
    first, rest = message().split(b"\r", 1)

    found = split_messages(b"  \r\n\t\r" + first + b"\r \r" + rest + b"\x0b \x1c\r")

    assert found == [message()]


def test_what_does_not_begin_a_message_is_named() -> None:
    with pytest.raises(Unusable, match=r"^a message must begin with MSH$"):
        split_messages(b"PID|1\r")


@pytest.mark.parametrize("raw", [b"MSH", b"MSH|", b"MSH|^~\\^|a\r", b"MSH^~\\&\r", b"MSHABCDEA\r"])
def test_a_header_without_five_delimiters_is_a_problem(raw: bytes) -> None:
    with pytest.raises(Unusable, match="delimiters"):
        parse(raw, "UTF-8")


def test_a_line_without_a_segments_name_belongs_to_the_text_before_it() -> None:
    text = obx({2: "TX", 5: "Skin:", 6: "", 7: "", 11: ""})
    raw = message(pid(), obr(), f"{text.rstrip('|')}\nno lesion", obx())

    first, second = resources(raw, "observation")

    assert first["valueString"] == "Skin:\nno lesion"
    assert second["valueQuantity"]["value"] == Decimal("13.2")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({2: "ST", 5: "iron & ferritin^both"}, "valueString"),
        ({2: "CWE", 5: "1^iron & ferritin^both"}, "valueCodeableConcept"),
    ],
)
def test_delimiters_that_a_text_does_not_escape_cut_nothing_off(
    fields: dict[int, str], place: str
) -> None:
    found = observation({**fields, 6: "", 7: "low^high"}, segment("NTE", {3: "a & b^c"}))

    assert "iron & ferritin" in str(found[place])
    assert found["note"] == [{"text": "a & b^c"}]
    assert found["referenceRange"] == [{"text": "low^high"}]


@pytest.mark.parametrize(
    ("sent", "time"),
    [
        ("2026-03-02T08:15:00+01:00", "2026-03-02T08:15:00+01:00"),
        ("2026-03-02 08:15", "2026-03-02T08:15:00+01:00"),
        ("2026-03-02T08:15:00Z", "2026-03-02T08:15:00+00:00"),
        ("2026-03-02", "2026-03-02"),
    ],
)
def test_times_may_be_written_as_in_iso_8601(sent: str, time: str) -> None:
    assert observation({14: sent})["effectiveDateTime"] == time


@pytest.mark.parametrize("name", ["ISO-8859-1", "WINDOWS-1252", "8859/1"])
def test_character_sets_may_have_their_other_names(name: str) -> None:
    raw = message(pid({5: "M\u00fcller"}), obr(), obx(), msh={18: name})

    (patient,) = resources(raw.decode().encode("latin-1"), "patient")

    assert patient["name"][0]["family"] == "M\u00fcller"


def test_a_message_of_too_many_parts_is_a_problem() -> None:
    with pytest.raises(Unusable, match="more than"):
        parse(message(obx({5: "^" * MAX_DELIMITERS})), "UTF-8")


FRAGMENTS = st.one_of(
    st.sampled_from(
        [b"|", b"^", b"~", b"\\", b"&", b"\r", b'""', b"\\X", b"\\.sp9", b"MSH|", b"OBX"]
    ),
    st.binary(max_size=6),
)


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 4), FRAGMENTS), max_size=5))
def test_a_mutated_message_is_mapped_or_a_problem(edits: list[tuple[int, int, bytes]]) -> None:
    raw = message()
    for at, length, fragment in edits:
        raw = raw[:at] + fragment + raw[at + length :]

    with suppress(Unusable):
        mapped(raw)


def parsed(fields: dict[int, str]) -> Segment:
    """Return an OBX with these fields."""
    return next(one for one in parse(message(obx(fields)), "UTF-8").segments if one.name == "OBX")


@pytest.mark.parametrize("null", ['""', ""])
def test_what_is_null_is_empty_in_every_form(null: str) -> None:
    value = parsed({5: f"a^{null}^b"}).value(5)

    assert (value.text(2), value.whole(2), str(value)) == ("", "", f"a^{null}^b")
    assert parsed({5: null}).values(5) == []
    assert str(parsed({5: null}).value(5)) == ""
    assert parsed({4: f"{null}&{null}^{null}"}).values(4) == []


def test_parts_and_components_are_counted_from_one() -> None:
    value = parsed({4: "a&b^c"}).value(4)

    assert [value.text(*at) for at in ((1,), (1, 2), (1, 3), (2,), (3,))] == [
        "a",
        "b",
        "",
        "c",
        "",
    ]
    assert (value.whole(1), value.whole(2), value.whole(3)) == ("a&b", "c", "")
    assert [str(value.parts(at)) for at in (1, 2, 3)] == ["a^b", "c", ""]


def test_empty_components_at_the_end_are_left_out() -> None:
    assert str(parsed({4: "a&&^b^^"}).value(4)) == "a^b"


def test_repetitions_without_a_text_are_left_out() -> None:
    segment = parsed({8: '~H~""~A'})

    assert [value.text() for value in segment.values(8)] == ["H", "A"]
    assert segment.text(8) == "H"


def test_a_field_behind_the_last_one_is_empty() -> None:
    assert parsed({}).values(99) == []
    assert parsed({}).text(99) == ""


def test_blanks_around_a_text_are_left_out() -> None:
    value = parsed({5: "  a b ^ c "}).value(5)

    assert (value.text(), value.whole(2), str(value)) == ("a b", "c", "a b ^ c")


def test_segments_of_a_name_are_numbered_from_one() -> None:
    found = parse(message(pid(), obr(), obx(), obx(), obr()), "UTF-8").segments

    assert [(one.name, one.number) for one in found] == [
        ("MSH", 1),
        ("PID", 1),
        ("OBR", 1),
        ("OBX", 1),
        ("OBX", 2),
        ("OBR", 2),
    ]


def test_two_headers_are_no_message() -> None:
    with pytest.raises(Unusable, match=r"MSH\[2\]: has more than one MSH"):
        parse(TWO, "UTF-8")


def test_the_first_of_several_character_sets_counts() -> None:
    raw = message(pid({5: "Müller"}), obr(), obx(), msh={18: "8859/1~UNICODE UTF-8"})

    (patient,) = resources(raw.decode().encode("latin-1"), "patient")

    assert patient["name"][0]["family"] == "Müller"


def test_a_message_of_as_many_parts_as_may_be_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    base = message(obx({5: ""})).decode().rstrip("\r")
    used = base.count("\r") + 1 + sum(base.count(mark) for mark in "|^~&")
    monkeypatch.setattr(splitting, "MAX_DELIMITERS", used + 10)

    assert parse(message(obx({5: "^" * 10})), "UTF-8").segments[1].name == "OBX"
    with pytest.raises(Unusable, match=f"more than {used + 10} fields"):
        parse(message(obx({5: "^" * 11})), "UTF-8")


@pytest.mark.parametrize("line", ["ABCD lesion", "ABC", "OBX2", "abc|def", "Total|5"])
def test_a_line_begins_a_segment_by_a_name_and_a_delimiter(line: str) -> None:
    text = obx({2: "TX", 5: "Skin:", 6: "", 7: "", 11: ""}).rstrip("|")

    names = [one.name for one in parse(message(pid(), obr(), f"{text}\n{line}"), "UTF-8").segments]

    begins = line == "ABC"
    assert names == ["MSH", "PID", "OBR", "OBX", *(["ABC"] if begins else [])]


@pytest.mark.parametrize(
    ("raw", "code", "place"),
    [
        (b"", Code.REQUIRED, ""),
        (b"PID|1\r", Code.SEQUENCE, ""),
        (TWO, Code.SEQUENCE, "MSH[2]"),
        (b"MSH|^~\\^|a\r", Code.DATA_TYPE, "MSH[1]-2"),
        (message(msh={18: "EBCDIC"}), Code.NOT_FOUND, "MSH[1]-18"),
    ],
)
def test_what_is_no_message_is_a_problem_with_code_and_place(
    raw: bytes, code: Code, place: str
) -> None:
    with pytest.raises(Unusable) as refused:
        parse(raw, "UTF-8")

    (problem,) = refused.value.problems
    assert (problem.code, problem.place) == (code, place)
