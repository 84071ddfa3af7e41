"""Batches: each entry is answered as the single request that it stands for."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.batches import (
    BASE,
    TYPE,
    UNKNOWN,
    bundle,
    count,
    entry,
    id_of,
    issues,
    places,
    problems,
    registering,
    send,
    status,
    statuses,
)
from tests.bodies import SYSTEM, document, patient, register_body, report, self_contained


def refused(answer: Answer) -> tuple[int, list[str], list[str]]:
    codes = [issue["code"] for issue in answer.issues]
    return answer.status, codes, answer.problems


# Registrations.


def test_each_entry_gets_the_answer_of_a_single_registration_in_order(lab: Integrator) -> None:
    first, wrong, last = send(
        lab, registering("R-1"), registering("R-2", status="lost"), registering("R-3")
    )

    assert statuses([first, wrong, last]) == [201, 400, 201]
    single = lab.register(register_body("R-1"))
    assert dumps(first["resource"]) == single.body
    assert first["response"]["location"] == single.headers["location"]
    assert first["response"]["etag"] == single.headers["etag"] == 'W/"1"'
    assert first["response"]["lastModified"] == single.headers["last-modified"]
    assert "outcome" not in first["response"]
    assert count(lab, ["R-1", "R-2", "R-3"]) == 2
    assert "resource" not in wrong


def test_the_place_of_a_problem_begins_at_the_bundle(lab: Integrator) -> None:
    _right, wrong = send(lab, registering("R-1"), registering("R-2", code={"text": " "}))

    assert places(wrong) == ["Bundle.entry[1].resource.parameter[2].resource.code.text"]


def test_a_refusal_names_the_request_of_its_entry(lab: Integrator) -> None:
    _right, wrong = send(lab, registering("R-1"), registering("R-2", code=1), X_Request_Id="id")

    assert wrong["response"]["outcome"]["meta"]["source"].endswith("#id-1")


def test_an_entry_that_was_registered_before_says_so(lab: Integrator) -> None:
    send(lab, registering("R-1"), registering("R-2"))

    again, other, new = send(
        lab, registering("R-1"), registering("R-2", conclusion="Otherwise"), registering("R-3")
    )

    assert statuses([again, other, new]) == [201, 201, 201]
    assert problems(again) == ["registered-before"]
    assert problems(other) == ["registered-differently"]
    assert issues(other)[0]["severity"] == "warning"
    assert "outcome" not in new["response"]


def test_one_identifier_twice_in_a_batch_is_registered_once(lab: Integrator) -> None:
    answers = send(lab, *[registering("R-1")] * 20)

    assert statuses(answers) == [201] * 20
    assert len({answer["response"]["location"] for answer in answers}) == 1
    assert sum("outcome" not in answer["response"] for answer in answers) == 1


def test_of_500_entries_every_right_one_is_there_once_and_every_wrong_one_explained(
    lab: Integrator,
) -> None:
    wrong = range(0, 500, 7)
    entries = [
        registering(f"R-{place}", **({"status": None} if place in wrong else {}))
        for place in range(500)
    ]

    answers = send(lab, *entries)

    for place, answer in enumerate(answers):
        assert status(answer) == (400 if place in wrong else 201)
        if place in wrong:
            assert f"Bundle.entry[{place}].resource.parameter[2].resource" in places(answer)[0]
    page = lab.get(f"{BASE}/{TYPE}?_summary=count")
    assert page.json["total"] == 500 - len(wrong)


def test_a_batch_that_is_sent_8_times_at_once_registers_each_entry_once(lab: Integrator) -> None:
    entries = [registering(f"R-{place}") for place in range(40)]

    with ThreadPoolExecutor(8) as threads:
        every = list(threads.map(lambda _time: send(lab, *entries), range(8)))

    assert all(statuses(answers) == [201] * 40 for answers in every)
    locations = {tuple(one["response"]["location"] for one in answers) for answers in every}
    assert len(locations) == 1
    assert lab.get(f"{BASE}/{TYPE}?_summary=count").json["total"] == 40
    new = [one for answers in every for one in answers if "outcome" not in one["response"]]
    assert len(new) == 40


def test_prefer_counts_for_all_entries(lab: Integrator) -> None:
    (minimal,) = send(lab, registering("R-1"), Prefer="return=minimal")
    (outcome,) = send(lab, registering("R-2"), Prefer="return=OperationOutcome")

    assert "resource" not in minimal
    assert minimal["response"]["location"].endswith("/_history/1")
    assert outcome["response"]["outcome"]["resourceType"] == "OperationOutcome"
    assert "resource" not in outcome


def test_a_resource_is_read_as_strictly_as_the_body_of_a_single_request(lab: Integrator) -> None:
    right = dumps(register_body("R-1"))
    twice = right.replace(b'"status":"final"', b'"status":"final","status":"final"')
    request = b'"request":{"method":"POST","url":"DiagnosticReport/$register"}'
    entries = b",".join(b'{"resource":%b,%b}' % (one, request) for one in (twice, right))
    body = b' { "type" : "batch", "entry":[%b],"resourceType":"Bundle"}\n' % entries

    answer = lab.request("POST", BASE, body)

    first, second = answer.json["entry"]
    assert problems(first) == ["json-name-repeated"]
    assert status(second) == 201


def test_decimals_keep_their_digits(lab: Integrator) -> None:
    extension = [{"url": "https://lab.example/d", "valueDecimal": 1}]
    raw = dumps(bundle(registering("R-1", extension=extension)))
    body = raw.replace(b'"valueDecimal":1', b'"valueDecimal":13.200')

    (answer,) = lab.request("POST", BASE, body).json["entry"]

    assert b'"valueDecimal":13.200' in lab.get(f"{BASE}/{TYPE}/{id_of(answer)}").body


def test_a_large_document_in_an_entry_is_stored(lab: Integrator) -> None:
    data = base64.b64decode(b"QUJDRA==") * 300_000

    small, large = send(
        lab, registering("R-1"), registering("R-2", presentedForm=[document(data)])
    )

    assert statuses([small, large]) == [201, 201]
    (read,) = send(lab, entry("GET", f"{TYPE}/{id_of(large)}"))
    assert base64.b64decode(read["resource"]["presentedForm"][0]["data"]) == data


def test_create_and_validate_are_answered_too(lab: Integrator) -> None:
    created, valid = send(
        lab,
        entry("POST", TYPE, self_contained("R-1")),
        entry("POST", f"{TYPE}/$validate", register_body("R-2")),
    )

    assert statuses([created, valid]) == [201, 200]
    assert created["resource"]["resourceType"] == TYPE
    assert valid["response"]["outcome"]["resourceType"] == "OperationOutcome"
    assert count(lab, ["R-2"]) == 0


# Reads and updates.


def test_what_a_single_get_returns_is_in_the_entry(lab: Integrator) -> None:
    (made,) = send(lab, registering("R-1"))
    path = f"{TYPE}/{id_of(made)}"

    answers = send(
        lab,
        entry("GET", path),
        entry("GET", f"{path}/_history/1"),
        entry("GET", f"{path}/_history"),
        entry("GET", f"/{TYPE}?identifier={SYSTEM}|R-1"),
        entry("GET", f"{lab.service.base_url}{BASE}/{path}"),
        entry("GET", f"{path}?_summary=true"),
        entry("GET", "metadata"),
        entry("HEAD", path),
    )

    assert statuses(answers) == [200] * 8
    single = lab.get(f"{BASE}/{path}")
    assert dumps(answers[0]["resource"]) == single.body
    assert answers[0]["response"]["etag"] == single.headers["etag"]
    assert answers[1]["resource"] == answers[4]["resource"] == answers[0]["resource"]
    assert answers[2]["resource"]["type"] == "history"
    assert answers[3]["resource"]["total"] == 1
    assert answers[6]["resource"]["resourceType"] == "CapabilityStatement"
    assert "resource" not in answers[7]


def test_an_unknown_id_is_not_found_in_its_entry_alone(lab: Integrator) -> None:
    unknown, found = send(lab, entry("GET", f"{TYPE}/{UNKNOWN}"), entry("GET", TYPE))

    assert statuses([unknown, found]) == [404, 200]
    assert problems(unknown) == ["resource-unknown"]


def test_a_resource_is_patched_in_each_form(lab: Integrator) -> None:
    (made,) = send(lab, registering("R-1", status="preliminary"))
    path = f"{TYPE}/{id_of(made)}"

    def binary(media_type: str, patch: Any) -> dict[str, Any]:
        data = base64.b64encode(dumps(patch)).decode()
        return {"resourceType": "Binary", "contentType": media_type, "data": data}

    fhir = {"resourceType": TYPE, "status": "final"}
    merge = binary("application/merge-patch+json", {"conclusion": "One"})
    operations = [{"op": "replace", "path": "/conclusion", "value": "Two"}]
    patch = binary("application/json-patch+json", operations)

    for version, body in enumerate((fhir, merge, patch), 1):
        (answer,) = send(lab, entry("PATCH", path, body, ifMatch=f'W/"{version}"'))
        assert status(answer) == 204
        assert answer["response"]["etag"] == f'W/"{version + 1}"'

    read = lab.get(f"{BASE}/{path}").json
    assert (read["status"], read["conclusion"]) == ("final", "Two")


def test_a_patch_of_another_version_is_refused_and_changes_nothing(lab: Integrator) -> None:
    (made,) = send(lab, registering("R-1", status="preliminary"))
    path = f"{TYPE}/{id_of(made)}"
    body = {"resourceType": TYPE, "status": "final"}

    (answer,) = send(lab, entry("PATCH", path, body, ifMatch='W/"2"'))

    assert status(answer) == 412
    assert lab.get(f"{BASE}/{path}").json["meta"]["versionId"] == "1"


def test_a_wrong_patch_names_the_place_in_the_bundle(lab: Integrator) -> None:
    (made,) = send(lab, registering("R-1"))
    path = f"{TYPE}/{id_of(made)}"

    unknown, binary = send(
        lab,
        entry("PATCH", path, {"resourceType": TYPE, "statuss": "final"}),
        entry("PATCH", path, {"resourceType": "Binary", "contentType": "text/plain"}),
    )

    assert statuses([unknown, binary]) == [422, 400]
    assert places(unknown) == ["Bundle.entry[0].resource.statuss"]
    assert places(binary) == ["Bundle.entry[1].resource.contentType"]


def test_a_report_is_revised(lab: Integrator) -> None:
    (made,) = send(lab, registering("R-1", status="preliminary"))
    path = f"{TYPE}/{id_of(made)}/$revise"

    unconditional, revised = send(
        lab,
        entry("POST", path, register_body("R-1", status="final")),
        entry("POST", path, register_body("R-1", status="final"), ifMatch='W/"1"'),
    )

    assert statuses([unconditional, revised]) == [428, 200]
    assert revised["response"]["etag"] == 'W/"2"'


# Conditions.


def test_conditions_are_evaluated_where_the_single_request_does(lab: Integrator) -> None:
    (made,) = send(lab, registering("R-1"))
    path = f"{TYPE}/{id_of(made)}"
    exists = f"identifier={SYSTEM}|R-1"

    answers = send(
        lab,
        entry("GET", path, ifNoneMatch='W/"1"'),
        entry("GET", path, ifModifiedSince="2099-01-01T00:00:00Z"),
        entry("GET", path, ifModifiedSince="2001-01-01T00:00:00.5+01:00"),
        entry("POST", TYPE, self_contained("R-1"), ifNoneExist=exists),
    )

    assert statuses(answers) == [304, 304, 200, 200]
    assert "resource" not in answers[0]


@pytest.mark.parametrize("name", ["ifMatch", "ifNoneMatch", "ifModifiedSince", "ifNoneExist"])
def test_a_condition_that_a_registration_does_not_evaluate_is_refused(
    lab: Integrator, name: str
) -> None:
    values = {"ifMatch": 'W/"1"', "ifModifiedSince": "2026-01-01T00:00:00Z"}
    one = registering("R-1")
    one["request"][name] = values.get(name, "x")

    (answer,) = send(lab, one)

    assert status(answer) == 400
    assert problems(answer) == ["condition-unsupported"]
    assert places(answer) == [f"Bundle.entry[0].request.{name}"]
    assert count(lab, ["R-1"]) == 0


# What a batch does not do.


@pytest.mark.parametrize("kind", ["transaction", "collection", "message", 1, "Batch"])
def test_another_type_of_bundle_is_refused_as_a_whole(lab: Integrator, kind: Any) -> None:
    answer = lab.request("POST", BASE, bundle(registering("R-1"), type=kind))

    assert refused(answer) == (400, ["not-supported"], ["batch-unsupported"])
    assert answer.issue_expressions == {"Bundle.type"}
    assert count(lab, ["R-1"]) == 0


def test_a_reference_to_another_entry_is_refused_in_the_entry_that_relies_on_it(
    lab: Integrator,
) -> None:
    urn = "urn:uuid:7d2b1a3e-0c5d-4a6e-9d5e-0c1f2a3b4c5d"
    body = register_body("R-2", subject={"reference": urn})
    del body["parameter"][0]

    first, relying = send(
        lab,
        entry("POST", "Patient", patient(), full_url=urn),
        entry("POST", f"{TYPE}/$register", body, full_url="urn:uuid:other"),
    )

    assert statuses([first, relying]) == [405, 400]
    assert problems(relying) == ["reference-unresolved"]
    assert "entry[0]" in issues(relying)[0]["diagnostics"]
    assert places(relying) == ["Bundle.entry[1].resource"]


WRONG_REQUESTS: dict[str, tuple[Any, int, str]] = {
    "another server": (entry("GET", f"http://other.example/fhir/{TYPE}"), 400, "address-unknown"),
    "another scheme": (entry("GET", "urn:uuid:1"), 400, "address-unknown"),
    "half an address": (entry("GET", f"//[{TYPE}"), 400, "address-unknown"),
    "a search of all types": (entry("GET", "?_id=1"), 405, "method-unsupported"),
    "a network path": (entry("GET", f"//other.example/{TYPE}"), 400, "address-unknown"),
    "a batch in the batch": (entry("POST", "", bundle()), 400, "element-required"),
    "a batch at the base": (entry("POST", "/", bundle()), 400, "batch-unsupported"),
    "a batch as a resource": (entry("POST", "Bundle", bundle()), 400, "batch-unsupported"),
    "no such address": (entry("GET", "Nothing/1"), 404, "address-unknown"),
    "a way out of the base": (entry("GET", "../../webhooks/v1/endpoints"), 404, "address-unknown"),
    "no FHIR": (entry("GET", ".well-known/smart-configuration"), 406, "format-unsupported"),
    "another format": (entry("GET", f"{TYPE}?_format=xml"), 400, "format-unsupported"),
    "a search by form": (entry("POST", f"{TYPE}/_search", {}), 400, "body-type-unsupported"),
    "no method": ({"request": {"url": TYPE}}, 400, "method-unsupported"),
    "an unknown method": (entry("FETCH", TYPE), 400, "method-unsupported"),
    "a method that nothing has": (entry("DELETE", f"{TYPE}/1"), 405, "method-unsupported"),
    "no resource": (entry("POST", f"{TYPE}/$register"), 400, "element-required"),
    "a resource too many": (
        entry("GET", TYPE, {"resourceType": "Basic"}),
        400,
        "element-malformed",
    ),
    "no request": ({"resource": report("R-1")}, 400, "element-required"),
    "an array as the request": ({"request": [1]}, 400, "element-required"),
    "a text as the entry": ("x", 400, "element-malformed"),
    "null as the entry": (None, 400, "element-malformed"),
    "an empty entry": ({}, 400, "element-required"),
    "an unknown element": ({**entry("GET", TYPE), "x": 1}, 400, "element-unknown"),
    "a blank in the url": (entry("GET", f"{TYPE}?code=a b"), 400, "element-required"),
    "a line break in a condition": (
        entry("GET", f"{TYPE}/1", ifMatch="1\r\nX: 1"),
        400,
        "element-malformed",
    ),
}


@pytest.mark.parametrize("name", WRONG_REQUESTS)
def test_an_entry_that_is_no_request_of_the_service_is_refused_alone(
    lab: Integrator, name: str
) -> None:
    wrong, expected, problem = WRONG_REQUESTS[name]

    before, answer, behind = send(lab, registering("R-1"), wrong, registering("R-2"))

    assert statuses([before, answer, behind]) == [201, expected, 201]
    assert problem in problems(answer)


def test_more_entries_than_allowed_are_refused_as_a_whole(lab: Integrator) -> None:
    answer = lab.request("POST", BASE, bundle(*[entry("GET", TYPE)] * 1001))

    assert refused(answer) == (413, ["too-costly"], ["entries-too-many"])


def test_an_empty_batch_gets_an_empty_response(lab: Integrator) -> None:
    assert send(lab) == []
    without = lab.request("POST", f"{BASE}/", {"resourceType": "Bundle", "type": "batch"})
    assert without.json == {"resourceType": "Bundle", "type": "batch-response"}


WRONG_BODIES: dict[str, tuple[bytes, str]] = {
    "no JSON": (b'{"resourceType":"Bundle","type":"batch","entry":[{]}', "json-malformed"),
    "an end too early": (b'{"resourceType":"Bundle","type":"batch","entry":[', "json-malformed"),
    "more behind its end": (b'{"resourceType":"Bundle","type":"batch"}}', "json-malformed"),
    "nothing": (b" ", "body-empty"),
    "an array": (b"[]", "body-unexpected"),
    "another resource": (b'{"resourceType":"Patient"}', "body-unexpected"),
    "no type": (b'{"resourceType":"Bundle","entry":[]}', "element-required"),
    "entries as an object": (
        b'{"resourceType":"Bundle","type":"batch","entry":{}}',
        "element-malformed",
    ),
    "two arrays of entries": (
        b'{"resourceType":"Bundle","type":"batch","entry":[],"entry":[]}',
        "json-name-repeated",
    ),
    "an unknown element": (
        b'{"resourceType":"Bundle","type":"batch","entries":[]}',
        "element-unknown",
    ),
}


@pytest.mark.parametrize("name", WRONG_BODIES)
def test_a_body_that_is_no_batch_is_refused_as_a_whole(lab: Integrator, name: str) -> None:
    body, problem = WRONG_BODIES[name]

    answer = lab.request("POST", BASE, body)

    assert answer.status == 400
    assert problem in answer.problems


def test_no_line_is_named_that_is_not_one_of_the_body(lab: Integrator) -> None:
    answer = lab.request("POST", BASE, dumps(bundle(registering("R-1"))) + b"x")

    assert answer.issues[0]["diagnostics"].endswith("there is more after its end")
    assert answer.issue_expressions == {"Bundle"}


def test_xml_is_refused_in_both_directions(lab: Integrator) -> None:
    xml = {"Content-Type": "application/fhir+xml"}
    sent = lab.request("POST", BASE, b'<Bundle xmlns="http://hl7.org/fhir"/>', xml)
    asked = lab.request("POST", BASE, bundle(), {"Accept": "application/fhir+xml"})

    assert (sent.status, sent.problems) == (415, ["body-type-unsupported"])
    assert asked.status == 406
    assert b"format-unsupported" in asked.body


def test_a_batch_needs_a_token(service: RunningService) -> None:
    answer = service.request(
        "POST", BASE, dumps(bundle()), {"Content-Type": "application/fhir+json"}
    )

    assert answer.status == 401


# Tenants and scopes.


def test_ids_of_another_tenant_are_not_found(service: RunningService) -> None:
    lab, stranger = service.integrator(), service.integrator("Other")
    (made,) = send(lab, registering("R-1", status="preliminary"))
    path = f"{TYPE}/{id_of(made)}"
    body = {"resourceType": TYPE, "status": "final"}

    answers = send(
        stranger,
        entry("GET", path),
        entry("GET", f"{path}/_history"),
        entry("PATCH", path, body),
        entry("POST", f"{path}/$revise", register_body("R-1"), ifMatch="*"),
        entry("GET", f"{TYPE}?_id={id_of(made)}"),
    )

    assert statuses(answers) == [404, 404, 404, 404, 200]
    assert answers[4]["resource"]["total"] == 0
    assert lab.get(f"{BASE}/{path}").json["status"] == "preliminary"


def test_each_entry_needs_its_own_scope(strict: RunningService) -> None:
    lab = strict.integrator(scopes=("system/DiagnosticReport.cr",))

    registered, found = send(lab, registering("R-1"), entry("GET", TYPE))

    assert statuses([registered, found]) == [201, 403]
    assert problems(found) == ["scope-missing"]
