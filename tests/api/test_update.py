from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.patch_formats import FORMS
from fhirpub.testing.clock import HandClock
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import PDF, document, register_body
from tests.stored import store_again, stored_version


@pytest.fixture
def path(lab: Integrator) -> str:
    """The path of a fresh report."""
    location = lab.register(register_body("U-1")).headers["location"]
    return location.removeprefix(lab.service.base_url).removesuffix("/_history/1")


def update(
    lab: Integrator, path: str, headers: dict[str, str] | None = None, **fields: Any
) -> Answer:
    body = {"resourceType": "DiagnosticReport", **fields}
    return lab.request("PATCH", path, body, headers)


def test_an_update_answers_204_without_a_body(lab: Integrator, path: str) -> None:
    answer = update(lab, path, status="amended", conclusion="Corrected")

    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["etag"] == 'W/"2"'
    assert answer.headers["location"].endswith("/_history/2")
    assert answer.headers["last-modified"].endswith("GMT")


def test_a_version_is_later_than_the_one_before_it_whatever_the_clock_says(
    tmp_path: Path,
) -> None:
    clock = HandClock()
    with RunningService(tmp_path, clock=clock) as service:
        lab = service.integrator()
        location = lab.register(register_body("U-1")).headers["location"]
        first = location.removeprefix(service.base_url)
        clock.forward(seconds=-60)

        update(lab, first.removesuffix("/_history/1"), conclusion="Corrected")

        times = [lab.get(f"{first[:-1]}{number}").json["meta"]["lastUpdated"] for number in (1, 2)]
    assert times[0] < times[1]


def test_an_update_replaces_the_fields_it_names_and_no_other(lab: Integrator, path: str) -> None:
    before = lab.get(path).json

    update(lab, path, conclusion="Corrected")
    after = lab.get(path).json

    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"meta", "conclusion"}


def test_a_replaced_field_loses_its_extensions(lab: Integrator) -> None:
    extension = {"extension": [{"url": "https://lab.example/by", "valueString": "x"}]}
    body = register_body("U-2", conclusion="Normal", _conclusion=extension)
    location = lab.register(body).headers["location"]
    path = location.removeprefix(lab.service.base_url).removesuffix("/_history/1")

    assert update(lab, path, conclusion="Corrected").status == 204

    after = lab.get(path).json
    assert after["conclusion"] == "Corrected"
    assert "_conclusion" not in after


def test_an_update_replaces_all_documents(lab: Integrator, path: str) -> None:
    other = PDF + b"other"

    answer = update(lab, path, presentedForm=[document(other, title="New")])
    read = lab.get(path).json["presentedForm"]

    assert answer.status == 204
    assert [base64.b64decode(item["data"]) for item in read] == [other]


def test_an_update_keeps_the_documents_it_does_not_name(lab: Integrator, path: str) -> None:
    update(lab, path, status="amended")

    assert base64.b64decode(lab.get(path).json["presentedForm"][0]["data"]) == PDF


@pytest.mark.parametrize(
    ("fields", "held"),
    [
        ({"status": "amended"}, [PDF]),
        ({"presentedForm": [document(PDF + b"new")]}, [PDF + b"new"]),
        ({"presentedForm": [document(), document(b"x" * 65_500)]}, [PDF]),
    ],
    ids=["kept", "replaced", "too large beside another"],
)
def test_each_version_holds_its_small_documents(
    service: RunningService,
    lab: Integrator,
    path: str,
    fields: dict[str, Any],
    held: list[bytes],
) -> None:
    assert [blob.data for blob in stored_version(service, lab, path).attached] == [PDF]

    update(lab, path, **fields)

    assert [blob.data for blob in stored_version(service, lab, path).attached] == held


@pytest.mark.parametrize("tag", ['W/"1"', '"1"', "*", 'W/"7", W/"1"'])
def test_every_form_of_a_matching_tag_is_taken(lab: Integrator, path: str, tag: str) -> None:
    assert update(lab, path, {"If-Match": tag}, status="amended").status == 204


@pytest.mark.parametrize(
    "tag", ['W/"2"', "1", "W/1", 'W/"01"', '"1', "x", 'W/"1" W/"1"x', "", ","]
)
def test_any_other_tag_is_a_412(lab: Integrator, path: str, tag: str) -> None:
    answer = update(lab, path, {"If-Match": tag}, status="amended")

    assert (answer.status, answer.issues[0]["code"]) == (412, "conflict")
    assert "current version 1" in answer.issues[0]["diagnostics"]


def test_a_number_without_quotes_is_answered_with_the_tag(lab: Integrator, path: str) -> None:
    answer = update(lab, path, {"If-Match": "1"}, status="amended")

    said = "target version '1', current version 1: send If-Match: W/\"1\""
    assert answer.issues[0]["diagnostics"] == said
    assert answer.problems == ["precondition-malformed"]


def test_the_version_is_checked_before_the_body(lab: Integrator, path: str) -> None:
    answer = lab.request("PATCH", path, b"{", {"If-Match": 'W/"9"'})

    assert answer.status == 412


def test_a_report_that_is_not_there_is_a_404_before_all_else(lab: Integrator) -> None:
    path = "/fhir/r4/DiagnosticReport/00000000-0000-4000-8000-000000000000"

    answer = lab.request("PATCH", path, b"{", {"If-Match": 'W/"9"'})

    assert (answer.status, answer.issues[0]["code"]) == (404, "not-found")
    assert "00000000-0000-4000-8000-000000000000" in answer.issues[0]["diagnostics"]


def test_fields_that_cannot_change_are_listed_with_wrong_values(
    lab: Integrator, path: str
) -> None:
    answer = update(lab, path, code={"text": "x"}, id="x", meta={}, status="nonsense")

    assert answer.status == 400
    assert [issue["expression"] for issue in answer.issues] == [
        ["DiagnosticReport.status"],
        ["DiagnosticReport.code"],
        ["DiagnosticReport.id"],
        ["DiagnosticReport.meta"],
    ]


@pytest.mark.parametrize(
    "send",
    [
        {"body": {"resourceType": "DiagnosticReport", "subject": {}, "conclusion": "x"}},
        {"body": {"subject": None, "conclusion": "x"}, "kind": "merge-patch+json"},
        {
            "body": [
                {"op": "remove", "path": "/subject"},
                {"op": "replace", "path": "/conclusion", "value": "x"},
            ],
            "kind": "json-patch+json",
        },
    ],
    ids=["fhir", "merge-patch", "json-patch"],
)
def test_a_field_that_cannot_change_is_a_422_in_each_form(
    lab: Integrator, path: str, send: dict[str, Any]
) -> None:
    kind = f"application/{send.get('kind', 'fhir+json')}"

    answer = lab.request("PATCH", path, send["body"], {"Content-Type": kind})

    assert (answer.status, answer.problems) == (422, ["element-not-updatable"])
    assert "conclusion" not in lab.get(path).json or lab.get(path).json["conclusion"] != "x"


def test_a_choice_is_pointed_at_as_fhirpath_has_it(lab: Integrator, path: str) -> None:
    answer = update(lab, path, effectiveDateTime="2026", _effectiveDateTime={"id": "x"})

    assert (answer.status, answer.issue_expressions) == (422, {"DiagnosticReport.effective"})


def test_a_name_that_no_element_has_is_pointed_at_by_the_resource(
    lab: Integrator, path: str
) -> None:
    answer = lab.patch(path, {"resourceType": "DiagnosticReport", "no name": 1})

    assert (answer.status, answer.issue_expressions) == (422, {"DiagnosticReport"})


WRONG_VALUES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "registered": ({"status": "registered"}, {"DiagnosticReport.status"}),
    "no status of FHIR": ({"status": "done"}, {"DiagnosticReport.status"}),
    "a null": ({"conclusion": None}, {"DiagnosticReport.conclusion"}),
    "an empty text": ({"conclusion": ""}, {"DiagnosticReport.conclusion"}),
    "no documents": ({"presentedForm": []}, {"DiagnosticReport.presentedForm"}),
    "a document without hash": (
        {"presentedForm": [document(hash=None)]},
        {"DiagnosticReport.presentedForm[0]"},
    ),
    "nothing": ({}, {"DiagnosticReport"}),
}


@pytest.mark.parametrize("case", WRONG_VALUES)
def test_a_wrong_value_is_a_400_that_points_at_it(lab: Integrator, path: str, case: str) -> None:
    fields, places = WRONG_VALUES[case]

    answer = update(lab, path, **fields)

    assert (answer.status, answer.issue_expressions) == (400, places)


def test_an_update_is_checked_for_what_identifies(lab: Integrator, path: str) -> None:
    notes = [{"url": "LOCAL", "valueString": "x"}]

    answer = update(lab, path, presentedForm=[document(extension=notes, id="d"), document(id="d")])

    at = "DiagnosticReport.presentedForm"
    assert answer.status == 400
    assert answer.issue_expressions == {f"{at}[0].extension[0].url", f"{at}[1].id"}


def test_all_problems_of_an_update_are_reported_at_once(lab: Integrator, path: str) -> None:
    empty = {"title": "empty"}

    answer = update(lab, path, status="registered", conclusion=7, presentedForm=[empty])

    assert answer.status == 400
    places = {"status", "conclusion", "presentedForm[0]"}
    assert answer.issue_expressions == {f"DiagnosticReport.{place}" for place in places}


@pytest.mark.parametrize("kind", ["Parameters", "Patient", None])
def test_another_resource_is_a_400(lab: Integrator, path: str, kind: str | None) -> None:
    body = {"status": "amended"} | ({"resourceType": kind} if kind else {})

    assert lab.patch(path, body).status == 400


def test_another_form_of_patch_is_a_415_that_names_ours(lab: Integrator, path: str) -> None:
    answer = lab.request("PATCH", path, b"[]", {"Content-Type": "application/xml-patch+xml"})

    assert answer.status == 415
    assert answer.headers["accept-patch"].split(", ") == list(FORMS)
    assert answer.issues[0]["diagnostics"].split(" or ")[:2] == [
        "the Content-Type of the body must be application/fhir+json",
        "application/fhir+xml",
    ]
    assert answer.issues[0]["diagnostics"].count("fhir+xml") == 1


def test_the_same_content_is_still_a_new_version(lab: Integrator, path: str) -> None:
    answers = [update(lab, path, status="amended") for _ in range(2)]

    assert [answer.headers["etag"] for answer in answers] == ['W/"2"', 'W/"3"']


def test_last_updated_rises_with_every_version(lab: Integrator, path: str) -> None:
    for _ in range(5):
        update(lab, path, status="amended")

    times = [
        lab.get(f"{path}/_history/{number}").json["meta"]["lastUpdated"] for number in range(1, 7)
    ]
    assert times == sorted(set(times))


def test_the_updated_report_is_returned_on_request(lab: Integrator, path: str) -> None:
    answer = update(lab, path, {"Prefer": "return=representation"}, status="amended")

    assert (answer.status, answer.json["status"]) == (200, "amended")
    assert answer.headers["preference-applied"] == "return=representation"


def test_remarks_on_an_update_are_returned_on_request(lab: Integrator, path: str) -> None:
    wrong = document(hash="00" * 32, contentType="text/plain")

    answer = update(lab, path, {"Prefer": "return=OperationOutcome"}, presentedForm=[wrong])

    assert (answer.status, answer.headers["etag"]) == (200, 'W/"2"')
    assert answer.headers["preference-applied"] == "return=OperationOutcome"
    assert answer.json["resourceType"] == "OperationOutcome"
    remarks = [(issue["severity"], issue.get("expression")) for issue in answer.issues]
    assert remarks == [
        ("information", None),
        ("information", ["DiagnosticReport.presentedForm[0].contentType"]),
        ("warning", ["DiagnosticReport.presentedForm[0].hash"]),
    ]


def test_remarks_on_an_update_may_be_in_xml(lab: Integrator, path: str) -> None:
    wanted = {"Prefer": "return=OperationOutcome", "Accept": "application/fhir+xml"}

    answer = update(lab, path, wanted, status="amended")

    assert answer.status == 200
    assert b'<OperationOutcome xmlns="http://hl7.org/fhir">' in answer.body
    assert b"DiagnosticReport was updated" in answer.body


def narrated(status: str) -> dict[str, Any]:
    div = '<div xmlns="http://www.w3.org/1999/xhtml">All is well</div>'
    return register_body(f"N-{status}", text={"status": status, "div": div})


@pytest.mark.parametrize("status", ["generated", "extensions"])
def test_a_narrative_made_from_the_data_is_dropped(lab: Integrator, status: str) -> None:
    path = lab.register(narrated(status)).headers["location"].removesuffix("/_history/1")

    update(lab, path, conclusion="Not so well")

    assert "text" not in lab.get(path).json


@pytest.mark.parametrize(
    "fields", [{"status": "amended"}, {"conclusion": "Within the reference ranges"}]
)
def test_a_narrative_that_an_update_does_not_contradict_stays(
    lab: Integrator, fields: dict[str, str]
) -> None:
    path = lab.register(narrated("generated")).headers["location"].removesuffix("/_history/1")
    before = lab.get(path).json["text"]

    assert lab.patch(path, {"resourceType": "DiagnosticReport", **fields}).status == 204

    assert lab.get(path).json["text"] == before


def test_a_report_with_a_narrative_that_people_wrote_can_be_withdrawn(lab: Integrator) -> None:
    path = lab.register(narrated("additional")).headers["location"].removesuffix("/_history/1")

    answer = update(lab, path, status="entered-in-error")

    assert answer.status == 204
    assert lab.get(path).json["text"]["status"] == "additional"


def test_a_narrative_that_says_more_than_the_data_stops_an_update(lab: Integrator) -> None:
    path = lab.register(narrated("additional")).headers["location"].removesuffix("/_history/1")

    answer = update(lab, path, conclusion="Not so well")

    assert (answer.status, answer.issue_expressions) == (422, {"DiagnosticReport.text"})


def test_a_withdrawn_report_can_be_read(lab: Integrator, path: str) -> None:
    update(lab, path, status="entered-in-error")

    assert lab.get(path).json["status"] == "entered-in-error"


@pytest.mark.parametrize("field", ["status", "conclusion"])
def test_extensions_without_their_value_are_a_400(lab: Integrator, path: str, field: str) -> None:
    extensions = {"extension": [{"url": "https://x.example", "valueString": "x"}]}

    answer = lab.patch(path, {"resourceType": "DiagnosticReport", f"_{field}": extensions})

    assert (answer.status, answer.issue_expressions) == (400, {f"DiagnosticReport.{field}"})


def test_the_names_of_refused_fields_are_in_the_words_too(lab: Integrator, path: str) -> None:
    answer = update(lab, path, code={"text": "x"})

    assert "code cannot be updated" in answer.issues[0]["diagnostics"]


def test_an_update_keeps_to_the_limit_of_a_resource(lab: Integrator, path: str) -> None:
    forms = [{"url": "https://x.example/d", "title": "x" * 1_000_000} for _ in range(9)]

    answer = update(lab, path, presentedForm=forms)

    assert (answer.status, answer.issues[0]["code"]) == (413, "too-costly")


def test_an_update_of_what_has_changed_since_a_moment_is_a_412(lab: Integrator, path: str) -> None:
    date = {"If-Unmodified-Since": "Sat, 01 Jan 2000 00:00:00 GMT"}

    answer = update(lab, path, date, conclusion="Lost")

    assert answer.status == 412
    assert "current version 1" in answer.json["issue"][0]["diagnostics"]


@pytest.mark.parametrize("moment", ["", "yesterday", "Sat, 01 Jan 2000 00:00:00 GMT"])
def test_with_if_match_a_moment_is_no_condition(lab: Integrator, path: str, moment: str) -> None:
    headers = {"If-Match": 'W/"1"', "If-Unmodified-Since": moment}

    assert update(lab, path, headers, conclusion="Kept").status == 204


@pytest.mark.parametrize(("tag", "status"), [("*", 412), ('"7", W/"1"', 412), ('"7"', 204)])
def test_what_the_client_has_already_is_not_updated(
    lab: Integrator, path: str, tag: str, status: int
) -> None:
    answer = update(lab, path, {"If-None-Match": tag}, conclusion="Once more")

    assert answer.status == status


def test_what_has_not_changed_since_it_was_read_is_updated(lab: Integrator, path: str) -> None:
    moment = lab.get(path).headers["last-modified"]

    assert update(lab, path, {"If-Unmodified-Since": moment}, conclusion="1").status == 204
    assert update(lab, path, {"If-Unmodified-Since": "never"}, conclusion="2").status == 204


def test_an_update_refuses_a_type_that_contradicts_its_reference(
    lab: Integrator, path: str
) -> None:
    author = {"reference": "Practitioner/7", "type": "Patient"}
    extension = [{"url": "https://lab.example/signed-by", "valueReference": author}]

    answer = update(lab, path, presentedForm=[document(PDF, extension=extension)])

    at = "DiagnosticReport.presentedForm[0].extension[0].value"
    assert (answer.status, answer.issue_expressions) == (400, {f"{at}.type"})


def test_a_stored_report_that_contradicts_itself_stays_open_to_updates(
    service: RunningService, lab: Integrator, path: str
) -> None:
    place, typed = b'"reference":"Patient/', b'"type":"Group","reference":"Patient/'
    store_again(service, lab, path, lambda body: body.replace(place, typed))
    assert lab.get(path).json["subject"]["type"] == "Group"

    assert update(lab, path, status="amended").status == 204


REVERSED = {"low": {"value": 2, "comparator": "<"}, "high": {"value": 1}}
BACKWARDS = {"start": "2026-11-20T12:00:00Z", "end": "2026-11-20T10:00:00Z"}


@pytest.mark.parametrize(
    "before",
    [
        {"effectivePeriod": BACKWARDS},
        {
            "contained": [
                {
                    "resourceType": "Specimen",
                    "id": "s",
                    "collection": {"collectedPeriod": BACKWARDS},
                }
            ],
            "specimen": [{"reference": "#s"}],
        },
        {"extension": [{"url": "https://lab.example/x", "valueQuantity": {"code": "mg"}}]},
        {"extension": [{"url": "x", "valueString": "x"}], "meta": {"profile": ["LAB"]}},
        {"conclusionCode": [{"id": "c", "text": "x"}, {"id": "c", "text": "y"}]},
        {"extension": [{"url": "https://lab.example/x", "valueRange": REVERSED}]},
        {"resultsInterpreter": [{"reference": "Practitioner/one two"}]},
    ],
    ids=["per-1", "per-1 contained", "qty-3", "uri", "id", "rng-2", "reference"],
)
def test_what_breaks_a_rule_since_before_stays_open_to_updates(
    service: RunningService, lab: Integrator, path: str, before: dict[str, Any]
) -> None:
    def breaking(body: bytes) -> bytes:
        stored = {**loads_stored(body), **before}
        del stored["effectiveDateTime"]
        return dumps(stored)

    store_again(service, lab, path, breaking)

    answer = update(lab, path, status="amended")

    assert answer.status == 204, answer.body


def test_what_is_wrong_since_before_is_refused_in_a_field_that_is_named(
    service: RunningService, lab: Integrator, path: str
) -> None:
    extension = [{"url": "https://lab.example/x"}]

    def breaking(body: bytes) -> bytes:
        stored = loads_stored(body)
        stored["presentedForm"][0]["extension"] = extension
        stored["effectivePeriod"] = BACKWARDS
        del stored["effectiveDateTime"]
        return dumps(stored)

    store_again(service, lab, path, breaking)

    again = update(lab, path, presentedForm=[document(extension=extension)])
    without = lab.request(
        "PATCH", path, {"status": None}, {"Content-Type": "application/merge-patch+json"}
    )

    at = "DiagnosticReport.presentedForm[0].extension[0]"
    assert (again.status, again.issue_expressions) == (400, {at})
    assert (without.status, without.issue_expressions) == (400, {"DiagnosticReport.status"})


def test_what_is_contained_since_before_stays_open_to_updates(
    service: RunningService, lab: Integrator
) -> None:
    specimen = {"resourceType": "Specimen", "id": "s", "receivedTime": "2024-02-29"}
    body = register_body("U-before", contained=[specimen], specimen=[{"reference": "#s"}])
    path = lab.register(body).headers["location"].partition("/_history")[0]
    store_again(service, lab, path, lambda body: body.replace(b"2024-02-29", b"2024-02-30"))

    assert update(lab, path.removeprefix(service.base_url), status="amended").status == 204
