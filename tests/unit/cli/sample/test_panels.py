"""Examinations find values that fit together, and conclusions that fit the values."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from fhirpub.cli.sample.panels import PANELS, SHARES, Findings, conclusion_of, line_of
from fhirpub.cli.sample.results import Measured, interpretation
from tests.unit.cli.sample.report import REPORT

COUNT, CHEMISTRY, CULTURE, CHEST = PANELS


def found(panel: Any, number: int = 300) -> list[Findings]:
    random = Random(7)
    return [panel.find(random, REPORT) for _ in range(number)]


def resistant_in(findings: Findings) -> list[str]:
    """Return the ids of the results that are resistant."""
    return [
        one["id"] for one in findings.results if one["valueCodeableConcept"]["text"] == "Resistant"
    ]


def values_of(findings: Findings) -> dict[str, float]:
    return {one["id"]: one["valueQuantity"]["value"] for one in findings.results}


def measured(value: float, text: str = "Sodium") -> Measured:
    return Measured("na", "2951-2", text, value, "mmol/L", 135, 145)


def test_each_examination_has_its_share_and_its_category() -> None:
    assert sum(SHARES) == 100
    assert [(one.category, one.loinc, one.specimen) for one in PANELS] == [
        ("HM", "58410-2", "Venous blood in EDTA"),
        ("CH", "24323-8", "Serum"),
        ("MB", "630-4", "Midstream urine"),
        ("RAD", "36643-5", ""),
    ]
    assert CULTURE.minutes == (2_880, 4_320)
    assert COUNT.minutes == CHEMISTRY.minutes == CHEST.minutes == (40, 240)


def test_computed_values_of_a_blood_count_follow_from_the_others() -> None:
    for one in map(values_of, found(COUNT, 60)):
        assert one["hct"] == pytest.approx(one["hb"] / one["mchc"] * 100, abs=0.06)
        assert one["rbc"] == pytest.approx(one["hct"] / one["mcv"] * 10, abs=0.006)
        assert one["mch"] == pytest.approx(one["hb"] / one["rbc"] * 10, abs=0.06)
        assert 0.4 * one["wbc"] <= one["neut"] <= 0.75 * one["wbc"]
        assert one["neut"] + one["lymph"] <= 0.95 * one["wbc"] + 0.2
        assert isinstance(one["plt"], int)


def test_values_are_mostly_within_their_ranges_and_sometimes_not() -> None:
    results = [result for one in found(CHEMISTRY, 100) for result in one.results]

    outside = sum("interpretation" in result for result in results) / len(results)
    assert 0.05 < outside < 0.2
    assert min(result["valueQuantity"]["value"] for result in results) > 0


def test_values_have_the_decimals_in_which_they_are_reported() -> None:
    one = values_of(found(CHEMISTRY, 1)[0])

    assert isinstance(one["na"], int)
    assert one["k"] == round(one["k"], 1)
    assert list(one) == ["na", "k", "creat", "glu", "alt", "ast", "bili", "alb", "chol"]


def test_the_conclusion_names_what_is_outside_of_its_range() -> None:
    values = [measured(134, "A"), measured(140, "B"), measured(146, "C")]

    assert conclusion_of(values) == "A low, C high."
    assert conclusion_of(values[1:2]) == "All values within the reference ranges."


def test_a_line_has_the_value_its_meaning_and_the_range() -> None:
    line = line_of(measured(146))

    assert line.split() == ["Sodium", "146", "mmol/L", "H", "135", "-", "145"]
    assert line.index("146") + 3 == 43 + 9


def test_a_measurement_has_a_result_and_a_line_each() -> None:
    (one,) = found(CHEMISTRY, 1)

    assert len(one.results) == len(one.lines) == 9
    assert [line[:43].strip() for line in one.lines] == [
        result["code"]["text"] for result in one.results
    ]
    assert one.results[0]["identifier"] == [
        {"system": "https://sample.example/results", "value": "a-7-NA"}
    ]


def test_a_culture_without_growth_tests_no_antibiotic() -> None:
    cultures = found(CULTURE)
    without = [one for one in cultures if one.conclusion == "No growth after 48 hours."]

    assert 0.5 < len(without) / len(cultures) < 0.7
    for one in without:
        (result,) = one.results
        assert result["valueCodeableConcept"] == {"text": "No growth"}
        assert one.lines == ("Culture: no growth",)


def test_a_culture_with_growth_tests_each_antibiotic() -> None:
    for one in found(CULTURE):
        first, *tests = one.results
        if not tests:
            continue
        name = first["valueCodeableConcept"]["text"]
        for result, line in zip(tests, one.lines[1:], strict=True):
            word = result["valueCodeableConcept"]["text"]
            code = {"Susceptible": "S", "Resistant": "R"}[word]
            drug = result["code"]["text"].removesuffix(" susceptibility")
            assert result["interpretation"] == [interpretation(code)]
            assert (line[:43].strip(), line[43:]) == (drug, word)
        assert one.lines[0] == f"Culture: {name}, > 10^5 CFU/mL"
        assert [result["id"] for result in tests] == ["cip", "sxt", "nit", "amc"]


@pytest.mark.parametrize(
    ("resistant", "end"),
    [
        (
            ["sxt"],
            "resistant to Trimethoprim and sulfamethoxazole",
        ),
        (
            ["cip", "nit"],
            "resistant to Ciprofloxacin and to Nitrofurantoin",
        ),
        (
            ["sxt", "nit", "amc"],
            (
                "resistant to Trimethoprim and sulfamethoxazole and to Nitrofurantoin "
                "and to Amoxicillin and clavulanate"
            ),
        ),
    ],
)
def test_the_conclusion_of_a_culture_names_what_is_resistant(
    resistant: list[str], end: str
) -> None:
    conclusions = {
        one.conclusion
        for one in found(CULTURE, 1_000)
        if one.conclusion.startswith("Escherichia coli") and resistant_in(one) == resistant
    }

    assert conclusions == {f"Escherichia coli in significant numbers, {end}."}


def test_the_conclusion_of_a_culture_without_resistance_names_the_bacteria_alone() -> None:
    conclusions = {one.conclusion for one in found(CULTURE) if not resistant_in(one)}

    assert conclusions == {
        "No growth after 48 hours.",
        "Escherichia coli in significant numbers.",
        "Klebsiella pneumoniae in significant numbers.",
        "Proteus mirabilis in significant numbers.",
        "Enterococcus faecalis in significant numbers.",
    }


def test_most_bacteria_are_susceptible_and_the_first_is_the_most_frequent() -> None:
    grown = [one.results for one in found(CULTURE) if len(one.results) > 1]
    words = [test["valueCodeableConcept"]["text"] for one in grown for test in one[1:]]
    names = [one[0]["valueCodeableConcept"]["text"] for one in grown]

    assert 0.65 < words.count("Susceptible") / len(words) < 0.85
    assert 0.4 < names.count("Escherichia coli") / len(names) < 0.7


def test_an_image_has_sentences_and_no_results() -> None:
    chests = found(CHEST)

    normal = [one for one in chests if one.conclusion.startswith("Heart and mediastinum")]
    assert 0.5 < len(normal) / len(chests) < 0.7
    assert {one.results for one in chests} == {()}
    assert normal[0].lines == (
        "Heart and mediastinum of normal size.",
        "Lungs clear.",
        "No effusion.",
    )
