"""Reports that are registered together with their results (ADR 24)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.fhir.xml.writer import write_xml
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import self_contained
from tests.panels import LOINC, RESULTS, panel, result, specimen

Change = Callable[[dict[str, Any]], Any]


def entries(answer: Answer, name: str) -> list[dict[str, Any]]:
    found = [entry for entry in answer.json["parameter"] if entry["name"] == name]
    return [entry.get("resource") or entry["valueReference"] for entry in found]


def remarks(answer: Answer, severity: str) -> list[tuple[str, list[str]]]:
    issues = (
        answer.json["issue"] if "issue" in answer.json else entries(answer, "issues")[0]["issue"]
    )
    return [
        (issue["diagnostics"], issue.get("expression", []))
        for issue in issues
        if issue["severity"] == severity
    ]


def stored(lab: Integrator, answer: Answer) -> dict[str, Any]:
    (short,) = entries(answer, "diagnosticReport")
    report: dict[str, Any] = lab.get(f"/fhir/r4/DiagnosticReport/{short['id']}").json
    return report


def identified(number: int, **changes: Any) -> dict[str, Any]:
    identifier = [{"system": RESULTS, "value": str(number)}]
    return result(f"r{number}", identifier=identifier, **changes)


def test_the_report_refers_to_its_results_by_their_ids(lab: Integrator) -> None:
    answer = lab.register(panel("R-1", result("hb"), result("wbc"), specimen()))

    assert answer.status == 201
    assert stored(lab, answer)["result"] == entries(answer, "observation")
    assert len({one["reference"] for one in entries(answer, "observation")}) == 2


def test_the_addresses_of_results_are_answered_in_the_order_of_the_entries(
    lab: Integrator,
) -> None:
    body = panel("R-1", result("b"), specimen(), result("a"))
    body["parameter"].reverse()

    answer = lab.register(body)

    reversed_ = stored(lab, answer)["result"][::-1]
    assert entries(answer, "observation") == reversed_
    assert [one["reference"].split("/")[0] for one in entries(answer, "specimen")] == ["Specimen"]


def test_one_remark_stands_for_the_report_and_its_results(lab: Integrator) -> None:
    code = {"coding": [{"system": LOINC, "code": "58410-2"}], "text": "Blood count"}
    body = panel("R-1", result("hb"), result("wbc"), code=code)

    answer = lab.register(body)

    _created, (said, places) = remarks(answer, "information")
    assert LOINC in said
    assert places == [
        f"Parameters.parameter[{place}].resource.code.coding[0].system" for place in (2, 3, 4)
    ]


def test_a_repetition_gets_the_same_answer(lab: Integrator) -> None:
    body = panel("R-1", result("hb"), specimen())
    first = lab.register(body)

    again = lab.register(body)

    assert (again.status, again.body) == (201, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-content" not in again.headers


def check_same_content(lab: Integrator, body: dict[str, Any], other: dict[str, Any]) -> None:
    """Register both, and check that the second one repeats the first."""
    first = lab.register(body)

    again = lab.register(other)

    assert again.body == first.body
    assert "idempotent-content" not in again.headers


def in_reverse(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "parameter": body["parameter"][::-1]}


def test_entries_may_come_in_any_order(lab: Integrator) -> None:
    body = panel("R-1", identified(1), identified(2), specimen())

    check_same_content(lab, body, in_reverse(body))


def test_entries_without_identifiers_may_come_in_any_order(lab: Integrator) -> None:
    members = [{"reference": "Observation/hb"}, {"reference": "Observation/wbc"}]
    count = result("count", hasMember=members, valueQuantity=None)
    body = panel("R-1", count, result("hb"), result("wbc"), result("plt", value=248))

    check_same_content(lab, body, in_reverse(body))


def test_local_ids_do_not_count_for_results_in_the_same_order(lab: Integrator) -> None:
    def counted(*local_ids: str) -> dict[str, Any]:
        code = {"text": "Hemoglobin"}
        values = [result(one, value, code=code) for value, one in enumerate(local_ids)]
        return panel("R-1", *values)

    check_same_content(lab, counted("a", "b", "c"), counted("z", "y", "x"))


def test_a_result_derived_from_another_one_is_other_content(lab: Integrator) -> None:
    def derived(local_id: str) -> dict[str, Any]:
        ratio = result("ratio", derivedFrom=[{"reference": f"Observation/{local_id}"}])
        return panel("R-1", result("hb"), result("wbc", 6.4), ratio)

    lab.register(derived("hb"))

    answer = lab.register(derived("wbc"))

    assert answer.headers["idempotent-content"] == "different"


def test_orders_with_one_identifier_are_refused_as_orders(lab: Integrator) -> None:
    number = [{"system": "https://lab.example/orders", "value": "1"}]
    orders = [
        {
            "resourceType": "ServiceRequest",
            "id": local_id,
            "identifier": number,
            "status": "active",
            "intent": "order",
            "subject": {"reference": "Patient/p1"},
        }
        for local_id in ("a", "b")
    ]
    led_to = [{"reference": f"ServiceRequest/{order['id']}"} for order in orders]

    answer = lab.register(panel("R-1", *orders, basedOn=led_to))

    assert remarks(answer, "error") == [
        (
            f"is the identifier of {ON_ORDER}, too: use one of its own, or none",
            [f"{ON_R4}.identifier"],
        )
    ]


def test_local_ids_do_not_count_for_results_with_identifiers(lab: Integrator) -> None:
    results = [identified(1), identified(2)]
    others = [{**identified(1), "id": "x"}, {**identified(2), "id": "y"}]

    check_same_content(lab, panel("R-1", *results), panel("R-1", *others))


def test_another_value_is_other_content(lab: Integrator) -> None:
    lab.register(panel("R-1", identified(1), identified(2, value=4.5)))

    body = panel("R-1", identified(1), identified(2, value=4.6))
    answer = lab.register(body)
    trial = lab.request("POST", "/fhir/r4/DiagnosticReport/$validate", body)

    assert answer.headers["idempotent-content"] == "different"
    (warning,) = remarks(trial, "warning")
    assert "Observation.valueQuantity" in warning[0]


def test_a_missing_result_is_other_content(lab: Integrator) -> None:
    lab.register(panel("R-1", identified(1), identified(2)))

    answer = lab.register(panel("R-1", identified(1)))

    assert answer.headers["idempotent-content"] == "different"


def test_the_same_local_ids_in_another_report_are_other_results(lab: Integrator) -> None:
    first = lab.register(panel("R-1", result("hb")))

    second = lab.register(panel("R-2", result("hb")))

    assert entries(first, "observation") != entries(second, "observation")


ON_ORDER, ON_R4 = (f"Parameters.parameter[{place}].resource" for place in (3, 4))


@pytest.mark.parametrize(
    ("change", "status", "expression"),
    [
        (lambda it: it.pop("code"), 400, f"{ON_R4}.code"),
        (lambda it: it.update(status="entered-in-error"), 400, f"{ON_R4}.status"),
        (lambda it: it.update(valueString="x"), 400, f"{ON_R4}.value"),
        (lambda it: it.update(foo=1), 400, ON_R4),
        (lambda it: it.pop("id"), 400, f"{ON_R4}.id"),
        (lambda it: it.update(id="hb"), 400, f"{ON_R4}.id"),
        (
            lambda it: it.update(subject={"reference": "Patient/other"}),
            400,
            f"{ON_R4}.subject.reference",
        ),
        (
            lambda it: it.update(specimen={"reference": "Specimen/other"}),
            400,
            f"{ON_R4}.specimen.reference",
        ),
        (
            lambda it: it.update(hasMember=[{"reference": "Observation/wbc"}]),
            422,
            ON_R4,
        ),
    ],
)
def test_a_wrong_result_is_refused_with_its_place(
    lab: Integrator, change: Change, status: int, expression: str
) -> None:
    wrong = result("wbc")
    change(wrong)
    led_to = [{"reference": "Observation/hb"}]

    answer = lab.register(panel("R-1", result("hb"), wrong, specimen(), result=led_to))

    assert answer.status == status
    assert [places for _said, places in remarks(answer, "error")] == [[expression]]
    assert lab.get("/fhir/r4/DiagnosticReport?identifier=R-1").json["total"] == 0


def test_a_reference_of_the_report_to_a_result_that_was_not_sent_is_refused(
    lab: Integrator,
) -> None:
    led_to = [{"reference": "Observation/hb"}, {"reference": "Observation/none"}]

    answer = lab.register(panel("R-1", result("hb"), result=led_to))

    assert answer.status == 400
    (error,) = remarks(answer, "error")
    assert error[1] == ["Parameters.parameter[2].resource.result[1].reference"]


def test_a_reference_to_a_result_without_any_result_in_the_body_is_kept_as_before(
    lab: Integrator,
) -> None:
    answer = lab.register(panel("R-1", result=[{"reference": "Observation/elsewhere"}]))

    assert answer.status == 201
    assert stored(lab, answer)["result"] == [{"reference": "Observation/elsewhere"}]


def test_a_random_local_id_that_leads_nowhere_is_refused(lab: Integrator) -> None:
    nowhere = "Specimen/5b0c2f0e-7d53-4c8e-9d4b-0e3b8d6f1a22"

    answer = lab.register(panel("R-1", result("hb", specimen={"reference": nowhere}), specimen()))

    assert answer.status == 400
    assert remarks(answer, "error")[0][1] == [
        "Parameters.parameter[3].resource.specimen.reference"
    ]


def test_a_reference_to_a_result_of_another_report_is_kept(lab: Integrator) -> None:
    other = entries(lab.register(panel("R-1", result("hb"))), "observation")[0]

    answer = lab.register(panel("R-2", result("ratio", derivedFrom=[other])))

    assert answer.status == 201


def test_an_order_may_refer_to_the_report_by_the_id_that_it_was_sent_with(
    lab: Integrator, service: RunningService
) -> None:
    order = {
        "resourceType": "ServiceRequest",
        "id": "order",
        "status": "completed",
        "intent": "order",
        "subject": {"reference": "Patient/p1"},
        "supportingInfo": [{"reference": "DiagnosticReport/r1"}],
    }
    led_to = [{"reference": "ServiceRequest/order"}]
    first = lab.register(panel("R-1", order, basedOn=led_to))
    (short,) = entries(first, "diagnosticReport")

    order["supportingInfo"] = [{"reference": "DiagnosticReport/r2"}]
    again = lab.register(panel("R-1", order, basedOn=led_to, id="r2"))

    assert _members(service, short["id"]) == {
        "ServiceRequest": [{"reference": f"DiagnosticReport/{short['id']}"}]
    }
    assert "idempotent-content" not in again.headers


def _members(service: RunningService, report_id: str) -> dict[str, Any]:
    """Return what the members of a report refer to as supporting information, by their types."""
    versions = service.call(service.services.store.scan(after=(report_id, 0), limit=1))
    resources = [json.loads(member.body) for member in versions[0][1].members]
    return {one["resourceType"]: one["supportingInfo"] for one in resources}


def test_a_longer_cycle_is_refused_once(lab: Integrator) -> None:
    ring = [
        result(name, hasMember=[{"reference": f"Observation/{following}"}])
        for name, following in zip("abcd", "bcda", strict=True)
    ]

    answer = lab.register(panel("R-1", *ring))

    assert answer.status == 422
    assert len(remarks(answer, "error")) == 1


def test_results_may_share_their_members(lab: Integrator) -> None:
    top = [
        result(name, hasMember=[{"reference": "Observation/shared"}]) for name in ("one", "two")
    ]

    assert lab.register(panel("R-1", *top, result("shared"))).status == 201


def test_two_results_with_one_identifier_are_refused(lab: Integrator) -> None:
    other = {**identified(1), "id": "other"}

    answer = lab.register(panel("R-1", identified(1), other))

    assert answer.status == 400
    assert [places for _said, places in remarks(answer, "error")] == [[f"{ON_R4}.identifier"]]


def test_a_result_to_which_nothing_refers_causes_a_warning(lab: Integrator) -> None:
    answer = lab.register(panel("R-1", result("hb"), result=None))

    assert answer.status == 201
    (warning,) = remarks(answer, "warning")
    assert warning[1] == ["Parameters.parameter[3].resource"]


def test_a_result_without_a_patient_causes_a_warning(lab: Integrator) -> None:
    answer = lab.register(panel("R-1", result("hb", subject=None)))

    (warning,) = remarks(answer, "warning")
    assert "subject is missing" in warning[0]


def test_all_problems_of_all_entries_are_reported_at_once(lab: Integrator) -> None:
    body = panel("R-1", result("a", code=None), result("b", status="nope"), specimen(foo=1))
    body["parameter"][0]["resource"]["gender"] = "x"

    answer = lab.register(body)

    places = {place for _said, found in remarks(answer, "error") for place in found}
    assert places == {
        "Parameters.parameter[0].resource.gender",
        "Parameters.parameter[3].resource.code",
        "Parameters.parameter[4].resource.status",
        "Parameters.parameter[5].resource",
    }


@pytest.mark.parametrize(("number", "status"), [(1_000, 201), (1_001, 400)])
def test_there_can_be_a_thousand_results(lab: Integrator, number: int, status: int) -> None:
    answer = lab.register(panel("R-1", *(result(f"r{count}") for count in range(number))))

    assert answer.status == status
    if status == 201:
        assert len(entries(answer, "observation")) == number


def test_a_panel_of_forty_has_one_event(lab: Integrator, service: RunningService) -> None:
    answer = lab.register(panel("R-1", *(result(f"r{count}") for count in range(40))))
    (short,) = entries(answer, "diagnosticReport")

    resources = service.services.context.resources
    version = service.call(resources.version(lab.tenant.id, short["id"], 1))

    assert version is not None
    assert version.events.count(b'"type":"diagnostic_report.created"') == 1
    assert version.events.count(b'"id":') == 2  # of the event and of the report


def test_a_trial_stores_nothing(lab: Integrator) -> None:
    body = panel("R-1", result("hb"))

    trial = lab.request("POST", "/fhir/r4/DiagnosticReport/$validate", body)

    assert trial.status == 200
    assert remarks(trial, "error") == []
    assert lab.get("/fhir/r4/DiagnosticReport?identifier=R-1").json["total"] == 0


def test_contained_results_of_create_stay_contained(lab: Integrator) -> None:
    body = self_contained("R-1")
    body["contained"].append({**result("hb"), "subject": {"reference": "#p1"}})
    body["result"] = [{"reference": "#hb"}]

    answer = lab.request("POST", "/fhir/r4/DiagnosticReport", copy.deepcopy(body))

    assert answer.status == 201
    report = lab.get(answer.headers["location"].partition("/_history")[0]).json
    assert report["result"] == [{"reference": "#hb"}]
    assert [one["resourceType"] for one in report["contained"]] == ["Observation"]


def test_an_xml_body_registers_the_same(lab: Integrator) -> None:
    body = panel("R-1", result("hb"), specimen())
    first = lab.register(body)
    headers = {"Content-Type": "application/fhir+xml"}

    xml = lab.request(
        "POST",
        "/fhir/r4/DiagnosticReport/$register",
        write_xml(body),
        headers,
    )

    assert xml.status == 201
    assert "idempotent-content" not in xml.headers
    assert entries(first, "observation")[0]["reference"].encode() in xml.body
