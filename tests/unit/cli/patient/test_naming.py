"""An identifier on the command line is a system, a bar and a value."""

from __future__ import annotations

import click
import pytest

from fhirpub.cli.patient.naming import IdentifierType


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("urn:x|4711", ("urn:x", "4711")),
        ("urn:x|a|b", ("urn:x", "a|b")),
        ("urn:x|a b", ("urn:x", "a b")),
    ],
)
def test_the_first_bar_ends_the_system(text: str, pair: tuple[str, str]) -> None:
    assert IdentifierType().convert(text, None, None) == pair


def test_what_was_read_stays_as_it_is() -> None:
    assert IdentifierType().convert(("a", " b "), None, None) == ("a", " b ")


@pytest.mark.parametrize(
    "text", ["", "urn:x", "urn:x|", "|4711", "urn:x| ", "urn:x| 1", "x|1 ", "x|\t"]
)
def test_a_text_without_a_part_or_with_blanks_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not 'system\|value'; quote it"):
        IdentifierType().convert(text, None, None)
