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
