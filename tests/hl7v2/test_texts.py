"""Characters of texts: their sets, their escapes and their layout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub_hl7v2.problems import Code, Problem, Unsupported, Unusable
from fhirpub_hl7v2.settings import Settings
from fhirpub_hl7v2.text import CHARACTER_SETS, Delimiters, decode
from tests.hl7v2.messages import SETTINGS, mapped, message, obr, observation, obx, pid

USUAL = Delimiters("|", "^", "~", "\\", "&", "8859/1")


@pytest.mark.parametrize("name", ["8859/1", "utf-8", "Unicode", "windows-1252", "ISO-8859-15"])
def test_the_name_of_a_character_set_is_in_any_case(name: str) -> None:
    assert decode(b"abc", name) == "abc"


def test_each_character_set_can_be_decoded() -> None:
    assert {decode(b"a|^", name) for name in CHARACTER_SETS} == {"a|^"}


@pytest.mark.parametrize(
    ("raw", "name", "text"),
    [
        (b"\xa4", "8859/15", "\u20ac"),
        (b"\xa4", "8859/1", "\u00a4"),
        (b"\xd0", "8859/5", "\u0430"),
        (b"\x80", "WINDOWS-1252", "\u20ac"),
        (b"\xe2\x82\xac", "UNICODE UTF-8", "\u20ac"),
    ],
)
def test_a_byte_means_what_its_set_says(raw: bytes, name: str, text: str) -> None:
    assert decode(raw, name) == text


def test_an_unknown_set_is_named_with_those_that_are_known() -> None:
    with pytest.raises(Unsupported) as refused:
        decode(b"", "ISO IR87")

    (problem,) = refused.value.problems
    assert (problem.place, problem.code) == ("MSH[1]-18", Code.NOT_FOUND)
    assert problem.text.startswith("is not supported; supported are ASCII, ISO IR6, 8859/1, ")


def test_an_invalid_byte_is_named_with_its_place_and_a_way_out() -> None:
    with pytest.raises(Unusable) as refused:
        decode(b"ab\xfc", "UTF-8")

    assert refused.value.problems == (
        Problem(
            "the message is not in UTF-8: byte 2 is invalid. Correct MSH-18, or set [message] "
            "character_set for messages without it",
            "MSH",
            1,
            18,
        ),
    )


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("a\\.sk3\\b", "a   b"),
        ("a\\.sk\\b", "a b"),
        ("a\\.sk25\\b", f"a{' ' * 20}b"),
        ("a\\.br\\b", "a\nb"),
        ("a\\.ce2\\b", "a\n\nb"),
        ("a\\.sp+2\\b", "a\n\nb"),
        ("a\\.in5\\b", "ab"),
        ("a\\.ti-2\\b", "ab"),
        ("a\\.fi\\b\\.nf\\c", "abc"),
        ("a\\.zz\\b", "a\\.zz\\b"),
        ("a\\XFC\\b", "a\u00fcb"),
        ("a\\XF\\b", "a\\XF\\b"),
        ("a\\X\\b", "a\\X\\b"),
        ("a\\f\\b", "a\\f\\b"),
        ("\\T\\\\T\\", "&&"),
        ("a\tb\r\nc\rd", "a\tb\nc\nd"),
        ("a\x07\x7f\ufffeb", "ab"),
        ("", ""),
    ],
)
def test_an_escape_is_what_it_stands_for(sent: str, meant: str) -> None:
    assert USUAL.unescape(sent) == meant


def test_a_hexadecimal_escape_is_in_the_set_of_the_message() -> None:
    assert replace(USUAL, character_set="UTF-8").unescape("\\XC3BC\\") == "\u00fc"
    assert replace(USUAL, character_set="UTF-8").unescape("\\XFC\\") == "\ufffd"


def test_other_delimiters_have_their_own_escapes() -> None:
    other = Delimiters("#", "*", "!", "?", "$", "UTF-8")

    assert other.unescape("?F??S??R??E??T?") == "#*!?$"
    assert other.unescape("\\F\\") == "\\F\\"


OTHERS = replace(SETTINGS, authorities={**SETTINGS.authorities, "*": "https://all.example/"})


@pytest.mark.parametrize(
    ("authority", "system"),
    [
        ("A&7", "https://all.example/id/7"),
        ("A&7&L", "https://all.example/L/7"),
        ("A", "https://all.example/A"),
    ],
)
def test_an_identifier_without_a_kind_has_a_system_too(authority: str, system: str) -> None:
    (report,) = mapped(message(pid({3: f"4^^^{authority}"}), obr(), obx()), OTHERS)

    patient = report.body["parameter"][0]["resource"]
    assert patient["identifier"][0]["system"] == system


def test_a_number_without_an_authority_is_not_below_the_base_of_all() -> None:
    with pytest.raises(Unusable, match=r"PID\[1\]-3: names no assigning authority"):
        mapped(message(pid({3: "4"}), obr(), obx()), OTHERS)


def test_a_time_without_an_offset_is_named_with_the_setting() -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(msh={7: ""}), replace(SETTINGS, time_zone=""))

    assert {str(each) for each in refused.value.problems} == {
        f"OBR[1]-{at}: has no offset: set [message] time_zone" for at in (22, 7)
    }
    assert {each.code for each in refused.value.problems} == {Code.REQUIRED}


@pytest.mark.parametrize(
    ("sent", "time"),
    [
        ("2026", "2026"),
        ("202603", "2026-03"),
        ("2026030208", "2026-03-02"),
        ("202603020815+0530", "2026-03-02T08:15:00+05:30"),
        ("202603020815-0330", "2026-03-02T08:15:00-03:30"),
        ("20260302081530.1234", "2026-03-02T08:15:30+01:00"),
        ("20260302081530.1234+0000", "2026-03-02T08:15:30+00:00"),
        ("2026-03-02T08:15:30.5-0500", "2026-03-02T08:15:30-05:00"),
        ("20260702081500", "2026-07-02T08:15:00+01:00"),
    ],
)
def test_a_time_has_the_precision_and_the_offset_that_were_sent(sent: str, time: str) -> None:
    assert observation({14: sent})["effectiveDateTime"] == time


@pytest.mark.parametrize("sent", ["202613", "20260230", "202603022460", "2026030208150", "now"])
def test_a_time_that_there_is_not_is_a_problem(sent: str) -> None:
    with pytest.raises(
        Unusable, match=r"OBX\[1\]-14: must be a time such as 20260302081500\+0100"
    ):
        observation({14: sent})


def test_settings_have_no_zone_by_default() -> None:
    assert Settings(time_zone="").zone is None


@pytest.mark.parametrize("escaped", ["a\\X0D\\b", "a\\X0D0A\\b", "a\\X0A\\b", "a\rb", "a\r\nb"])
def test_a_line_end_is_a_line_feed_however_it_is_sent(escaped: str) -> None:
    assert USUAL.unescape(escaped) == "a\nb"


@pytest.mark.parametrize("name", ["ASCII", "ISO IR6"])
def test_a_character_beyond_ascii_is_none_of_its_sets(name: str) -> None:
    with pytest.raises(Unusable, match=f"the message is not in {name}: byte 1 is invalid"):
        decode("a\u00fc".encode(), name)
