"""The PDF files of ``fhirpub sample``."""

from __future__ import annotations

import re

import pytest

from fhirpub.cli.sample.pdf import is_printable, page


def test_every_entry_of_the_table_leads_to_its_object() -> None:
    written = page("Title", ["one", "two"])

    table = int(re.findall(rb"startxref\n(\d+)\n%%EOF\n$", written)[0])
    places = re.findall(rb"(\d{10}) 00000 n \n", written[table:])
    assert written[table:].startswith(b"xref\n0 7\n0000000000 65535 f \n")
    assert b"trailer<</Size 7/Root 1 0 R" in written[table:]
    assert [written[int(place) :].split(b" obj")[0] for place in places] == [
        b"%d 0" % number for number in range(1, 7)
    ]


def test_the_length_of_the_page_is_that_of_its_stream() -> None:
    written = page("Title", ["one"])

    length = int(re.findall(rb"/Length (\d+)", written)[0])
    stream = written.partition(b"stream\n")[2].partition(b"\nendstream")[0]
    assert len(stream) == length


def test_parentheses_and_letters_with_accents_are_shown_as_they_are() -> None:
    written = page("Title", ["a (b) \\ Süßmilch"])

    assert b"(a \\(b\\) \\\\ S\xfc\xdfmilch) Tj" in written


@pytest.mark.parametrize(
    ("text", "printable"),
    [("Ásta Þórdís", True), ("Źrebiec", False), ("葵", False), ("\x07", False)],
)
def test_a_name_is_printed_only_if_the_fonts_have_its_letters(
    text: str, *, printable: bool
) -> None:
    assert is_printable(text) == printable


def test_the_title_is_bold_and_the_lines_have_a_fixed_width() -> None:
    written = page("Title", ["one"])

    bold, fixed = re.findall(rb"\d 0 obj(<</Type/Font.*?>>) endobj\n", written)
    font = b"<</Type/Font/Subtype/Type1/BaseFont/%b/Encoding/WinAnsiEncoding>>"
    assert (bold, fixed) == (font % b"Helvetica-Bold", font % b"Courier")
    assert b"/Font<</T 5 0 R/L 6 0 R>>" in written


def test_the_text_of_a_page_begins_below_its_top_and_ends() -> None:
    written = page("Title", ["one", "two"])

    stream = written.partition(b"stream\n")[2].partition(b"\nendstream")[0]
    assert stream.split(b"\n") == [
        *(b"BT", b"/T 16 Tf", b"56 780 Td", b"(Title) Tj"),
        *(b"/L 9 Tf", b"14 TL", b"T*", b"T*"),
        *(b"(one) Tj", b"T*", b"(two) Tj", b"T*", b"ET"),
    ]


def test_a_letter_that_the_fonts_lack_is_replaced() -> None:
    assert b"(?) Tj" in page("\u8475", [])
