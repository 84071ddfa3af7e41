"""Elements of a report as people read them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fhirpub.plugin_api import OperationRequest
from fhirpub_summary.operation import summarize
from fhirpub_summary.page import link, page, paragraph, table, text_of
from fhirpub_summary.values import flag_of, label_of, name_of, range_of, value_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1E+3"), "1000"),
        (Decimal("1.50"), "1.50"),
        (0.25, "0.25"),
        (7, "7"),
        ("a", "a"),
        (None, ""),
        ([], ""),
        ({}, ""),
    ],
)
def test_a_primitive_is_a_text_without_an_exponent(value: Any, text: str) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("concept", "label"),
    [
        ({"text": "a", "coding": [{"display": "b"}]}, "a"),
        ({"coding": [{"code": "c"}, {"display": "b"}]}, "c"),
        ({"coding": [{"display": "b", "code": "c"}]}, "b"),
        ({"coding": [{}, {"display": "b"}]}, "b"),
        ({"coding": ["x"]}, ""),
        ({}, ""),
        (None, ""),
        ("x", ""),
    ],
)
def test_a_concept_is_called_by_its_text_or_else_a_display_or_a_code(
    concept: Any, label: str
) -> None:
    assert label_of(concept) == label


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("North Quay", "North Quay"),
        ([{"text": "J. Ashdown", "family": "Ashdown"}], "J. Ashdown"),
        (
            [{"given": ["Juniper", "May"], "family": "Ashdown"}, {"text": "x"}],
            "Juniper May Ashdown",
        ),
        ([{"family": "Ashdown"}], "Ashdown"),
        ([], ""),
        (None, ""),
    ],
)
def test_a_name_has_the_given_names_first(name: Any, text: str) -> None:
    assert name_of({"name": name}) == text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            {"valueQuantity": {"value": Decimal("13.20"), "unit": "g/dL", "code": "x"}},
            "13.20 g/dL",
        ),
        ({"valueQuantity": {"value": 5, "comparator": "<", "code": "mg"}}, "<5 mg"),
        ({"valueQuantity": {"value": 5}}, "5"),
        ({"valueString": "clear"}, "clear"),
        ({"valueBoolean": True}, "yes"),
        ({"valueBoolean": False}, "no"),
        ({"valueInteger": 0}, "0"),
        ({"valueCodeableConcept": {"text": "positive"}}, "positive"),
        ({"valueRatio": {"numerator": {"value": 1}, "denominator": {"value": 128}}}, "1 : 128"),
        ({"valueRange": {"low": {"value": 2}, "high": {"value": 4}}}, "2 to 4"),
        ({"valueRange": {"high": {"value": 4}}}, " to 4"),
        (
            {"valuePeriod": {"start": "2026-01-01", "end": "2026-01-02"}},
            "2026-01-01 to 2026-01-02",
        ),
        ({"dataAbsentReason": {"text": "not asked"}}, "no value: not asked"),
        ({"dataAbsentReason": {}, "status": "final"}, ""),
        ({}, ""),
    ],
)
def test_a_value_of_each_type_is_a_text(result: dict[str, Any], text: str) -> None:
    assert value_of(result) == text


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("H", "high"),
        ("HH", "critically high"),
        ("L", "low"),
        ("LL", "critically low"),
        ("A", "abnormal"),
        ("AA", "critically abnormal"),
        ("N", "normal"),
        ("POS", "positive"),
        ("NEG", "negative"),
        ("R", "resistant"),
        ("S", "susceptible"),
        ("I", "intermediate"),
    ],
)
def test_a_flag_is_a_word_with_its_code(code: str, word: str) -> None:
    assert flag_of({"interpretation": [{"coding": [{"code": code}]}]}) == f"{word} ({code})"


def test_other_flags_are_called_as_they_are() -> None:
    found = [
        {"coding": [{"code": "X1"}, {"code": "H"}]},
        {"coding": [{"code": "DET", "display": "Detected"}]},
        {"text": "see note"},
        {},
    ]

    assert flag_of({"interpretation": found}) == "high (H), Detected, see note"


LOW, HIGH = {"value": 12}, {"value": 16, "unit": "g/dL"}


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"low": LOW, "high": HIGH}, "12 to 16 g/dL"),
        ({"low": LOW}, "from 12"),
        ({"high": HIGH}, "up to 16 g/dL"),
        ({"low": LOW, "high": HIGH, "text": "12-16"}, "12-16"),
        ({"text": "12-16", "type": {"text": "adults"}}, "12-16 (adults)"),
        ({}, ""),
    ],
)
def test_a_reference_range_is_its_text_or_its_limits(limits: dict[str, Any], text: str) -> None:
    assert range_of({"referenceRange": [limits]}) == text


def test_several_ranges_are_all_there() -> None:
    assert range_of({"referenceRange": [{"low": LOW}, {}, {"text": "b"}]}) == "from 12; b"


def test_no_text_becomes_markup() -> None:
    evil = "<b>\"'&"
    made = [
        paragraph(evil, evil),
        link(evil, evil),
        table(evil, [evil], [[evil]]),
        page(evil, []).body.decode(),
    ]

    assert not any("<b>" in text or '"&quot;"' in text for text in made)
    assert 'href="&lt;b&gt;&quot;&#x27;&amp;"' in made[1]


BASE = "https://fhir.example.org/fhir/r4"


def shown(report: dict[str, Any], **included: dict[str, Any]) -> str:
    found = {name.replace("_", "/", 1): one for name, one in included.items()}
    request = OperationRequest(
        resource={"resourceType": "DiagnosticReport", **report},
        included=found,
        fhir_url=BASE,
    )
    body = summarize(request).body
    assert isinstance(body, bytes)
    return body.decode()


def test_a_withdrawn_report_says_so_first() -> None:
    text = shown({"status": "entered-in-error", "issued": "2026-01-01"})

    assert text.index("This report was entered in error: do not use it.") < text.index("Issued")
    assert "entered in error" not in shown({"status": "final"})


@pytest.mark.parametrize(
    "reference",
    [
        "Observation/o1",
        f"{BASE}/Observation/o1",
        "http://fhir.example.org/fhir/r4/Observation/o1",
        "Observation/o1/_history/3",
        f"{BASE}/Observation/o1/_history/3",
    ],
)
def test_a_result_is_found_by_each_form_of_its_reference(reference: str) -> None:
    result = {"code": {"text": "Haemoglobin"}, "valueString": "13.2"}

    assert "<td>13.2</td>" in shown({"result": [{"reference": reference}]}, Observation_o1=result)


@pytest.mark.parametrize(
    "reference",
    ["https://other.example/fhir/r4/Observation/o1", f"{BASE}x/Observation/o1", "Observation/o2"],
)
def test_a_result_of_elsewhere_is_not_taken_for_one_of_ours(reference: str) -> None:
    result = {"code": {"text": "Haemoglobin"}, "valueString": "13.2"}

    text = shown({"result": [{"reference": reference, "display": "Other"}]}, Observation_o1=result)

    assert "13.2" not in text
    assert "<td>Other</td><td>not available here</td>" in text


def test_components_and_notes_have_rows_of_their_own() -> None:
    result = {
        "status": "final",
        "code": {"text": "Pressure"},
        "component": [{"code": {"text": "systolic"}, "valueString": "120"}],
        "note": [{"text": "sitting"}],
    }

    text = shown({"result": [{"reference": "Observation/o1"}]}, Observation_o1=result)

    assert (
        "<tr><td>Pressure: systolic</td><td>120</td><td></td><td></td><td>final</td></tr>" in text
    )
    assert "<td>Note on Pressure</td><td>sitting</td>" in text


def test_a_contained_result_is_found() -> None:
    contained = [{"id": "a", "code": {"text": "X"}, "valueString": "7"}]

    assert "<td>7</td>" in shown({"contained": contained, "result": [{"reference": "#a"}]})


@pytest.mark.parametrize(
    ("url", "is_linked"),
    [
        (f"{BASE}/Binary/b1", True),
        ("https://other.example/Binary/b1", False),
        (f"{BASE}/Patient/p1", False),
        ("", False),
    ],
)
def test_documents_of_the_service_alone_are_linked(url: str, *, is_linked: bool) -> None:
    form = {"url": url, "title": "Scan", "contentType": "application/pdf"}

    assert ("Scan (application/pdf)" in shown({"presentedForm": [form]})) is is_linked


def test_the_facts_of_the_report_are_named() -> None:
    text = shown(
        {
            "subject": {"reference": "Patient/p1", "display": "x"},
            "performer": [{"reference": "Organization/o1"}, {"display": "Other"}],
            "identifier": [{"value": "R-1"}, {"value": "R-2"}],
            "effectivePeriod": {"start": "2026-01-01"},
            "conclusion": "Fine.",
            "conclusionCode": [{"text": "A"}, {"text": "B"}],
        },
        Patient_p1={"name": [{"family": "Ashdown"}], "birthDate": "1987-06-05"},
        Organization_o1={"name": "North Quay"},
    )

    for fact in (
        "<strong>Patient:</strong> Ashdown",
        "<strong>Birth date:</strong> 1987-06-05",
        "<strong>Laboratory:</strong> North Quay, Other",
        "<strong>Report:</strong> R-1, R-2",
        "<strong>Time of the specimen:</strong> 2026-01-01",
        "<strong>Conclusion:</strong> Fine.",
        "<strong>Coded conclusion:</strong> A, B",
    ):
        assert fact in text
