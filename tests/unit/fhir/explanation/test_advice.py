"""What a refusal advises to write instead, without a word of what was sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.explanation.advice import explain_base64, suggest_code
from fhirpub.fhir.schema import own_schemas

SCHEMAS = own_schemas()
REPORT_TYPE = "DiagnosticReport"
REPORT = {"status": "final", "code": {"text": "x"}}
STATUSES = ("registered", "partial", "preliminary", "final", "amended", "unknown")


def sentence_about(type_name: str, **elements: Any) -> str:
    resource = {"resourceType": type_name, **elements}
    [issue] = SCHEMAS.problems(type_name, resource)
    return issue.diagnostics


@pytest.mark.parametrize(
    ("date", "advice"),
    [
        ("21/06/2023", "; the year comes first, with hyphens"),
        ("21.06.2023", "; the year comes first, with hyphens"),
        ("20230621", "; hyphens stand between year, month and day"),
        ("2023-02-30", "; there is no such day"),
        ("2023-06-21T10:00:00Z", "; leave out the time"),
        ("2023-6-1", ", such as 1984-03-09"),
        (20230621, "; in quotation marks"),
    ],
)
def test_a_wrong_date_is_answered_with_the_form(date: Any, advice: str) -> None:
    sentence = sentence_about("Patient", birthDate=date)

    assert sentence.startswith("must be a valid date: YYYY, YYYY-MM or YYYY-MM-DD")
    assert sentence.endswith(advice)


@pytest.mark.parametrize(
    ("moment", "advice"),
    [
        ("2023-06-21 10:00:00Z", "; a T stands between date and time"),
        ("2023-06-21T10:00Z", "; the seconds are missing"),
        ("2023-06-21T10:00", "; the seconds are missing"),
        ("2023-06-21T10:00:00", "; the offset is missing"),
        ("2023-06-21T10:00:00-0300", "; the offset has the form -03:00"),
        ("2023-06-21T24:00:00Z", "; the hours go from 00 to 23"),
        ("2023-06-21T10:00:00 PM", "; the hours go from 00 to 23"),
        ("2023-06-21T10:00:00+15:00", "such as Z or +02:00"),
        ("2023-06-21", "; the time is missing"),
        ("9" * 100, "such as Z or +02:00"),
    ],
)
def test_a_wrong_moment_is_answered_with_what_it_lacks(moment: str, advice: str) -> None:
    assert sentence_about("DiagnosticReport", **REPORT, issued=moment).endswith(advice)


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        *(("Final", "final"), ("prelim", "preliminary"), ("ammended", "amended")),
        *(("p", ""), ("x", ""), ("", "")),
    ],
)
def test_the_code_that_was_meant_is_suggested(code: str, meant: str) -> None:
    assert suggest_code(code, STATUSES) == (f"; did you mean {meant}?" if meant else "")


@pytest.mark.parametrize(
    ("elements", "advice"),
    [
        ({"code": "Glucose"}, 'such as {"coding": [{"system": "...", "code": "..."}], '),
        ({"subject": "Patient/1"}, 'such as {"reference": "<Type>/<id>"}'),
        ({"performer": "x"}, 'because it may repeat, such as [{"reference": "<Type>/<id>"}]'),
        ({"meta": {"profile": "x"}}, "because it may repeat: put [ ] around it"),
        ({"category": {"text": "x"}}, "because it may repeat: put [ ] around it"),
        ({"code": [{"text": "x"}]}, "must not be an array: leave out the [ ]"),
        ({"status": {"coding": []}}, "; here is an object"),
        ({"issued": ["2023"]}, "; here is an array"),
        ({"conclusion": 5}, "; in quotation marks"),
        ({"presentedForm": [{"size": "12"}]}, "; without quotation marks"),
    ],
)
def test_a_value_of_another_shape_is_answered_with_the_shape(
    elements: dict[str, Any], advice: str
) -> None:
    assert advice in sentence_about("DiagnosticReport", **REPORT | elements)


def test_the_plainest_of_many_forms_is_suggested() -> None:
    sentence = sentence_about("Patient", extension=[{"url": "urn:x", "value": "y"}])

    assert sentence.endswith("did you mean valueString?")


@given(st.text(min_size=9) | st.sampled_from(["data:x", "%PDF", "____-----"]))
def test_no_advice_repeats_the_text_or_is_empty(text: str) -> None:
    advice = explain_base64(text)

    assert advice
    assert text not in advice


@given(st.text(alphabet="0123456789-/.: TZ+", min_size=11, max_size=70))
def test_no_advice_on_a_time_repeats_it(text: str) -> None:
    resource = {"resourceType": "DiagnosticReport", **REPORT, "issued": text}

    assert not any(text in issue.diagnostics for issue in SCHEMAS.problems(REPORT_TYPE, resource))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("data:application/pdf;base64,AAAA", "leave out data:...;base64, before it"),
        ("%PDF-1.4 ...", "these are the bytes themselves: encode them"),
        ("", "it is empty"),
        ("a-bc", "the URL-safe alphabet"),
        ("a_bc", "the URL-safe alphabet"),
        ("AAAAA", "no multiple of 4"),
        ("AA\nAA A", "no multiple of 4"),
        ("AA\nA", "no multiple of 4"),
        ("AA\r\n*A", "other characters"),
        ("Ñ+/=", "other characters"),
    ],
)
def test_text_that_is_no_base64_is_answered_with_the_reason(text: str, why: str) -> None:
    assert why in explain_base64(text)


def test_the_code_that_was_meant_ends_the_sentence_about_an_element() -> None:
    sentence = sentence_about("DiagnosticReport", **REPORT | {"status": "Final"})

    assert sentence.endswith("; did you mean final?")
