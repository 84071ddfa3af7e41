"""Values of results (OBX-5 to 8) at the edges of what can be read."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pytest

from fhirpub_hl7v2.problems import Unusable
from tests.hl7v2.messages import mapped, message, obr, observation, obx, pid, resources, segment

UCUM = "http://unitsofmeasure.org"


def value(kind: str, text: str, unit: str = "") -> dict[str, Any]:
    made = observation({2: kind, 5: text, 6: unit})
    return {name: found for name, found in made.items() if name.startswith("value")}


def rendered(*results: str) -> str:
    """Return the lines of the document behind its title."""
    (report,) = resources(message(pid(), obr(), *results), "diagnosticReport")
    text = base64.b64decode(report["presentedForm"][0]["data"]).decode()
    return text.removeprefix("Blood count\n").removesuffix("\n")


# Units


@pytest.mark.parametrize(
    ("sent", "unit", "code"),
    [
        ("g/dL^gram per decilitre^UCUM", "gram per decilitre", "g/dL"),
        ("g/dL^^UCUM", "g/dL", "g/dL"),
        ("GDL^old^99LOC^g/dL^gram per decilitre^UCUM", "gram per decilitre", "g/dL"),
        ("^^UCUM^g/dL^^UCUM", "g/dL", "g/dL"),
    ],
)
def test_a_unit_of_ucum_is_shown_by_its_name_and_has_its_code(
    sent: str, unit: str, code: str
) -> None:
    found = value("NM", "1", sent)["valueQuantity"]

    assert found == {"value": 1, "unit": unit, "system": UCUM, "code": code}


@pytest.mark.parametrize("sent", ["10*9/L^billions^99LOC", "^billions", "x^billions"])
def test_a_unit_of_another_system_has_no_code(sent: str) -> None:
    assert value("NM", "1", sent)["valueQuantity"] == {"value": 1, "unit": "billions"}


def test_ten_that_is_coded_is_no_power() -> None:
    assert value("NM", "1", "10^tens^99LOC")["valueQuantity"]["unit"] == "tens"


# Numbers


@pytest.mark.parametrize("comparator", ["<", ">", "<=", ">="])
def test_a_number_may_have_each_comparator(comparator: str) -> None:
    found = value("NM", f"{comparator} 5.0")

    assert found == {"valueQuantity": {"value": Decimal("5.0"), "comparator": comparator}}


@pytest.mark.parametrize("text", ["< low", "5 < 6", "=5", "1e5", "--5", ".", "1,5", "9" * 41])
def test_a_number_that_cannot_be_read_is_a_text(text: str) -> None:
    assert value("NM", text) == {"valueString": text}


def test_a_number_of_40_digits_is_one() -> None:
    digits = "9" * 40

    assert str(value("NM", digits)["valueQuantity"]["value"]) == digits


@pytest.mark.parametrize(("sent", "comparator"), [("=<", "<="), ("=>", ">=")])
def test_a_comparator_of_a_structured_numeric_may_be_written_the_other_way(
    sent: str, comparator: str
) -> None:
    assert value("SN", f"{sent}^10")["valueQuantity"]["comparator"] == comparator


def test_a_ratio_may_be_written_with_a_stroke() -> None:
    found = value("SN", "^1^/^128", "mg")["valueRatio"]

    assert found["numerator"] == {"value": 1, "unit": "mg"}
    assert found["denominator"] == {"value": 128, "unit": "mg"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (">^2^-^4", ">2-4"),
        (">^1^:^2", ">1:2"),
        ("^2^-", "2-"),
        ("^1^:^many", "1:many"),
        ("^many^:^1", "many:1"),
        ("^few^-^1", "few-1"),
        ("<>^10", "<>10"),
    ],
)
def test_a_structured_numeric_without_a_meaning_in_fhir_is_a_text(text: str, shown: str) -> None:
    assert value("SN", text) == {"valueString": shown}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1^", {"low": {"value": 1, "unit": "g/L"}}),
        ("^10", {"high": {"value": 10, "unit": "g/L"}}),
    ],
)
def test_a_range_of_numbers_may_have_one_limit(text: str, found: dict[str, Any]) -> None:
    assert value("NR", text, "g/L") == {"valueRange": found}


# Codes


def test_several_codes_are_codings_of_one_concept() -> None:
    found = value("CWE", "A^Group Z^99LOC~B^Group B^99LOC~C^Group B^99LOC")

    concept = found["valueCodeableConcept"]
    assert [one["code"] for one in concept["coding"]] == ["A", "B", "C"]
    assert concept["text"] == "Group Z; Group B"


@pytest.mark.parametrize("kind", ["CNE", "CF"])
def test_values_of_further_coded_types_are_concepts(kind: str) -> None:
    assert value(kind, "A^Group A^99LOC")["valueCodeableConcept"]["text"] == "Group A"


@pytest.mark.parametrize("kind", ["ID", "SI"])
def test_values_of_further_text_types_are_texts(kind: str) -> None:
    assert value(kind, "7") == {"valueString": "7"}


def test_the_original_text_of_a_code_goes_before_its_displays() -> None:
    found = value("CWE", "A^Group A^99LOC^B^Group B^99LOC^^^as written")

    assert found["valueCodeableConcept"]["text"] == "as written"


@pytest.mark.parametrize("kind", ["MA", "XX", "nm"])
def test_a_type_that_is_not_supported_is_named_with_those_that_are(kind: str) -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), obr(), obx({2: kind})))

    assert str(refused.value) == (
        "OBX[1]-2: is not supported; supported are ED, NM, SN, ST, TX, FT, ID, SI, CE, CWE, CNE, "
        "CF, IS, DT, TS, DTM, TM, DR, NR"
    )


def test_a_type_that_is_not_supported_matters_only_with_a_value() -> None:
    assert "valueString" not in observation({2: "MA", 5: ""})


# Times


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2359", "23:59:00"),
        ("000000", "00:00:00"),
        ("235959", "23:59:59"),
        ("081530.1234", "08:15:30"),
        ("0815+0100", "08:15:00"),
    ],
)
def test_a_time_of_day_has_seconds(text: str, found: str) -> None:
    assert value("TM", text) == {"valueTime": found}


@pytest.mark.parametrize("text", ["2400", "0860", "081560", "8:15", "08", "08153"])
def test_a_time_of_day_that_there_is_not_remains_a_text(text: str) -> None:
    assert value("TM", text) == {"valueString": text}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("20260302^", {"start": "2026-03-02"}),
        ("^20260303", {"end": "2026-03-03"}),
        ("20260302^20260303", {"start": "2026-03-02", "end": "2026-03-03"}),
    ],
)
def test_a_period_may_have_one_end(text: str, found: dict[str, str]) -> None:
    assert value("DR", text) == {"valuePeriod": found}


def test_a_moment_has_the_offset_of_the_time_zone_if_the_header_has_none() -> None:
    raw = message(
        pid(), obr({7: "", 22: ""}), obx({2: "TS", 5: "202603020815"}), msh={7: "20260302"}
    )

    (found,) = resources(raw, "observation")
    assert found["valueDateTime"] == "2026-03-02T08:15:00+01:00"


# Reference ranges and flags


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("<= 5", {"high": 5}),
        ("> 3", {"low": 3}),
        (">=3", {"low": 3}),
        ("3-5", {"low": 3, "high": 5}),
        ("3-5.", {"low": 3, "high": 5}),
        ("-5--2", {"low": -5, "high": -2}),
        ("-5 - 2", {"low": -5, "high": 2}),
        ("<-2", {"high": -2}),
        ("3-5.5.5", {"low": 3}),
        ("< low", {}),
    ],
)
def test_a_limit_is_the_high_one_unless_results_are_to_be_above(
    text: str, limits: dict[str, int]
) -> None:
    (found,) = observation({6: "", 7: text})["referenceRange"]

    assert {name: one["value"] for name, one in found.items() if name != "text"} == limits
    assert found["text"] == text


def test_a_result_without_limits_has_no_reference_range() -> None:
    assert "referenceRange" not in observation({7: ""})


@pytest.mark.parametrize("flag", ["<", "A", "LL", "POS", "SYN-R", "WR"])
def test_a_known_flag_is_a_code(flag: str) -> None:
    (found,) = observation({8: flag})["interpretation"]

    assert found["coding"][0]["code"] == flag


@pytest.mark.parametrize("flag", ["high", "hh", "**", "W2"])
def test_another_flag_is_a_text(flag: str) -> None:
    assert observation({8: flag})["interpretation"] == [{"text": flag}]


def test_each_flag_is_kept() -> None:
    flags = observation({8: "H~odd"})["interpretation"]

    assert (flags[0]["coding"][0]["code"], flags[1]) == ("H", {"text": "odd"})


def test_a_result_has_its_method() -> None:
    assert observation({17: "A^Automated^99LOC"})["method"]["text"] == "Automated"


def test_a_value_that_is_there_is_not_absent() -> None:
    assert "dataAbsentReason" not in observation({11: "N"})
    assert "dataAbsentReason" not in observation({5: "", 11: "X"})


# As lines of the document


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "Hemoglobin: 13.2 g/dL"),
        ({6: "g/dL^gram per decilitre^UCUM"}, "Hemoglobin: 13.2 gram per decilitre"),
        ({2: "CWE", 5: "A^Group A^99LOC", 6: ""}, "Hemoglobin: Group A"),
        ({2: "CNE", 5: "A^Group A^99LOC", 6: ""}, "Hemoglobin: Group A"),
        ({2: "CF", 5: "A^Group A^99LOC", 6: ""}, "Hemoglobin: Group A"),
        ({2: "SN", 5: "<^5", 6: ""}, "Hemoglobin: <5"),
        ({2: "SN", 5: "^1^:^128", 6: ""}, "Hemoglobin: 1:128"),
        ({7: "12-16", 8: "H"}, "Hemoglobin: 13.2 g/dL [H] (12-16)"),
        ({7: "12-16"}, "Hemoglobin: 13.2 g/dL (12-16)"),
        ({8: "H"}, "Hemoglobin: 13.2 g/dL [H]"),
        ({3: "718-7"}, "718-7: 13.2 g/dL"),
        ({5: ""}, "Hemoglobin: g/dL"),
    ],
)
def test_a_result_is_a_line_of_the_document(fields: dict[int, str], line: str) -> None:
    assert rendered(obx(fields)) == line


def test_a_text_without_a_name_is_a_line_without_one() -> None:
    assert rendered(obx({2: "TX", 3: "", 5: "No growth", 6: ""})) == "No growth"


def test_comments_of_a_result_stand_below_it() -> None:
    lines = rendered(obx(), segment("NTE", {3: "checked"}), obx({5: "9"}))

    assert lines == "Hemoglobin: 13.2 g/dL\nchecked\nHemoglobin: 9 g/dL"


@pytest.mark.parametrize("field", ["^TEXT^X^Base64^QQ==", "^X^^Base64^QQ=="])
def test_a_type_of_document_that_is_unknown_is_named_with_those_that_are_not(field: str) -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), obr(), obx({2: "ED", 5: field})))

    assert str(refused.value) == (
        "OBX[1]-5: ED-3 must be one of PDF, HTML, XML, RTF, PLAIN, JPEG, PNG, TIFF, GIF"
    )


@pytest.mark.parametrize(
    "field", ["^AP^PDF^Base64^%%%", "^AP^PDF^Base64^QUJD%", "^AP^PDF^Other^QQ=="]
)
def test_a_document_that_cannot_be_decoded_is_named_with_its_field(field: str) -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), obr(), obx({2: "ED", 5: field})))

    assert str(refused.value) == "OBX[1]-5: ED-5 must be a document in the encoding of ED-4"


def test_a_report_may_have_several_documents() -> None:
    raw = message(
        pid(),
        obr(),
        obx({2: "ED", 3: "1^First", 5: "^AP^PDF^Base64^QUJD"}),
        obx({2: "ED", 3: "2^Second", 5: "^IM^PNG^Base64^QUJD"}),
    )

    (report,) = resources(raw, "diagnosticReport")

    assert [(one["title"], one["contentType"]) for one in report["presentedForm"]] == [
        ("First", "application/pdf"),
        ("Second", "image/png"),
    ]
