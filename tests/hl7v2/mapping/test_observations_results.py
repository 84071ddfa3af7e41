"""Results (OBX) become Observations."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fhirpub_hl7v2.problems import Unusable
from tests.hl7v2.messages import mapped, message, obr, observation, obx, pid, resources, segment

UNIT = {"unit": "g/dL", "system": "http://unitsofmeasure.org", "code": "g/dL"}


def value(kind: str, text: str, unit: str = "") -> dict[str, Any]:
    made = observation({2: kind, 5: text, 6: unit})
    return {name: found for name, found in made.items() if name.startswith("value")}


@pytest.mark.parametrize(
    ("text", "number"),
    [("13.20", "13.20"), ("+5", "5"), ("007", "7"), (".5", "0.5"), ("5.", "5"), ("-0.1", "-0.1")],
)
def test_a_number_keeps_its_digits(text: str, number: str) -> None:
    found = value("NM", text)["valueQuantity"]["value"]

    assert str(found) == number


def test_a_unit_of_ucum_has_its_code() -> None:
    assert observation({})["valueQuantity"] == {"value": Decimal("13.2"), **UNIT}


def test_a_unit_of_another_system_is_a_text() -> None:
    found = value("NM", "1", "gm/dl^gram^ISO+")

    assert found == {"valueQuantity": {"value": 1, "unit": "gram"}}


def test_a_unit_may_have_ucum_as_its_second_coding() -> None:
    found = value("NM", "1", "GDL^^99LOC^g/dL^^UCUM")

    assert found["valueQuantity"]["code"] == "g/dL"


def test_a_number_with_a_comparator_is_a_quantity() -> None:
    assert value("NM", "<5") == {"valueQuantity": {"value": 5, "comparator": "<"}}


def test_what_is_no_number_is_a_text() -> None:
    assert value("NM", "haemolysed") == {"valueString": "haemolysed"}


@pytest.mark.parametrize("comparator", ["<", ">", "<=", ">="])
def test_a_structured_numeric_has_a_comparator(comparator: str) -> None:
    found = value("SN", f"{comparator}^10")

    assert found == {"valueQuantity": {"value": 10, "comparator": comparator}}


def test_a_structured_numeric_may_be_equal() -> None:
    assert value("SN", "=^10") == {"valueQuantity": {"value": 10}}


def test_a_structured_numeric_may_be_a_range() -> None:
    assert value("SN", "^2^-^4") == {"valueRange": {"low": {"value": 2}, "high": {"value": 4}}}


def test_a_structured_numeric_may_be_a_ratio() -> None:
    found = value("SN", "^1^:^128")

    assert found == {"valueRatio": {"numerator": {"value": 1}, "denominator": {"value": 128}}}


def test_another_structured_numeric_is_a_text() -> None:
    assert value("SN", "^2^+") == {"valueString": "2+"}


@pytest.mark.parametrize("kind", ["ST", "TX", "FT"])
def test_texts_have_a_line_for_each_repetition(kind: str) -> None:
    assert value(kind, "first~second\\.br\\third") == {"valueString": "first\nsecond\nthird"}


def test_a_text_with_a_delimiter_that_was_not_escaped_is_whole() -> None:
    assert value("TX", "10^3 cells") == {"valueString": "10^3 cells"}


@pytest.mark.parametrize("kind", ["CE", "CWE"])
def test_a_coded_value_has_both_codings(kind: str) -> None:
    found = value(kind, "278149003^A positive^SCT^AP^A pos^HL70005")

    assert found["valueCodeableConcept"] == {
        "coding": [
            {"system": "http://snomed.info/sct", "code": "278149003", "display": "A positive"},
            {
                "system": "http://terminology.hl7.org/CodeSystem/v2-0005",
                "code": "AP",
                "display": "A pos",
            },
        ],
        "text": "A positive",
    }


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("DT", "20260302", {"valueDateTime": "2026-03-02"}),
        ("TS", "202603020815", {"valueDateTime": "2026-03-02T08:15:00+01:00"}),
        ("TS", "20260302081500-0500", {"valueDateTime": "2026-03-02T08:15:00-05:00"}),
        ("TS", "2026030208", {"valueDateTime": "2026-03-02"}),
        ("TM", "0815", {"valueTime": "08:15:00"}),
        ("TM", "081530", {"valueTime": "08:15:30"}),
    ],
)
def test_dates_and_times_keep_their_precision(kind: str, text: str, found: object) -> None:
    assert value(kind, text) == found


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("DT", "unknown"),
        ("DT", "20261399"),
        ("TS", "2026-03-02 about 8"),
        ("DTM", "19000229"),
        ("TM", "noon"),
        ("TM", "2460"),
        ("DR", "20260302^later"),
    ],
)
def test_what_is_no_time_remains_a_text(kind: str, text: str) -> None:
    assert value(kind, text) == {"valueString": text}


def test_a_code_of_a_table_is_a_concept_without_a_system() -> None:
    found = value("IS", "NOT SEEN")

    assert found["valueCodeableConcept"] == {"coding": [{"code": "NOT SEEN"}], "text": "NOT SEEN"}


@pytest.mark.parametrize("text", ["see  below", "10^3 cells", "A~B"])
def test_what_is_no_code_of_a_table_remains_a_text(text: str) -> None:
    assert value("IS", text) == {"valueString": text.replace("~", "\n")}


@pytest.mark.parametrize("text", ["", '""'])
def test_an_empty_or_null_value_is_left_out(text: str) -> None:
    assert value("NM", text) == {}


def test_abnormal_flags_are_interpretations() -> None:
    (high, other) = observation({8: "HH~XYZ"})["interpretation"]

    v3 = "http://terminology.hl7.org/CodeSystem/v3-ObservationInterpretation"
    assert high == {"coding": [{"system": v3, "code": "HH"}]}
    assert set(other) == {"text"}


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("12.0-16.0", {"low": "12.0", "high": "16.0"}),
        ("-2 - -1", {"low": "-2", "high": "-1"}),
        ("<5", {"high": "5"}),
        (">=3", {"low": "3"}),
        ("negative", {}),
        ("1-2-3", {}),
    ],
)
def test_a_reference_range_has_limits_and_always_its_text(
    text: str, limits: dict[str, str]
) -> None:
    (found,) = observation({7: text})["referenceRange"]

    assert found.pop("text") == text
    assert found == {name: {"value": Decimal(limit), **UNIT} for name, limit in limits.items()}


def test_comments_are_notes_of_the_result_before_them() -> None:
    found = observation({}, segment("NTE", {3: "checked~twice"}), segment("NTE", {3: "by hand"}))

    assert found["note"] == [{"text": "checked\ntwice\nby hand"}]


@pytest.mark.parametrize(
    ("sent", "unit"),
    [("10^9/L", "10^9/L"), ("CD:289^mg/dL^99LOC", "mg/dL"), ("g/L", "g/L"), ("^mmol/L", "mmol/L")],
)
def test_a_unit_is_what_people_read(sent: str, unit: str) -> None:
    assert observation({6: sent})["valueQuantity"]["unit"] == unit


def test_texts_without_a_code_are_lines_of_the_text_before_them() -> None:
    text = {2: "TX", 3: "22634-0^Pathology report^LN", 6: ""}
    raw = message(
        pid(),
        obr(),
        obx({**text, 5: "Skin, left arm:"}),
        obx({2: "TX", 3: "", 5: "", 6: ""}),
        obx({2: "TX", 3: "", 5: "basal cell carcinoma", 6: ""}),
        obx(),
    )

    first, second = resources(raw, "observation")

    assert first["valueString"] == "Skin, left arm:\n\nbasal cell carcinoma"
    assert second["valueQuantity"]["value"] == Decimal("13.2")


def test_a_text_without_a_code_that_continues_none_has_the_code_of_the_report() -> None:
    raw = message(pid(), obr(), obx({2: "TX", 3: "", 5: "No growth", 6: ""}))

    (found,) = resources(raw, "observation")

    assert found["code"]["coding"][0]["code"] == "58410-2"
    assert found["identifier"][0]["value"] == "NQ-1001/58410-2"


@pytest.mark.parametrize(
    ("sent", "name", "coding"),
    [
        ("^^^99717-6^17-OHP^L", "99717-6", [{"code": "99717-6", "display": "17-OHP"}]),
        ("^Hemoglobin", "Hemoglobin", None),
    ],
)
def test_a_code_may_be_that_of_the_sender_or_a_text(
    sent: str, name: str, coding: list[dict[str, str]] | None
) -> None:
    found = observation({3: sent})

    assert found["identifier"][0]["value"] == f"NQ-1001/{name}"
    assert found["code"].get("coding") == coding


def test_a_number_without_a_code_is_refused() -> None:
    with pytest.raises(Unusable) as caught:
        mapped(message(pid(), obr(), obx({3: ""})))

    assert caught.value.problems[0].place == "OBX[1]-3"


def test_an_empty_result_is_left_out() -> None:
    raw = message(pid(), obr(), "OBX|1", obx())

    assert len(resources(raw, "observation")) == 1


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        (
            {2: "DR", 5: "20260302081500^20260302091500"},
            {
                "valuePeriod": {
                    "start": "2026-03-02T08:15:00+01:00",
                    "end": "2026-03-02T09:15:00+01:00",
                }
            },
        ),
        (
            {2: "NR", 5: "1^10", 6: "g/L"},
            {
                "valueRange": {
                    "low": {"value": Decimal(1), "unit": "g/L"},
                    "high": {"value": Decimal(10), "unit": "g/L"},
                }
            },
        ),
        ({2: "NR", 5: "low^high", 6: ""}, {"valueString": "low^high"}),
        ({2: "XPN", 5: "Ashdown^Juniper"}, {"valueString": "Ashdown^Juniper"}),
        ({2: "", 5: "6.3", 6: "g/L"}, {"valueQuantity": {"value": Decimal("6.3"), "unit": "g/L"}}),
        ({2: "", 5: "clear", 6: ""}, {"valueString": "clear"}),
    ],
)
def test_values_of_further_types(fields: dict[int, str], value: dict[str, Any]) -> None:
    found = observation(fields)

    assert {name: item for name, item in found.items() if name.startswith("value")} == value


@pytest.mark.parametrize(
    ("report", "status"),
    [
        *(("F", "final"), ("f", "final"), ("C", "final"), ("X", "cancelled"), ("", "unknown")),
        *(("P", "preliminary"), ("A", "preliminary"), ("R", "preliminary")),
        *(("I", "registered"), ("O", "registered"), ("S", "registered")),
    ],
)
def test_a_result_without_a_status_has_that_of_all_results(report: str, status: str) -> None:
    (found,) = resources(message(pid(), obr({25: report}), obx({11: ""})), "observation")

    assert found["status"] == status


def test_problems_of_all_results_are_found_at_once() -> None:
    raw = message(pid(), obr(), obx({2: "MA"}), obx({11: "Q"}), obx({14: "yesterday"}))

    with pytest.raises(Unusable) as caught:
        mapped(raw)

    places = [problem.place for problem in caught.value.problems]
    assert places == ["OBX[1]-2", "OBX[2]-11", "OBX[3]-14"]


def test_a_problem_has_no_value_of_the_message() -> None:
    with pytest.raises(Unusable) as caught:
        mapped(message(pid(), obr(), obx({14: "Ashdown"})))

    assert "Ashdown" not in str(caught.value)


def test_a_result_that_was_not_asked_for_has_no_value() -> None:
    found = observation({5: "", 11: "N"})

    assert found["dataAbsentReason"]["coding"][0]["code"] == "not-asked"


def test_the_specimen_has_type_time_and_number() -> None:
    raw = message(
        pid(),
        obr(),
        obx(),
        segment("SPM", {2: "^S-9&LIS", 4: "119297000^Blood^SCT", 17: "202603020815"}),
    )

    (specimen,) = resources(raw, "specimen")
    (result,) = resources(raw, "observation")

    assert specimen["identifier"] == [
        {"system": "https://north-quay.example/reports", "value": "S-9"}
    ]
    assert specimen["type"]["text"] == "Blood"
    assert specimen["collection"] == {"collectedDateTime": "2026-03-02T08:15:00+01:00"}
    assert result["specimen"] == {"reference": f"Specimen/{specimen['id']}"}


def test_before_2_5_the_specimen_is_that_of_obr_15() -> None:
    raw = message(pid(), obr({15: "BLD&Whole blood&HL70070"}), obx(), msh={12: "2.3"})

    (specimen,) = resources(raw, "specimen")

    assert specimen["type"]["text"] == "Whole blood"
