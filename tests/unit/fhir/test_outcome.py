"""Issues are reported as an OperationOutcome, each with its code and its places."""

from __future__ import annotations

from fhirpub.errors import Issue
from fhirpub.fhir.outcome import outcome_of, system_of_problems
from fhirpub.problems import ContentProblem, RequestProblem

FHIR = "https://x.example/fhir"


def test_an_issue_has_its_severity_its_codes_and_its_words() -> None:
    issue = Issue.warning(ContentProblem.ELEMENT_REQUIRED, "is required", code="required")

    assert outcome_of([issue], fhir_url=FHIR) == {
        "resourceType": "OperationOutcome",
        "issue": [
            {
                "severity": "warning",
                "code": "required",
                "details": {
                    "coding": [
                        {
                            "system": f"{FHIR}/CodeSystem/problem",
                            "code": "element-required",
                        }
                    ]
                },
                "diagnostics": "is required",
            }
        ],
    }


def test_all_places_of_an_issue_are_reported_the_first_one_first() -> None:
    issue = Issue.error(ContentProblem.ELEMENT_MALFORMED, "a").at("name", "id", "code")

    [rendered] = outcome_of([issue], fhir_url=FHIR)["issue"]

    assert rendered["expression"] == ["name", "id", "code"]


def test_issues_stay_in_their_order() -> None:
    issues = [Issue.error(RequestProblem.METHOD_UNSUPPORTED, word) for word in "cab"]

    rendered = outcome_of(issues, fhir_url=FHIR)["issue"]

    assert [one["diagnostics"] for one in rendered] == ["c", "a", "b"]


def test_the_id_of_the_request_is_the_fragment_of_the_source() -> None:
    assert outcome_of([], fhir_url=FHIR, request_id="r-1")["meta"] == {"source": f"{FHIR}#r-1"}
    assert "meta" not in outcome_of([], fhir_url=FHIR)


def test_the_codes_of_problems_are_of_a_code_system_of_the_service() -> None:
    assert system_of_problems(FHIR) == "https://x.example/fhir/CodeSystem/problem"
