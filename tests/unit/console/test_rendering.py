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
        ("2026-11-27T21:05:42.029Z", "2026-11-27 21:05:42 UTC"),
        ("2026-11-20T10:05:00-03:00", "2026-11-20 10:05:00 -03:00"),
        ("2026-11-20", "2026-11-20"),
        ("2026", "2026"),
        ("", ""),
    ],
)
def test_a_time_is_written_to_the_second_and_with_its_zone(text: str, shown: str) -> None:
    assert moment(text) == shown


@pytest.mark.parametrize(
    ("number", "noun", "plural", "shown"),
    [
        (0, "byte", "", "0 bytes"),
        (1, "byte", "", "1 byte"),
        (1888, "byte", "", "1,888 bytes"),
        (0, "entry", "", "0 entrys"),
        (1, "entry", "", "1 entry"),
        (2, "entry", "", "2 entrys"),
        (1, "entry", "entries", "1 entry"),
        (1234, "entry", "entries", "1,234 entries"),
    ],
)
def test_a_number_has_its_noun(number: int, noun: str, plural: str, shown: str) -> None:
    assert counted(number, noun, plural) == shown


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
