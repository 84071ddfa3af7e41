"""How pages write times and numbers."""

from __future__ import annotations

import pytest

from fhirpub.console.rendering import counted, moment


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        ("2026-11-27T21:05:42.029Z", "2026-11-27 21:05:42 UTC"),
        ("2026-11-20T10:05:00-03:00", "2026-11-20 10:05:00 -03:00"),
        ("2026-11-20", "2026-11-20"),
        ("2026", "2026"),
        ("", ""),
    ],
)
def test_a_time_is_written_with_its_zone(stored: str, written: str) -> None:
    assert moment(stored) == written


@pytest.mark.parametrize(
    ("number", "written"), [(0, "0 bytes"), (1, "1 byte"), (1888, "1,888 bytes")]
)
def test_a_number_has_its_noun_in_the_right_form(number: int, written: str) -> None:
    assert counted(number, "byte") == written
