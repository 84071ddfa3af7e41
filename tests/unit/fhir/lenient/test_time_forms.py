"""Which times are corrected, and that nothing else is."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fhirpub.errors import Issue
from fhirpub.fhir.lenient.time_forms import correct_times

FHIR_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)


def report(**elements: Any) -> dict[str, Any]:
    return {"resourceType": "DiagnosticReport", **elements}


def corrected(time: str, element: str = "issued") -> tuple[str, list[Issue]]:
    resource = report(**{element: time})
    issues = list(correct_times(resource))
    return resource[element], issues


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("2026-11-20T10:05-03:00", "2026-11-20T10:05:00-03:00"),
        ("2026-11-20T10:05Z", "2026-11-20T10:05:00Z"),
        ("2026-11-20T10:05", "2026-11-20T10:05:00"),
        ("2026-11-20T10:05:07-0300", "2026-11-20T10:05:07-03:00"),
        ("2026-11-20T10:05:07.123+0530", "2026-11-20T10:05:07.123+05:30"),
        ("2026-11-20T10:05:07-03", "2026-11-20T10:05:07-03:00"),
        ("2026-11-20T10:05-0300", "2026-11-20T10:05:00-03:00"),
    ],
)
@pytest.mark.parametrize("element", ["issued", "effectiveDateTime"])
def test_a_time_in_another_form_is_written_in_that_of_fhir(
    element: str, sent: str, stored: str
) -> None:
    time, issues = corrected(sent, element)

    assert time == stored
    assert {issue.severity for issue in issues} == {"warning"}
    place = "DiagnosticReport.issued" if element == "issued" else "DiagnosticReport.effective"
    assert {issue.expression for issue in issues} == {place}


def test_a_time_with_two_corrections_has_a_warning_of_each() -> None:
    _time, issues = corrected("2026-11-20T10:05-0300")

    assert [issue.diagnostics for issue in issues] == [
        "has no seconds: read with :00",
        "has an offset in another form than -03:00: written so",
    ]


@pytest.mark.parametrize(
    "time",
    [
        "2026-11-20T10:05:00-03:00",
        "2026-11-20T10:05:00Z",
        "2026-11-20T10:05:00",
        "2026-11-20",
        "2026-11-20T10",
        "2026-11-20T10:05:",
        "2026-11-20 10:05",
        "2026-11-20T10:05 -0300",
        "20261120T1005-0300",
        "2026-11-20T10:05-3",
        "2026-11-20T10:05z",
        "",
    ],
)
def test_any_other_text_stays(time: str) -> None:
    assert corrected(time) == (time, [])


def test_only_times_are_corrected() -> None:
    text = "2026-11-20T10:05-0300"
    resource = report(
        conclusion=text,
        code={"text": text, "coding": [{"version": text, "display": text}]},
        unknown=text,
        extension=[{"url": text, "valueString": text}],
    )
    before = copy.deepcopy(resource)

    assert list(correct_times(resource)) == []
    assert resource == before


def test_times_are_found_at_any_depth() -> None:
    time = {"valueDateTime": "2026-11-20T10:05Z", "url": "urn:x"}
    resource = report(
        effectivePeriod={"start": "2026-11-20T10:05Z"},
        presentedForm=[{}, {"creation": "2026-11-20T10:05Z"}],
        contained=[{"resourceType": "Observation", "valueTime": "10:05"}],
        _conclusion={"extension": [time]},
    )

    [issue] = correct_times({"resourceType": "Parameters", "parameter": [{"resource": resource}]})

    at = "Parameters.parameter[0].resource"
    assert [issue.expression, *issue.also_at] == [
        f"{at}.effective.start",
        f"{at}.presentedForm[1].creation",
        f"{at}.contained[0].value",
        f"{at}.conclusion.extension[0].value",
    ]
    assert resource["contained"][0]["valueTime"] == "10:05:00"


def test_a_hundred_places_are_listed_and_the_others_counted() -> None:
    forms = [{"creation": "2026-11-20T10:05Z"} for _ in range(130)]

    [issue] = correct_times(report(presentedForm=forms))

    assert len(issue.also_at) == 99
    assert issue.diagnostics.endswith("(and in 30 more places)")


@settings(deadline=None)
@given(st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.Z+-]{4,20}", fullmatch=True))
def test_what_is_corrected_has_the_form_of_fhir(time: str) -> None:
    changed, issues = corrected(time)

    assert (changed == time) == (not issues)
    if issues:
        assert FHIR_TIME.fullmatch(changed)
        assert corrected(changed) == (changed, [])


@pytest.mark.parametrize("content", [None, [], "text", 1, {}, {"resourceType": 1}])
def test_what_is_no_resource_is_left_alone(content: Any) -> None:
    assert list(correct_times(content)) == []


@pytest.mark.parametrize(
    "value",
    [
        *(5, 7, True, None, "x", "2026" * 20),
        *({"a": 1}, {"div": 1}, {"a": "2026-11-20T10:05Z"}),
        *(["x", 5, None], [7], [None], [True]),
    ],
)
@pytest.mark.parametrize(
    "element",
    [
        *("issued", "code", "contained", "unknown"),
        *("subject", "text", "effectivePeriod", "identifier"),
    ],
)
def test_what_has_another_shape_is_left_alone(element: str, value: Any) -> None:
    resource = report(**{element: value})
    sent = copy.deepcopy(resource)

    assert [*correct_times(resource)] == []
    assert resource == sent


def test_each_time_of_a_list_is_corrected() -> None:
    resource = report(issued=["2026-11-20T10:05Z", "2026-11-20T10:06:00Z", "2026-11-20T10:07Z"])

    [issue] = correct_times(resource)

    assert resource == report(
        issued=["2026-11-20T10:05:00Z", "2026-11-20T10:06:00Z", "2026-11-20T10:07:00Z"]
    )
    assert (issue.expression, [*issue.also_at]) == (
        "DiagnosticReport.issued[0]",
        ["DiagnosticReport.issued[2]"],
    )
