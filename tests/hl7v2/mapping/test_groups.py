"""Which segments belong together, where a sender leaves codes or types out."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub_hl7v2.problems import Code, Unusable
from tests.hl7v2.messages import mapped, message, obr, obx, pid, resources, segment

TEXT = {2: "TX", 3: "1^Report^L", 5: "one", 6: ""}
LINE = {**TEXT, 3: "", 5: "two"}


def texts(*results: str) -> list[Any]:
    raw = message(pid(), obr(), *results)
    return [each.get("valueString") for each in resources(raw, "observation")]


@pytest.mark.parametrize("first", ["TX", "FT", "ST"])
@pytest.mark.parametrize("then", ["TX", "FT", "ST"])
def test_each_type_of_text_continues_each(first: str, then: str) -> None:
    assert texts(obx({**TEXT, 2: first}), obx({**LINE, 2: then})) == ["one\ntwo"]


def test_two_texts_with_codes_are_two_results() -> None:
    assert texts(obx(TEXT), obx({**TEXT, 3: "2^Other^L", 5: "two"})) == ["one", "two"]


def test_a_code_may_be_text_alone() -> None:
    assert texts(obx(TEXT), obx({**TEXT, 3: "^Other", 5: "two"})) == ["one", "two"]


def test_a_text_behind_a_number_is_a_result_of_its_own() -> None:
    assert texts(obx(), obx(LINE)) == [None, "two"]


def test_a_value_without_code_and_type_does_not_continue_a_text() -> None:
    with pytest.raises(Unusable) as refused:
        texts(obx(TEXT), obx({**LINE, 2: ""}))

    assert [problem.place for problem in refused.value.problems] == ["OBX[2]-3"]


@pytest.mark.parametrize("kind", ["", "TX"])
def test_a_segment_without_code_and_value_is_left_out(kind: str) -> None:
    raw = message(pid(), obr(), obx({2: kind, 3: "", 5: "", 6: ""}))

    assert resources(raw, "observation") == []


def test_an_empty_line_stands_between_others() -> None:
    assert texts(obx(TEXT), obx({**LINE, 5: ""}), obx({**LINE, 5: "three"})) == ["one\n\nthree"]


def test_empty_lines_at_the_ends_of_a_text_are_left_out() -> None:
    assert texts(obx({**TEXT, 5: ""}), obx(LINE), obx({**LINE, 5: ""})) == ["two"]


def test_a_text_of_another_examination_is_not_continued() -> None:
    raw = message(pid(), obr(), obx(TEXT), obr({3: "NQ-2^LIS"}), obx(LINE))

    first, second = mapped(raw)

    values = [
        each["resource"]["valueString"]
        for report in (first, second)
        for each in report.body["parameter"]
        if each["name"] == "observation"
    ]
    assert values == ["one", "two"]


def test_a_comment_behind_the_lines_of_a_text_is_one_on_the_text() -> None:
    raw = message(pid(), obr(), obx(TEXT), obx(LINE), segment("NTE", {3: "checked"}))

    (found,) = resources(raw, "observation")
    assert found["note"] == [{"text": "checked"}]


def test_a_comment_behind_an_order_belongs_to_nothing() -> None:
    raw = message(pid(), obr(), obx(), segment("ORC", {3: "x"}), segment("NTE", {3: "lost"}))

    assert "note" not in resources(raw, "observation")[0]
    assert "conclusion" not in resources(raw, "diagnosticReport")[0]


def test_an_order_of_another_patient_does_not_count() -> None:
    raw = message(pid(), segment("ORC", {2: "P-1^HIS"}), pid({3: "4^^^REG"}), obr({2: ""}), obx())

    assert "basedOn" not in resources(raw, "diagnosticReport")[0]


def test_a_result_behind_another_patient_comes_before_any_examination() -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), obr(), obx(), pid({3: "4^^^REG"}), obx()))

    (problem,) = refused.value.problems
    assert (str(problem), problem.code) == ("OBX[2]: comes before any OBR", Code.SEQUENCE)


def test_each_examination_without_a_patient_is_named() -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(obr(), obx(), obr({3: "NQ-2^LIS"}), obx()))

    assert [str(problem) for problem in refused.value.problems] == [
        "OBR[1]: comes without a PID before it",
        "OBR[2]: comes without a PID before it",
    ]


def test_a_specimen_before_any_examination_is_named() -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), segment("SPM", {4: "BLD"}), obr(), obx()))

    assert str(refused.value) == "SPM[1]: comes before any OBR"


def test_a_specimen_belongs_to_the_examination_before_it() -> None:
    blood = segment("SPM", {4: "BLD"})

    first, second = mapped(message(pid(), obr(), obx(), blood, obr({3: "NQ-2^LIS"}), obx()))

    assert ("specimen" in first.resource, "specimen" in second.resource) == (True, False)


def test_a_number_without_code_and_value_is_no_empty_line() -> None:
    with pytest.raises(Unusable) as refused:
        texts(obx(TEXT), obx({3: "", 5: ""}))

    assert [problem.place for problem in refused.value.problems] == ["OBX[2]-3"]


@pytest.mark.parametrize(
    ("segments", "problem"),
    [
        ((pid(),), "MSH[1]: no OBR follows"),
        ((obr(), obx()), "OBR[1]: comes without a PID before it"),
        ((pid(), obx()), "OBX[1]: comes before any OBR"),
    ],
)
def test_a_missing_segment_is_an_error_of_the_sequence(
    segments: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(*segments))

    assert [(str(one), one.code) for one in refused.value.problems] == [(problem, Code.SEQUENCE)]


def test_a_result_is_known_by_a_number_in_the_system_of_its_report() -> None:
    (found,) = resources(message(pid(), obr(), obx()), "observation")

    assert found["identifier"] == [
        {"system": "https://north-quay.example/reports", "value": "NQ-1001/718-7"}
    ]


def test_the_number_of_an_order_is_that_of_one_request() -> None:
    order = segment("ORC", {3: "NQ-7^LIS"})

    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), order, obr({3: ""}), obx(), obr({3: "", 4: "1-8^x^LN"}), obx()))

    assert [problem.place for problem in refused.value.problems] == ["OBR[2]-3"]


def test_all_repetitions_of_a_comment_are_lines_of_it() -> None:
    raw = message(
        pid(), obr(), segment("NTE", {3: "one~two"}), segment("NTE", {3: "three"}), obx()
    )

    (report,) = resources(raw, "diagnosticReport")
    assert report["conclusion"] == "one\ntwo\nthree"


def test_a_result_behind_another_patient_is_none_of_the_report_before() -> None:
    with pytest.raises(Unusable, match=r"OBX\[2\]: comes before any OBR"):
        mapped(message(pid(), obr(), obx(), pid({3: "4^^^REG"}), obx()))


def test_a_comment_behind_an_order_or_a_patient_is_none_of_the_result_before() -> None:
    note = segment("NTE", {3: "odd"})
    raw = message(pid(), obr(), obx(), segment("ORC", {3: "NQ-7^LIS"}), note, obr({3: ""}), obx())

    reports = mapped(raw)

    assert ["odd" in str(report.body) for report in reports] == [False, False]


def test_a_comment_behind_a_further_line_is_one_of_the_text() -> None:
    raw = message(pid(), obr(), obx(TEXT), obx(LINE), segment("NTE", {3: "checked"}))

    (made,) = resources(raw, "observation")
    assert made["note"] == [{"text": "checked"}]


def test_a_comment_on_a_specimen_is_none_of_a_result() -> None:
    note = segment("NTE", {3: "clotted"})
    raw = message(pid(), obr(), obx(), segment("SPM", {4: "BLD"}), note)

    (result,), (specimen,) = resources(raw, "observation"), resources(raw, "specimen")
    assert "note" not in result
    assert specimen["note"] == [{"text": "clotted"}]


def test_a_line_continues_the_text_that_is_the_nearest_before_it() -> None:
    other = {**TEXT, 3: "2^Other^L", 5: "first"}

    assert texts(obx(TEXT), obx(other), obx({**LINE, 5: "then"})) == ["one", "first\nthen"]


def test_what_has_neither_code_nor_value_is_left_out() -> None:
    assert texts(obx(TEXT), obx({2: "", 3: "", 5: "", 6: ""}), obx({**LINE, 5: ""})) == ["one"]
