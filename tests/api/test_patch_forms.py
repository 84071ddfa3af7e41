"""JSON Patch and merge patch follow the same rules as FHIR's own form (D-105)."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from fhirpub.testing.service import Answer, Integrator
from tests.bodies import PDF, document, register_body

MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"


@pytest.fixture
def path(lab: Integrator) -> str:
    """The path of a fresh report."""
    location = lab.register(register_body("P-1")).headers["location"]
    return location.removeprefix(lab.service.base_url).removesuffix("/_history/1")


def merge(lab: Integrator, path: str, **fields: Any) -> Answer:
    return lab.request("PATCH", path, fields, {"Content-Type": MERGE})


def patch(lab: Integrator, path: str, *operations: Any) -> Answer:
    return lab.request("PATCH", path, list(operations), {"Content-Type": JSON_PATCH})


def replace(field: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": f"/{field}", "value": value}


def codes(answer: Answer) -> set[str]:
    return {issue["code"] for issue in answer.issues}


def data_of(lab: Integrator, path: str) -> list[bytes]:
    return [
        base64.b64decode(attachment["data"]) for attachment in lab.get(path).json["presentedForm"]
    ]


def test_a_merge_patch_replaces_the_fields_it_names(lab: Integrator, path: str) -> None:
    before = lab.get(path).json

    answer = merge(lab, path, status="amended", conclusion="Corrected")
    after = lab.get(path).json

    changed = {name for name in after if after[name] != before.get(name)}
    assert (answer.status, answer.headers["etag"]) == (204, 'W/"2"')
    assert changed == {"meta", "status", "conclusion"}


@pytest.mark.parametrize(
    ("sent_as", "body", "words"),
    [
        ("application/fhir+json", [replace("status", "amended")], f"Content-Type {JSON_PATCH}"),
        ("application/json", [replace("status", "amended")], f"Content-Type {JSON_PATCH}"),
        (MERGE, [replace("status", "amended")], f"Content-Type {JSON_PATCH}"),
        ("application/fhir+json", {"status": "amended"}, f"Content-Type {MERGE}"),
        (JSON_PATCH, replace("status", "amended"), "an array, also of one operation"),
        (JSON_PATCH, {"status": "amended"}, f"Content-Type {MERGE}"),
        (JSON_PATCH, {"resourceType": "DiagnosticReport"}, "application/fhir+json"),
        (MERGE, {"resourceType": "Patient"}, "and is a Patient"),
        ("application/fhir+json", {"resourceType": "Parameters"}, "FHIRPath Patch"),
        (MERGE, {"resourceType": "Parameters"}, "FHIRPath Patch is not supported"),
        (JSON_PATCH, {"resourceType": "Parameters"}, "FHIRPath Patch is not supported"),
    ],
)
def test_a_patch_of_another_form_is_named_with_its_type(
    lab: Integrator, path: str, sent_as: str, body: Any, words: str
) -> None:
    refused = lab.request("PATCH", path, body, {"Content-Type": sent_as})

    assert (refused.status, refused.problems) == (400, ["patch-of-other-form"])
    assert words in refused.issues[0]["diagnostics"]


def test_a_merge_patch_takes_away_what_is_null(lab: Integrator, path: str) -> None:
    merge(lab, path, conclusion="Corrected")

    answer = merge(lab, path, conclusion=None)

    assert answer.status == 204
    assert "conclusion" not in lab.get(path).json


@pytest.mark.parametrize("field", ["status", "presentedForm"])
def test_what_is_required_cannot_be_taken_away(lab: Integrator, path: str, field: str) -> None:
    answers = [
        merge(lab, path, **{field: None}),
        patch(lab, path, {"op": "remove", "path": f"/{field}"}),
    ]

    assert [answer.status for answer in answers] == [400, 400]
    assert {at for answer in answers for at in answer.issue_expressions} == {
        f"DiagnosticReport.{field}"
    }


def test_a_json_patch_runs_its_operations_in_order(lab: Integrator, path: str) -> None:
    answer = patch(
        lab,
        path,
        {"op": "test", "path": "/status", "value": "final"},
        replace("status", "amended"),
        {"op": "add", "path": "/conclusion", "value": "First"},
        replace("conclusion", "Second"),
    )
    report = lab.get(path).json

    assert answer.status == 204
    assert (report["status"], report["conclusion"]) == ("amended", "Second")


def test_a_json_patch_can_add_a_document_to_those_that_stay(lab: Integrator, path: str) -> None:
    other = PDF + b"other"

    answer = patch(lab, path, {"op": "add", "path": "/presentedForm/-", "value": document(other)})

    assert answer.status == 204
    assert data_of(lab, path) == [PDF, other]


def test_a_json_patch_can_change_a_title_and_keep_the_document(lab: Integrator, path: str) -> None:
    answer = patch(lab, path, {"op": "add", "path": "/presentedForm/0/title", "value": "New"})

    assert answer.status == 204
    assert lab.get(path).json["presentedForm"][0]["title"] == "New"
    assert data_of(lab, path) == [PDF]


def test_a_json_patch_can_put_documents_in_another_order(lab: Integrator, path: str) -> None:
    other = PDF + b"other"
    patch(lab, path, {"op": "add", "path": "/presentedForm/-", "value": document(other)})

    patch(lab, path, {"op": "move", "from": "/presentedForm/1", "path": "/presentedForm/0"})

    assert data_of(lab, path) == [other, PDF]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "copy", "from": "/presentedForm/0/data", "path": "/conclusion"},
        {"op": "copy", "from": "/presentedForm/0/data", "path": "/presentedForm/0/title"},
    ],
)
def test_the_data_of_a_document_cannot_go_anywhere_else(
    lab: Integrator, path: str, operation: dict[str, str]
) -> None:
    answer = patch(lab, path, operation)

    assert (answer.status, codes(answer)) == (422, {"business-rule"})


def test_one_document_may_stand_there_twice_with_its_hash_written_otherwise(
    lab: Integrator,
) -> None:
    twice = [document(), document(hash=hashlib.sha256(PDF).hexdigest().upper())]
    location = lab.register(register_body("P-3", presentedForm=twice)).headers["location"]
    path = location.removeprefix(lab.service.base_url).removesuffix("/_history/1")

    assert patch(lab, path, replace("status", "amended")).status == 204


@pytest.mark.parametrize(
    "other",
    [
        base64.b64encode(hashlib.sha1(b"other", usedforsecurity=False).digest()).decode(),
        ["a list"],
        {},
        None,
    ],
)
def test_the_hash_of_a_document_that_stays_cannot_be_changed(
    lab: Integrator, path: str, other: Any
) -> None:
    answer = patch(lab, path, replace("presentedForm/0/hash", other))

    assert (answer.status, answer.issue_expressions) == (
        422,
        {"DiagnosticReport.presentedForm[0].hash"},
    )


@pytest.mark.parametrize("kind", [MERGE, JSON_PATCH])
def test_other_fields_are_refused_all_at_once(lab: Integrator, path: str, kind: str) -> None:
    fields = {"code": {"text": "x"}, "id": "x", "status": "amended"}
    body = fields if kind == MERGE else [replace(name, field) for name, field in fields.items()]

    answer = lab.request("PATCH", path, body, {"Content-Type": kind})

    assert answer.status == 422
    assert answer.issue_expressions == {"DiagnosticReport.code", "DiagnosticReport.id"}


def test_a_move_out_of_another_field_is_refused(lab: Integrator, path: str) -> None:
    answer = patch(lab, path, {"op": "move", "from": "/code/text", "path": "/conclusion"})

    assert (answer.status, answer.issue_expressions) == (422, {"DiagnosticReport.code"})


def test_the_whole_resource_cannot_be_replaced(lab: Integrator, path: str) -> None:
    answer = patch(lab, path, {"op": "replace", "path": "", "value": {}})

    assert answer.status == 422


def test_a_test_that_fails_is_a_422_that_names_the_operation(lab: Integrator, path: str) -> None:
    answer = patch(
        lab,
        path,
        replace("status", "amended"),
        {"op": "test", "path": "/meta/versionId", "value": "7"},
    )

    assert (answer.status, codes(answer)) == (422, {"business-rule"})
    assert "operation 2" in answer.body.decode()
    assert lab.get(path).headers["etag"] == 'W/"1"'


def test_a_test_holds_for_the_same_number_however_the_body_is_written(lab: Integrator) -> None:
    extension = {"url": "https://x.example", "valueDecimal": 13.2}
    location = lab.register(register_body("P-2", extension=[extension])).headers["location"]
    path = location.removeprefix(lab.service.base_url).removesuffix("/_history/1")
    body = (
        b'[{"op": "test", "path": "/extension/0/valueDecimal", "value": 13.20},'
        b' {"op": "replace", "path": "/status", "value": "amended"}]'
    )

    answer = lab.request("PATCH", path, body, {"Content-Type": JSON_PATCH})

    assert answer.status == 204
    assert lab.get(path).json["extension"] == [extension]


def test_a_test_alone_that_fails_is_a_422_and_one_that_holds_a_400(
    lab: Integrator, path: str
) -> None:
    tested = {"op": "test", "path": "/status"}

    assert patch(lab, path, {**tested, "value": "amended"}).status == 422
    assert patch(lab, path, {**tested, "value": "final"}).status == 400


@pytest.mark.parametrize("kind", ["application/fhir+json", MERGE])
def test_fields_that_are_too_much_together_are_a_400(lab: Integrator, kind: str) -> None:
    extension = {"extension": [{"url": "https://x.example", "valueBoolean": True}] * 25_000}
    location = lab.register(register_body("P-2", _conclusion=extension)).headers["location"]
    path = location.removeprefix(lab.service.base_url).removesuffix("/_history/1")
    body = {"resourceType": "DiagnosticReport", "status": "amended", "_status": extension}

    answer = lab.request("PATCH", path, body, {"Content-Type": kind})

    assert (answer.status, "too many values" in answer.body.decode()) == (400, True)
    assert lab.get(path).headers["etag"] == 'W/"1"'


def test_a_path_to_nothing_is_a_422_that_names_the_operation(lab: Integrator, path: str) -> None:
    answer = patch(lab, path, {"op": "remove", "path": "/presentedForm/7"})

    assert answer.status == 422
    assert "operation 1" in answer.body.decode()


@pytest.mark.parametrize(
    "operations",
    [
        {"op": "add"},
        ["status"],
        [{"op": "add", "path": "/status"}],
        [{"op": "add", "value": "x"}],
        [{"op": "move", "path": "/status"}],
        [{"op": "add", "path": "status", "value": "x"}],
        [{"op": "add", "path": 1, "value": "x"}],
        [{"op": "merge", "path": "/status", "value": "x"}],
        [{"op": ["add"], "path": "/status", "value": "x"}],
        [],
    ],
)
def test_what_is_no_json_patch_is_a_400(lab: Integrator, path: str, operations: Any) -> None:
    answer = lab.request("PATCH", path, operations, {"Content-Type": JSON_PATCH})

    assert (answer.status, codes(answer)) == (400, {"exception"})


def test_all_malformed_operations_are_named(lab: Integrator, path: str) -> None:
    answer = patch(lab, path, {"op": "add"}, replace("status", "final"), {"op": "jump"})

    assert answer.status == 400
    assert "operation 1 " in answer.body.decode()
    assert "operation 3 " in answer.body.decode()


@pytest.mark.parametrize("body", [[], "final", {"resourceType": "Patient", "status": "final"}, {}])
def test_what_is_no_merge_patch_is_a_400(lab: Integrator, path: str, body: Any) -> None:
    answer = lab.request("PATCH", path, body, {"Content-Type": MERGE})

    assert answer.status == 400


def test_copies_of_copies_are_refused_before_they_fill_the_memory(
    lab: Integrator, path: str
) -> None:
    double = {"op": "copy", "from": "/presentedForm", "path": "/presentedForm/-"}

    answer = patch(lab, path, *[double] * 60)

    assert answer.status == 413


def test_many_small_copies_are_refused_as_one_large_one(lab: Integrator) -> None:
    location = lab.register(register_body("P-1", conclusion="c" * 20_000)).headers["location"]
    path = location.removeprefix(lab.service.base_url).removesuffix("/_history/1")
    copies = [
        {"op": "copy", "from": "/conclusion", "path": f"/presentedForm/{number}"}
        for number in range(10)
    ]

    answer = patch(lab, path, *copies)

    assert answer.status == 413


def test_what_is_nested_too_deep_is_a_400(lab: Integrator, path: str) -> None:
    deeper = [
        {"op": "add", "path": "/presentedForm" + "/0" * depth, "value": [[]]}
        for depth in range(1, 900)
    ]

    answer = patch(lab, path, *deeper)

    assert answer.status == 400


@pytest.mark.parametrize("kind", [MERGE, JSON_PATCH])
def test_a_stale_tag_is_a_412_in_every_form(lab: Integrator, path: str, kind: str) -> None:
    answer = lab.request("PATCH", path, b"{", {"Content-Type": kind, "If-Match": 'W/"9"'})

    assert answer.status == 412


def test_a_patch_in_another_encoding_is_a_415(lab: Integrator, path: str) -> None:
    kind = f"{JSON_PATCH}; charset=utf-16"

    answer = lab.request("PATCH", path, [replace("status", "amended")], {"Content-Type": kind})

    assert answer.status == 415
