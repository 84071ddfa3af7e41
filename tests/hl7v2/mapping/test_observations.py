"""Observations and Specimens: their times, comments and numbers."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub_hl7v2.problems import Unusable
from tests.hl7v2.messages import mapped, message, obr, observation, obx, pid, resources, segment

SENT = "2026-03-02T08:15:00+01:00"


def specimen(*segments: str, **fields: str) -> dict[str, Any]:
    at = {int(name.removeprefix("f")): text for name, text in fields.items()}
    (made,) = resources(message(pid(), obr(at), obx(), *segments), "specimen")
    return made


# Values


@pytest.mark.parametrize(("value", "absent"), [("", True), ("1", False)])
def test_only_a_result_without_a_value_was_not_asked(value: str, *, absent: bool) -> None:
    assert ("dataAbsentReason" in observation({5: value, 11: "N"})) is absent


def test_blank_lines_around_a_text_are_left_out() -> None:
    text, line = {2: "TX", 5: "", 6: ""}, {2: "TX", 3: "", 6: ""}

    made = observation(text, obx({**line, 5: "one"}), obx({**line, 5: ""}))

    assert made["valueString"] == "one"


@pytest.mark.parametrize(
    ("own", "found"), [("202603020900", "2026-03-02T09:00:00+01:00"), ("", SENT)]
)
def test_a_result_has_its_own_time_or_that_of_the_report(own: str, found: str) -> None:
    assert observation({14: own})["effectiveDateTime"] == found


def test_a_result_has_method_and_range() -> None:
    made = observation({7: "12-16", 17: "AUTO^Automated^99LOC"})

    assert made["method"]["text"] == "Automated"
    unit = {"unit": "g/dL", "system": "http://unitsofmeasure.org", "code": "g/dL"}
    assert made["referenceRange"] == [
        {"low": {"value": 12, **unit}, "high": {"value": 16, **unit}, "text": "12-16"}
    ]


# Status


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("A", "amended"),
        ("C", "corrected"),
        ("D", "entered-in-error"),
        ("F", "final"),
        ("I", "registered"),
        ("N", "final"),
        ("O", "registered"),
        ("P", "preliminary"),
        ("R", "preliminary"),
        ("S", "preliminary"),
        ("U", "final"),
        ("W", "entered-in-error"),
        ("X", "cancelled"),
        ("f", "final"),
        ("p", "preliminary"),
    ],
)
def test_a_result_has_the_status_of_obx_11(sent: str, status: str) -> None:
    assert observation({11: sent})["status"] == status


def test_an_unknown_status_is_named_with_those_that_are_known() -> None:
    with pytest.raises(Unusable, match=r"OBX\[1\]-11: must be one of A, C, D, F, I, N, O, P"):
        mapped(message(pid(), obr(), obx({11: "Z"})))


# Numbers and references


def test_results_of_one_code_are_numbered() -> None:
    raw = message(pid(), obr(), obx(), obx(), obx({4: "1"}), obx())

    made = resources(raw, "observation")

    assert [one["identifier"][0]["value"] for one in made] == [
        "NQ-1001/718-7",
        "NQ-1001/718-7#2",
        "NQ-1001/718-7/1",
        "NQ-1001/718-7#3",
    ]
    assert [one["id"] for one in made] == [f"result-{at}" for at in range(1, 5)]


def test_a_result_names_the_only_specimen_and_none_of_several() -> None:
    blood = segment("SPM", {4: "BLD"})

    (one,) = resources(message(pid(), obr(), obx(), blood), "observation")
    (two,) = resources(message(pid(), obr(), obx(), blood, blood), "observation")

    assert one["specimen"] == {"reference": "Specimen/specimen-1"}
    assert "specimen" not in two


# Specimens


@pytest.mark.parametrize(
    ("start", "end", "collection"),
    [
        ("202603020815", "", {"collectedDateTime": SENT}),
        ("202603020815", "202603020815", {"collectedDateTime": SENT}),
        (
            "202603020815",
            "202603020830",
            {"collectedPeriod": {"start": SENT, "end": "2026-03-02T08:30:00+01:00"}},
        ),
    ],
)
def test_a_specimen_was_collected_at_a_moment_or_over_a_time(
    start: str, end: str, collection: dict[str, Any]
) -> None:
    source = specimen(f7=start, f8=end, f15="BLD")
    own = specimen(segment("SPM", {4: "BLD", 17: f"{start}^{end}"}))

    assert source["collection"] == own["collection"] == collection


def test_a_specimen_has_its_comments() -> None:
    made = specimen(segment("SPM", {4: "BLD"}), segment("NTE", {3: "clotted~twice"}))

    assert made["note"] == [{"text": "clotted\ntwice"}]


@pytest.mark.parametrize(
    ("number", "found"),
    [
        ("P1^F1", {"system": "https://north-quay.example/reports", "value": "F1"}),
        ("^F1", {"system": "https://north-quay.example/reports", "value": "F1"}),
        ("P1", {"system": "https://north-quay.example/reports", "value": "P1"}),
        ("P1^F1&HIS", {"system": "https://hospital.example/orders", "value": "F1"}),
        ("P1&HIS^", {"system": "https://hospital.example/orders", "value": "P1"}),
        ("^F1&unknown", {"value": "F1"}),
    ],
)
def test_the_number_of_the_laboratory_goes_before_that_of_the_placer(
    number: str, found: dict[str, str]
) -> None:
    assert specimen(segment("SPM", {2: number, 4: "BLD"}))["identifier"] == [found]


def test_a_document_is_no_result() -> None:
    document = obx({2: "ED", 3: "PDF", 5: "^AP^PDF^Base64^QUJD"})

    made = resources(message(pid(), obr(), document, obx()), "observation")

    assert [one["id"] for one in made] == ["result-1"]
    assert "valueQuantity" in made[0]
