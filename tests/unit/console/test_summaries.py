"""Resources as rows: what is shown of each, in which order, and how a value is marked."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.console.summaries import Result, Summary, reference_to, results_of, summary_of

REPORT = {"resourceType": "DiagnosticReport", "id": "r"}


def an_observation(id_: str, **members: Any) -> dict[str, Any]:
    return {"resourceType": "Observation", "id": id_, "status": "final", **members}


def quantity(value: float) -> dict[str, Any]:
    return {"value": value, "unit": "g"}


def interpreted(code: str) -> dict[str, Any]:
    flags = [{"coding": [{"code": code, "display": f"said {code}"}]}]
    return an_observation("o", valueQuantity=quantity(1), interpretation=flags)


def test_a_report_is_a_row_with_what_a_reader_looks_for() -> None:
    report = {
        **REPORT,
        "identifier": [{"system": "s", "value": "A-1"}, {"value": "second"}],
        "code": {"text": "Blood count"},
        "subject": {"reference": "Patient/p", "display": "Ada"},
        "status": "final",
        "issued": "2026-01-02",
        "effectiveDateTime": "2026-01-01",
        "meta": {"lastUpdated": "2026-01-03"},
    }

    assert summary_of(report) == Summary(
        path="/console/resources/DiagnosticReport/r",
        identifier="A-1",
        what="Blood count",
        person="Ada",
        status="final",
        date="2026-01-02",
        updated="2026-01-03",
    )


def test_a_resource_without_anything_is_a_row_of_nothing() -> None:
    assert summary_of(REPORT) == Summary(
        path="/console/resources/DiagnosticReport/r",
        identifier="",
        what="",
        person="",
        status="",
        date="",
        updated="",
    )


@pytest.mark.parametrize(
    ("members", "identifier"),
    [
        ({"identifier": {"value": "one"}}, "one"),
        ({"identifier": []}, ""),
        ({"identifier": [], "accessionIdentifier": {"value": "acc"}}, "acc"),
        ({"identifier": [{"system": "s"}]}, ""),
    ],
)
def test_the_first_identifier_is_shown(members: dict[str, Any], identifier: str) -> None:
    assert summary_of({**REPORT, **members}).identifier == identifier


@pytest.mark.parametrize(
    ("members", "person"),
    [
        ({"patient": {"display": "Ada"}}, "Ada"),
        ({"subject": {"identifier": {"value": "7"}, "reference": "Patient/p"}}, "7"),
        ({"subject": {"reference": "Patient/p"}}, "Patient/p"),
        ({"subject": {"display": "Ada"}, "patient": {"display": "Eve"}}, "Ada"),
    ],
)
def test_a_person_is_shown_by_name_then_by_number_then_by_reference(
    members: dict[str, Any], person: str
) -> None:
    assert summary_of({**REPORT, **members}).person == person


@pytest.mark.parametrize(
    "name",
    ["issued", "effectiveDateTime", "effectiveInstant", "date", "authoredOn",
     "occurrenceDateTime", "started", "receivedTime", "birthDate"],
)  # fmt: skip
def test_the_date_of_each_type_is_shown(name: str) -> None:
    assert summary_of({**REPORT, name: "2026-01-01"}).date == "2026-01-01"


@pytest.mark.parametrize("name", ["code", "type", "vaccineCode", "name", "title", "description"])
def test_what_a_resource_is_comes_from_the_element_of_its_type(name: str) -> None:
    assert summary_of({**REPORT, name: "it"}).what == "it"


def test_a_value_is_a_row_with_its_range_and_state() -> None:
    observation = an_observation(
        "o",
        code={"text": "Haemoglobin"},
        valueQuantity=quantity(13.2),
        referenceRange=[{"low": quantity(12), "high": quantity(16)}],
    )

    assert results_of([observation]) == [
        Result(
            path="/console/resources/Observation/o",
            what="Haemoglobin",
            value="13.2 g",
            flag="",
            level="",
            reference="12 g to 16 g",
            status="final",
        )
    ]


@pytest.mark.parametrize(
    ("code", "level"),
    [
        *((code, "bad") for code in ("HH", "HU", "LL", "LU", "AA")),
        *((code, "warn") for code in ("H", "HX", "L", "LX", "A", "POS", "R", ">", "<")),
        *((code, "") for code in ("N", "NEG", "S", "x")),
    ],
)
def test_a_value_is_marked_by_what_the_laboratory_found(code: str, level: str) -> None:
    (row,) = results_of([interpreted(code)])

    assert (row.level, row.flag) == (level, f"said {code}")


def test_rows_are_in_the_order_in_which_the_first_resource_lists_them() -> None:
    listing = {
        **REPORT,
        "valueString": "x",
        "result": [{"reference": "Observation/b"}, {"reference": "Observation/a"}],
    }
    others = [an_observation(id_, valueQuantity=quantity(1)) for id_ in ("z", "a", "b")]

    rows = results_of([listing, *others])

    assert [row.path.rpartition("/")[2] for row in rows] == ["r", "b", "a", "z"]


def test_what_has_neither_a_value_nor_parts_is_no_row() -> None:
    assert results_of([REPORT, an_observation("o", code={"text": "x"})]) == []


def test_parts_stand_below_their_resource_with_its_state() -> None:
    parts = [
        {"code": {"text": "systolic"}, "valueQuantity": quantity(120)},
        {"code": {"text": "diastolic"}, "dataAbsentReason": {"text": "not done"}},
    ]

    rows = results_of([an_observation("o", code={"text": "pressure"}, component=parts)])

    assert [(row.what, row.value, row.is_part, row.status) for row in rows] == [
        ("pressure", "", False, "final"),
        ("systolic", "120 g", True, "final"),
        ("diastolic", "not done", True, "final"),
    ]


def test_a_reason_stands_where_a_value_is_missing() -> None:
    observation = an_observation("o", component=[{}], dataAbsentReason={"text": "no sample"})

    assert results_of([observation])[0].value == "no sample"


def test_a_value_without_a_state_and_a_flag_without_a_code_are_shown_without_them() -> None:
    observation = {
        "resourceType": "Observation",
        "id": "o",
        "valueString": "x",
        "interpretation": [{"text": "odd"}],
    }

    (row,) = results_of([observation])

    assert (row.status, row.flag, row.level, row.reference) == ("", "odd", "", "")


def test_a_reference_is_the_type_and_the_id() -> None:
    assert reference_to(REPORT) == "DiagnosticReport/r"


@pytest.mark.parametrize(
    "flags",
    [
        [{"coding": [{"code": "N"}]}, {"coding": [{"code": "HH"}]}],
        [{"coding": [{"code": "over"}, {"code": "HH"}]}],
        [{"coding": [{"code": "H"}, {"code": "HH"}]}],
    ],
)
def test_the_worst_of_all_codes_is_the_level_of_a_result(flags: list[dict[str, Any]]) -> None:
    observation = an_observation("o", valueQuantity=quantity(1), interpretation=flags)

    (row,) = results_of([observation])

    assert row.level == "bad"
