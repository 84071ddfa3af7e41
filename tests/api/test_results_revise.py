"""Corrections of a report together with its results: ``$revise`` (ADR 25)."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import document
from tests.panels import RESULTS, panel, result, specimen

REVISIONS = "/fhir/r4/DiagnosticReport"


def entries(answer: Answer, name: str) -> list[dict[str, Any]]:
    found = [entry for entry in answer.json["parameter"] if entry["name"] == name]
    return [entry.get("resource") or entry["valueReference"] for entry in found]


def issues(answer: Answer) -> list[tuple[str, list[str]]]:
    return [(one["diagnostics"], one.get("expression", [])) for one in answer.json["issue"]]


def identified(number: int, value: float = 13.2, **changes: Any) -> dict[str, Any]:
    identifier = [{"system": RESULTS, "value": str(number)}]
    return result(f"r{number}", value, identifier=identifier, **changes)


class Panel:
    """A report that was registered with two results, the first one preliminary."""

    def __init__(self, lab: Integrator) -> None:
        self.lab = lab
        first = identified(1, status="preliminary")
        self.sent = (first, identified(2), specimen())
        self.registered = lab.register(panel("R-1", *self.sent, status="preliminary"))
        (short,) = entries(self.registered, "diagnosticReport")
        self.id: str = short["id"]
        self.results = [one["reference"] for one in entries(self.registered, "observation")]

    def revise(self, *sent: dict[str, Any], version: int | None = None, **changes: Any) -> Answer:
        body = panel("R-1", *sent, **({"status": "final"} | changes))
        return self.send(body, "*" if version is None else f'W/"{version}"')

    def send(self, body: dict[str, Any], if_match: str | None = "*", **more: str) -> Answer:
        headers = more if if_match is None else {"If-Match": if_match, **more}
        return self.lab.request("POST", f"{REVISIONS}/{self.id}/$revise", body, headers)

    def report(self) -> dict[str, Any]:
        resource: dict[str, Any] = self.lab.get(f"{REVISIONS}/{self.id}").json
        return resource

    def result(self, place: int) -> dict[str, Any]:
        resource: dict[str, Any] = self.lab.get(f"/fhir/r4/{self.results[place]}").json
        return resource


@pytest.fixture
def registered(lab: Integrator) -> Panel:
    return Panel(lab)


def test_new_and_changed_results_come_with_the_next_version(registered: Panel) -> None:
    answer = registered.revise(identified(1), identified(2), identified(3, 7.1), specimen())

    assert answer.status == 200
    assert answer.headers["etag"] == 'W/"2"'
    changed = [one["reference"] for one in entries(answer, "observation")]
    assert changed[0] == registered.results[0]
    assert len(changed) == 2
    assert registered.report()["meta"]["versionId"] == "2"
    assert registered.report()["status"] == "final"
    assert [one["reference"] for one in registered.report()["result"]] == [
        *registered.results,
        changed[1],
    ]
    assert registered.result(0)["status"] == "final"
    assert registered.result(0)["meta"]["versionId"] == "2"
    assert registered.result(1)["meta"]["versionId"] == "1"


def test_what_was_is_kept_in_the_histories(registered: Panel) -> None:
    registered.revise(identified(1, 5.5), identified(2), specimen())

    before = registered.lab.get(f"/fhir/r4/{registered.results[0]}/_history/1").json
    history = registered.lab.get(f"/fhir/r4/{registered.results[0]}/_history").json
    assert before["status"] == "preliminary"
    assert [one["resource"]["meta"]["versionId"] for one in history["entry"]] == ["2", "1"]
    times = {
        registered.result(0)["meta"]["lastUpdated"],
        registered.report()["meta"]["lastUpdated"],
    }
    assert len(times) == 1


def test_the_history_names_the_request_that_made_a_version(registered: Panel) -> None:
    registered.revise(identified(1), identified(2), specimen())
    address = f"DiagnosticReport/{registered.id}"
    registered.lab.patch(
        f"/fhir/r4/{address}", {"resourceType": "DiagnosticReport", "conclusion": "Corrected"}
    )

    for path in (f"{address}/_history", "DiagnosticReport/_history"):
        history = registered.lab.get(f"/fhir/r4/{path}").json
        made = [
            (one["request"]["method"], one["request"]["url"], one["response"]["status"])
            for one in history["entry"]
        ]
        assert made == [
            ("PATCH", address, "204"),
            ("POST", f"{address}/$revise", "200"),
            ("POST", "DiagnosticReport", "201"),
        ]


def test_only_the_corrected_value_is_found(registered: Panel) -> None:
    registered.revise(
        identified(
            1, code={"text": "x", "coding": [{"system": "http://loinc.org", "code": "9-9"}]}
        ),
        identified(2),
        specimen(),
    )

    def found(code: str) -> list[str]:
        bundle = registered.lab.get(f"/fhir/r4/Observation?code={code}").json
        return [f"Observation/{one['resource']['id']}" for one in bundle.get("entry", ())]

    assert found("9-9") == [registered.results[0]]
    assert found("718-7") == [registered.results[1]]


def test_a_client_that_wants_no_body_gets_none(registered: Panel) -> None:
    body = panel("R-1", identified(1), identified(2), specimen(), status="final")

    answer = registered.send(body, Prefer="return=minimal")

    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["preference-applied"] == "return=minimal"
    assert answer.headers["etag"] == 'W/"2"'
    assert answer.headers["location"].endswith(f"{registered.id}/_history/2")


def test_a_client_that_wants_the_issues_gets_them_alone(registered: Panel) -> None:
    body = panel("R-1", identified(1), identified(2), specimen(), status="final")

    answer = registered.send(body, Prefer="return=OperationOutcome")

    assert answer.status == 200
    assert answer.headers["preference-applied"] == "return=OperationOutcome"
    assert issues(answer)[0][0] == "DiagnosticReport was revised"


def test_a_repeated_revision_stores_nothing(registered: Panel) -> None:
    sent = (identified(1), identified(2), specimen())
    registered.revise(*sent)

    again = registered.revise(*sent)

    assert again.status == 200
    assert again.headers["etag"] == 'W/"2"'
    assert entries(again, "observation") == []
    assert registered.report()["meta"]["versionId"] == "2"


def test_a_result_that_is_not_sent_stays_as_it_is(registered: Panel) -> None:
    led_to = [{"reference": one} for one in registered.results]

    answer = registered.revise(specimen(), result=led_to)

    assert answer.status == 200
    assert registered.result(0)["status"] == "preliminary"
    assert [one["reference"] for one in registered.report()["result"]] == registered.results


def test_a_result_does_not_vanish_from_its_report(registered: Panel) -> None:
    answer = registered.revise(identified(1), specimen())

    assert answer.status == 422
    ((said, places),) = issues(answer)
    assert registered.results[1] in said
    assert places == ["DiagnosticReport.result"]
    assert registered.report()["meta"]["versionId"] == "1"


def test_a_result_can_be_withdrawn(registered: Panel) -> None:
    withdrawn = identified(2, status="entered-in-error")
    led_to = [{"reference": "Observation/r1"}]

    answer = registered.revise(identified(1), withdrawn, specimen(), result=led_to)

    assert answer.status == 200
    assert registered.result(1)["status"] == "entered-in-error"
    assert len(registered.report()["result"]) == 1


def test_if_match_decides(registered: Panel) -> None:
    sent = (identified(1), identified(2), specimen())

    assert registered.revise(*sent, version=7).status == 412
    assert registered.revise(*sent, version=1).status == 200
    assert registered.revise(*sent, version=1, conclusion="other").status == 412


def test_a_revision_that_names_no_version_is_refused(registered: Panel) -> None:
    body = panel("R-1", identified(1), identified(2), specimen(), status="final")

    answer = registered.send(body, if_match=None)

    assert answer.status == 428
    (issue,) = answer.json["issue"]
    assert issue["details"]["coding"][0]["code"] == "precondition-required"
    assert 'If-Match: W/"3"' in issue["diagnostics"]
    assert "If-Match: *" in issue["diagnostics"]
    assert registered.report()["meta"]["versionId"] == "1"


def test_a_date_does_not_name_a_version(registered: Panel) -> None:
    body = panel("R-1", identified(1), identified(2), specimen(), status="final")
    headers = {"If-Unmodified-Since": registered.registered.headers["last-modified"]}

    answer = registered.lab.request("POST", f"{REVISIONS}/{registered.id}/$revise", body, headers)

    assert answer.status == 428


def test_a_revision_whose_response_was_lost_is_repeated_under_its_condition(
    registered: Panel,
) -> None:
    sent = (identified(1), identified(2), specimen())
    registered.revise(*sent, version=1)

    again = registered.revise(*sent, version=1)

    assert again.status == 200
    assert again.headers["etag"] == 'W/"2"'
    assert entries(again, "observation") == []
    assert registered.report()["meta"]["versionId"] == "2"


def test_a_late_repetition_does_not_undo_a_later_correction(registered: Panel) -> None:
    late = (identified(1), identified(2), specimen())
    registered.revise(*late, version=1)
    registered.revise(identified(1, 12.3), identified(2), specimen(), version=2)

    answer = registered.revise(*late, version=1)

    assert answer.status == 412
    assert issues(answer)[0][0] == "target version 1, current version 3"
    assert registered.result(0)["valueQuantity"]["value"] == 12.3


def test_a_version_that_never_was_is_refused_though_nothing_differs(registered: Panel) -> None:
    sent = (identified(1), identified(2), specimen())
    registered.revise(*sent, version=1)

    assert registered.revise(*sent, version=7).status == 412
    assert registered.send(panel("R-1", *sent, status="final"), "2").status == 412


def test_a_replaced_version_is_refused_before_what_cannot_be_revised(registered: Panel) -> None:
    sent = (identified(1), identified(2), specimen())
    registered.revise(*sent, version=1)

    assert registered.revise(*sent, version=1, code={"text": "other"}).status == 412


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"code": {"text": "other"}}, "DiagnosticReport.code"),
        ({"effectiveDateTime": "2026-11-21T10:00:00Z"}, "DiagnosticReport.effective"),
        ({"language": "es"}, "DiagnosticReport.language"),
    ],
)
def test_what_cannot_be_updated_cannot_be_revised(
    registered: Panel, changes: dict[str, Any], place: str
) -> None:
    answer = registered.revise(identified(1), identified(2), specimen(), **changes)

    assert answer.status == 422
    assert [places for _said, places in issues(answer)] == [[place]]


def test_the_time_of_issue_is_that_of_the_version(registered: Panel) -> None:
    later = "2026-11-20T16:30:00Z"

    answer = registered.revise(identified(1), identified(2), specimen(), issued=later)

    assert answer.status == 200
    assert registered.report()["issued"] == later


def test_another_patient_is_refused(registered: Panel) -> None:
    body = panel("R-1", identified(1), identified(2), specimen(), status="final")
    body["parameter"][0]["resource"]["birthDate"] = "1980-03-01"

    answer = registered.send(body)

    assert answer.status == 422
    ((said, _places),) = issues(answer)
    assert "patient differs in birthDate" in said
    assert "1980" not in said


def test_another_name_of_the_patient_is_one_problem(registered: Panel) -> None:
    body = panel("R-1", identified(1), identified(2), specimen(), status="final")
    body["parameter"][0]["resource"]["name"][0]["family"] = "Marrow"

    answer = registered.send(body)

    assert answer.status == 422
    assert [places for _said, places in issues(answer)] == [["patient"]]


def test_another_patient_and_another_reference_are_two_problems(registered: Panel) -> None:
    subject = {"reference": "Patient/p1", "type": "Patient"}
    body = panel("R-1", identified(1), identified(2), specimen(), subject=subject)
    body["parameter"][0]["resource"]["name"][0]["family"] = "Marrow"

    answer = registered.send(body)

    assert answer.status == 422
    assert [places for _said, places in issues(answer)] == [
        ["DiagnosticReport.subject"],
        ["patient"],
    ]


def test_another_identifier_is_refused(registered: Panel) -> None:
    body = panel("R-2", identified(1), identified(2), specimen(), status="final")

    answer = registered.send(body)

    assert answer.status == 422
    assert any("identifier[0]" in places[0] for _said, places in issues(answer))


def test_a_wrong_result_is_refused_as_at_a_registration(registered: Panel) -> None:
    answer = registered.revise(identified(1, code=None), identified(2), specimen())

    assert answer.status == 400
    assert [places for _said, places in issues(answer)] == [
        ["Parameters.parameter[3].resource.code"]
    ]


def test_an_unknown_report_is_not_found(lab: Integrator, service: RunningService) -> None:
    other = Panel(service.integrator())
    body = panel("R-1", *other.sent)

    for report_id in (other.id, "none"):
        assert lab.request("POST", f"{REVISIONS}/{report_id}/$revise", body).status == 404


def test_a_new_document_replaces_the_old_one(registered: Panel) -> None:
    other = document(b"%PDF-1.4 corrected")

    answer = registered.revise(identified(1), identified(2), specimen(), presentedForm=[other])

    assert answer.status == 200
    assert registered.report()["presentedForm"][0]["data"] == other["data"]


def test_of_many_concurrent_revisions_under_if_match_one_succeeds(registered: Panel) -> None:
    answers: list[Answer] = []

    def revise(value: int) -> None:
        sent = (identified(1, value), identified(2), specimen())
        answers.append(registered.revise(*sent, version=1, conclusion=f"value {value}"))

    threads = [threading.Thread(target=revise, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answer.status for answer in answers) == [200, *[412] * 7]
    value = registered.result(0)["valueQuantity"]["value"]
    assert registered.report()["conclusion"] == f"value {value}"
    assert registered.report()["meta"]["versionId"] == "2"


def test_the_event_names_what_is_new_and_changed_without_values(
    registered: Panel, service: RunningService
) -> None:
    registered.revise(identified(1, 5.25), identified(2), identified(3), specimen())

    version = service.call(
        service.services.context.resources.version(registered.lab.tenant.id, registered.id, 2)
    )
    assert version is not None
    (event,) = json.loads(version.events)

    assert event["type"] == "diagnostic_report.updated"
    assert event["data"]["changed"] == [registered.results[0]]
    assert len(event["data"]["added"]) == 1
    assert b"5.25" not in version.events


def test_a_patch_goes_on_as_it_is(registered: Panel) -> None:
    registered.revise(identified(1), identified(2), specimen())

    patch = {"resourceType": "DiagnosticReport", "conclusion": "Corrected"}
    answer = registered.lab.patch(f"{REVISIONS}/{registered.id}", patch)

    assert answer.status == 204
    assert [one["reference"] for one in registered.report()["result"]] == registered.results
    assert registered.result(0)["meta"]["versionId"] == "2"
