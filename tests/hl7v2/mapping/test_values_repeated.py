"""Repeated values (``~``), and those with more than FHIR holds: nothing of them is lost."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.hl7v2.messages import message, obr, observation, obx, pid, resources


def value(kind: str, text: str) -> dict[str, Any]:
    made = observation({2: kind, 5: text, 6: ""})
    return {name: found for name, found in made.items() if name.startswith("value")}


@pytest.mark.parametrize(
    ("kind", "text", "lines"),
    [
        ("NM", "1~2", "1\n2"),
        ("", "1~2", "1\n2"),
        ("SN", ">^100~^1^:^128~^5^-^10", ">100\n1:128\n5-10"),
        ("DT", "20260302~20260303", "20260302\n20260303"),
        ("TS", "202603020815~20260303", "202603020815\n20260303"),
        ("DTM", "202603020815~20260303", "202603020815\n20260303"),
        ("TM", "0815~0915", "0815\n0915"),
        ("DR", "20260302^20260303~20260401", "20260302^20260303\n20260401"),
        ("NR", "1^5~7^9", "1^5\n7^9"),
        ("ST", "a~b", "a\nb"),
        ("IS", "A~B", "A\nB"),
        ("XPN", "Ashdown^Juniper~Ash", "Ashdown^Juniper\nAsh"),
    ],
)
def test_several_values_are_lines_of_a_text(kind: str, text: str, lines: str) -> None:
    assert value(kind, text) == {"valueString": lines}


@pytest.mark.parametrize(
    ("kind", "text"),
    [("NM", "1~"), ("SN", "^1~"), ("TM", "~0815"), ("NR", '1^2~""'), ("DT", "~~2026")],
)
def test_an_empty_repetition_is_no_value(kind: str, text: str) -> None:
    (name,) = value(kind, text)

    assert name != "valueString"


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("NM", "10^3", "10^3"),
        ("NM", "1&2", "1&2"),
        ("SN", "^10^^5", "10 5"),
        ("SN", "^10^^many", "10 many"),
        ("NR", "low^10", "low^10"),
        ("NR", "1^high", "1^high"),
        ("DR", "20260302^later", "20260302^later"),
    ],
)
def test_a_value_of_which_a_part_cannot_be_read_is_a_text(
    kind: str, text: str, shown: str
) -> None:
    assert value(kind, text) == {"valueString": shown}


def test_several_documents_of_one_result_are_documents_of_the_report() -> None:
    field = "^AP^PDF^Base64^QUJD~^IM^PNG^Base64^REVG"
    raw = message(pid(), obr(), obx({2: "ED", 3: "1^Pages", 5: field}))

    (report,) = resources(raw, "diagnosticReport")

    assert [
        (one["title"], one["contentType"], base64.b64decode(one["data"]))
        for one in report["presentedForm"]
    ] == [("Pages", "application/pdf", b"ABC"), ("Pages", "image/png", b"DEF")]
