"""Large documents are cut out of a body before it is parsed; the rest is prepared (ADR 32).

``whole`` counts the bodies that are computed as a whole instead.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import Answer, Integrator
from fhirpub.web.handlers import body as body_handler
from fhirpub.web.handlers.body import BodyHandler
from tests.bodies import document, patient, register_body, self_contained

BASE = "/fhir/r4/DiagnosticReport"
LARGE = bytes(range(256)) * 400
BASE64 = base64.b64encode(LARGE).decode()
ATTACHMENT = {"contentType": "image/png", "data": BASE64}
COPY = {"url": "urn:x:copy", "valueAttachment": ATTACHMENT}


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the requests whose body was computed as a whole."""
    computed: list[str] = []
    compute = BodyHandler.compute_chunks

    async def count(self: BodyHandler, *arguments: Any, **options: Any) -> Any:
        computed.append(self.request.path)
        return await compute(self, *arguments, **options)

    monkeypatch.setattr(BodyHandler, "compute_chunks", count)
    return computed


def large(value: str, **changes: Any) -> dict[str, Any]:
    return register_body(value, presentedForm=[document(LARGE)], **changes)


def address_in(answer: Answer) -> str:
    """Return the path of the resource that an answer names."""
    return urlsplit(answer.headers["location"]).path.partition("/_history")[0]


def stored_data(lab: Integrator, answer: Answer) -> Any:
    """Return the base64 of the report that an answer names, as it is read."""
    report = lab.get(address_in(answer)).json
    return report["presentedForm"][0].get("data")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{BASE}/$register", large("R-1")),
        (BASE, self_contained("R-1", presentedForm=[document(LARGE)])),
    ],
    ids=["$register", "create"],
)
def test_a_registration_with_a_large_document_is_prepared_without_it(
    lab: Integrator, whole: list[str], path: str, body: dict[str, Any]
) -> None:
    answer = lab.request("POST", path, dumps(body))

    assert answer.status == 201
    assert whole == []
    assert stored_data(lab, answer) == BASE64


@pytest.mark.parametrize(
    "make", [large, lambda value: self_contained(value, presentedForm=[document(LARGE)])]
)
def test_the_content_is_the_same_both_ways(
    lab: Integrator,
    whole: list[str],
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[str], dict[str, Any]],
) -> None:
    body = make("R-1")
    path = f"{BASE}/$register" if body["resourceType"] == "Parameters" else BASE
    lab.request("POST", path, dumps(body))
    monkeypatch.setattr(body_handler, "cut_documents", lambda _body, max_rest: None)

    again = lab.request("POST", path, dumps(body))

    assert whole == [path]
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-content" not in again.headers


def test_a_revision_with_a_large_document_is_prepared_without_it(
    lab: Integrator, whole: list[str]
) -> None:
    first = lab.register(register_body("R-1"))

    revised = lab.request(
        "POST",
        f"{address_in(first)}/$revise",
        dumps(large("R-1", status="corrected")),
        {"If-Match": first.headers["etag"]},
    )

    assert revised.status == 200
    assert [path for path in whole if "revise" in path] == []
    assert stored_data(lab, revised) == BASE64


@pytest.mark.parametrize(
    "changes",
    [
        {"extension": [COPY]},
        {"extension": [{"url": "urn:x:text", "valueString": "long " * 20_000}]},
        {"extension": [{"url": "urn:x:note", "valueInteger": 1}] * 1_000},
    ],
    ids=["no document of the resource", "other large texts", "many values"],
)
def test_what_is_not_small_without_its_documents_is_computed_as_a_whole(
    lab: Integrator, whole: list[str], changes: dict[str, Any]
) -> None:
    answer = lab.register(large("R-1", **changes))

    assert answer.status == 201
    assert len(whole) == 1
    assert stored_data(lab, answer) == BASE64
    report = lab.get(address_in(answer)).json
    assert report["extension"] == changes["extension"]


def test_a_photo_of_a_patient_is_stored_as_it_came(lab: Integrator, whole: list[str]) -> None:
    body = large("R-1")
    body["parameter"][0]["resource"] = patient(photo=[ATTACHMENT])

    answer = lab.register(body)

    assert answer.status == 201
    assert len(whole) == 1


def test_a_refusal_is_that_of_the_whole_body(
    lab: Integrator, whole: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = large("R-1", status="complete", issued="yesterday")

    refused = lab.register(wrong)

    monkeypatch.setattr(body_handler, "cut_documents", lambda _body, max_rest: None)
    assert refused.status == 400
    assert refused.issues == lab.register(wrong).issues
    assert len(whole) == 2


def patch(lab: Integrator, body: dict[str, Any], media_type: str = "fhir+json") -> Answer:
    """Register a small report and change it; return the answer to the change."""
    first = lab.register(register_body("R-1"))
    headers = {"Content-Type": f"application/{media_type}"}
    return lab.request("PATCH", address_in(first), dumps(body), headers)


def partial_report(**fields: Any) -> dict[str, Any]:
    return {"resourceType": "DiagnosticReport", **fields}


@pytest.mark.parametrize("media_type", ["fhir+json", "merge-patch+json"])
def test_an_update_with_a_large_document_is_prepared_without_it(
    lab: Integrator, whole: list[str], media_type: str
) -> None:
    answer = patch(lab, partial_report(presentedForm=[document(LARGE)]), media_type)

    assert answer.status == 204
    assert [path for path in whole if "register" not in path] == []
    assert stored_data(lab, answer) == BASE64


@pytest.mark.parametrize(
    "fields",
    [
        {"presentedForm": [document(LARGE, extension=[COPY])]},
        {"presentedForm": [document(LARGE)], "conclusion": "long " * 20_000},
    ],
    ids=["no document of the resource", "other large texts"],
)
def test_an_update_that_is_not_small_without_its_documents_is_computed_as_a_whole(
    lab: Integrator, whole: list[str], fields: dict[str, Any]
) -> None:
    answer = patch(lab, partial_report(**fields))

    assert answer.status == 204
    assert len([path for path in whole if "register" not in path]) == 1
    report = lab.get(address_in(answer)).json
    assert {name: report[name] for name in fields} == fields


def test_a_json_patch_with_a_large_document_is_computed_as_a_whole(
    lab: Integrator, whole: list[str]
) -> None:
    first = lab.register(register_body("R-1"))
    operation = {"op": "add", "path": "/presentedForm/0/data", "value": BASE64}
    headers = {"Content-Type": "application/json-patch+json"}

    answer = lab.request("PATCH", address_in(first), dumps([operation]), headers)

    assert answer.status == 204
    assert len([path for path in whole if "register" not in path]) == 1
    assert stored_data(lab, answer) == BASE64


def test_the_refusal_of_an_update_is_that_of_the_whole_body(
    lab: Integrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = partial_report(
        status="complete", issued="yesterday", presentedForm=[document(LARGE, size=3)]
    )

    refused = patch(lab, wrong)

    monkeypatch.setattr(body_handler, "cut_documents", lambda _body, max_rest: None)
    assert refused.status == 400
    assert refused.issues == patch(lab, wrong).issues
