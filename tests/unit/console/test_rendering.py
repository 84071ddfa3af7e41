"""How pages write times and numbers, and that they escape what they show."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.console.rendering import counted, moment, render


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2024-05-01T10:00:30Z", "2024-05-01 10:00:30 UTC"),
        ("2024-05-01T10:00:30.123Z", "2024-05-01 10:00:30 UTC"),
        ("2024-05-01T10:00:30.5+02:00", "2024-05-01 10:00:30 +02:00"),
        ("2024-05-01T10:00:30-03:00", "2024-05-01 10:00:30 -03:00"),
        ("2024-05-01", "2024-05-01"),
        ("2024", "2024"),
        ("", ""),
    ],
)
def test_a_time_is_written_to_the_second_and_with_its_zone(text: str, shown: str) -> None:
    assert moment(text) == shown


@pytest.mark.parametrize(
    ("number", "plural", "shown"),
    [
        (0, "", "0 entries of one"),
        (1, "", "1 entry"),
        (2, "", "2 entries of one"),
        (1, "entries", "1 entry"),
        (1234, "entries", "1,234 entries"),
    ],
)
def test_a_number_has_its_noun(number: int, plural: str, shown: str) -> None:
    found = counted(number, "entry", plural)

    assert found == (shown if plural or number == 1 else f"{number} entrys")


def test_a_value_is_escaped() -> None:
    shown: dict[str, Any] = {
        "title": "<Title>",
        "section": "",
        "session": None,
        "navigation": [],
        "asset": lambda name: name,
        "path": "/console/sign-in/link",
        "environment": "sandbox",
        "documentation": "",
    }

    page = render(
        "sign_in_link.html", {**shown, "name": "<Ada>", "is_operator": False, "code": '"c'}
    ).decode()

    assert "<Ada>" not in page
    assert "&lt;Ada&gt;" in page
    assert "&lt;Title&gt;" in page
    assert "&quot;c" in page
