"""Bodies that are prepared without their documents, or again with a patient that is held."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from fhirpub.testing.service import Answer, Integrator
from tests.bodies import document, register_body
from tests.panels import panel, result
from tests.unit.web.handlers.asking import REPORTS, path_of
from tests.unit.web.handlers.patients.test_held import UNKNOWN, refer, registered
from tests.unit.web.handlers.registrations.test_revise import revise

LARGE = document(b"%PDF-" + b"x" * 200_000)
TEXT = {"conclusion": "x y " * 20_000}
SIZES: list[dict[str, Any]] = [{}, TEXT, {"presentedForm": [LARGE]}]
NAMES = ["small", "a long text", "a large document"]


def places(answer: Answer) -> list[str]:
    return [place for issue in answer.issues for place in issue.get("expression", [])]


@pytest.mark.parametrize("changes", SIZES, ids=NAMES)
def test_a_body_of_any_size_may_refer_to_a_patient_that_is_held(
    lab: Integrator, changes: dict[str, Any]
) -> None:
    reference = registered(lab)

    answer = refer(lab, reference, **changes)

    report = lab.get(path_of(answer)).json
    assert (answer.status, report["subject"]["reference"]) == (201, reference)


@pytest.mark.parametrize("changes", SIZES, ids=NAMES)
def test_a_body_of_any_size_with_an_unknown_patient_names_what_is_missing(
    lab: Integrator, changes: dict[str, Any]
) -> None:
    answer = refer(lab, UNKNOWN, **changes)

    assert (answer.status, answer.problems) == (400, ["entry-missing", "reference-unresolved"])


@pytest.mark.parametrize("changes", SIZES, ids=NAMES)
def test_what_is_wrong_is_named_at_its_place_in_the_whole_body(
    lab: Integrator, changes: dict[str, Any]
) -> None:
    body = register_body(uuid4().hex, **changes, status="nonsense")

    answer = lab.register(body)

    (place,) = places(answer)
    assert answer.status == 400
    assert place.startswith("Parameters.parameter[")
    assert place.endswith(".resource.status")


def test_a_large_document_is_stored_as_it_was_sent(lab: Integrator) -> None:
    path = path_of(lab.register(register_body(uuid4().hex, presentedForm=[LARGE])))

    (form,) = lab.get(path).json["presentedForm"]
    assert (form["data"], form["hash"]) == (LARGE["data"], LARGE["hash"])


def test_a_revision_may_bring_a_large_document(lab: Integrator, value: str) -> None:
    path = path_of(lab.register(panel(value, result("r1", 1.0))))

    answer = revise(lab, path, panel(value, result("r1", 1.0), presentedForm=[LARGE]))

    (form,) = lab.get(path).json["presentedForm"]
    assert (answer.status, form["data"]) == (200, LARGE["data"])


def test_a_repetition_of_a_large_body_is_one(lab: Integrator, value: str) -> None:
    body = register_body(value, presentedForm=[LARGE])
    first, second = (lab.request("POST", f"{REPORTS}/$register", body) for _ in range(2))

    assert (first.status, second.status) == (201, 201)
    assert second.headers["idempotent-replayed"] == "true"
