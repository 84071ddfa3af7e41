"""Records: aligned for people, JSON for programs."""

from __future__ import annotations

import io
import json

import click
import pytest

from fhirpub.cli.printing import as_text, counted, is_terminal, print_record, print_table

RECORDS = [
    {"id": "1", "created_at": "now", "disabled": False, "scopes": ["a", "b"]},
    {"id": "1000", "created_at": "", "disabled": True, "scopes": []},
]


def test_a_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(RECORDS, as_json=False, empty="")

    assert capsys.readouterr().out.splitlines() == [
        "id    created at  disabled  scopes",
        "1     now         no        a, b",
        "1000  -           yes       -",
    ]


def test_an_empty_table_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([], as_json=False, empty="None yet: add one")

    assert capsys.readouterr().out == "None yet: add one\n"


@pytest.mark.parametrize("records", [[], RECORDS])
def test_a_list_is_an_array(
    records: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    print_table(records, as_json=True, empty="None yet")

    assert json.loads(capsys.readouterr().out) == records


def test_a_record_is_aligned_between_its_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    print_record("Added.", {"id": "1", "client_id": "é"}, as_json=False, then="Next: use it")

    assert capsys.readouterr().out.splitlines() == [
        "Added.",
        "  id         1",
        "  client id  é",
        "Next: use it",
    ]


def test_a_record_as_json_is_one_object_alone(capsys: pytest.CaptureFixture[str]) -> None:
    print_record("Added.", {"id": "1", "name": "é"}, as_json=True, then="Next")

    assert capsys.readouterr().out == '{"id": "1", "name": "é"}\n'


@pytest.mark.parametrize("text", ["\x1b]0;owned\x07", "a\nb", "\x9b2J"])
def test_what_others_wrote_does_not_speak_to_the_terminal(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    print_record("Found.", {"answer": text}, as_json=False)

    shown = capsys.readouterr().out.removesuffix("\n")
    assert all(name.isprintable() for name in shown.replace("\n", "", 1))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (0.0, "0.0"), (1, "1"), (False, "no"), (True, "yes"), (None, "-"), ("", "-")),
        *(([], "-"), ([0], "0"), (["a", 1], "a, 1"), (" ", " "), ("a\u0085b", "a\ufffdb")),
    ],
)
def test_a_value_is_what_people_read(value: object, text: str) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        *(
            (1, "report", "1 report"),
            (0, "report", "0 reports"),
            (1_200, "report", "1,200 reports"),
        ),
        *((1, "ImagingStudy", "1 ImagingStudy"), (2, "ImagingStudy", "2 ImagingStudies")),
    ],
)
def test_of_one_thing_the_noun_is_singular(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_headings_are_bold_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with click.Context(click.Command("x")) as context:
        context.color = True
        print_record("Added.", {"id": "1"}, as_json=False)
        print_table(RECORDS[:1], as_json=False, empty="")

    lines = capsys.readouterr().out.splitlines()
    bold = [line.replace("\x1b[0m", "") for line in lines if line.startswith("\x1b[1m")]
    assert [line.split()[0] for line in bold] == ["\x1b[1mAdded.", "\x1b[1mid"]


def test_a_stream_that_was_closed_before_is_no_terminal() -> None:
    assert not is_terminal(None)
    assert not is_terminal(io.StringIO())
