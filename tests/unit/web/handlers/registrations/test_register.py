"""Registrations over HTTP: first and repeated ones, creates with conditions, and preferences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import Config
from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import SYSTEM, document, register_body, self_contained
from tests.metrics import Moves
from tests.unit.web.handlers.asking import REPORTS, named, path_of, running

LARGE = "x y " * 20_000
AMENDED = {"resourceType": "DiagnosticReport", "status": "amended"}


def create(lab: Integrator, value: str, query: str = "", **headers: str) -> Answer:
    return lab.request("POST", REPORTS + query, self_contained(value), named(headers))


def total(lab: Integrator, value: str) -> int:
    count: int = lab.get(f"{REPORTS}?identifier={SYSTEM}|{value}&_summary=count").json["total"]
    return count


# $register.


def test_a_registration_is_located_and_has_the_tag_of_its_version(
    lab: Integrator, value: str
) -> None:
    answer = lab.register(register_body(value))

    assert (answer.status, answer.headers["etag"]) == (201, 'W/"1"')
    assert answer.headers["location"].startswith(f"{lab.service.base_url}{REPORTS}/")
    assert answer.headers["location"].endswith("/_history/1")
    assert answer.headers["last-modified"].endswith("Z")
    assert "idempotent-replayed" not in answer.headers


@pytest.mark.parametrize("changes", [{}, {"conclusion": LARGE}], ids=["small", "large"])
def test_a_repetition_has_the_first_answer(
    lab: Integrator, value: str, changes: dict[str, Any]
) -> None:
    first, second = (lab.register(register_body(value, **changes)) for _ in range(2))

    assert (first.status, second.status, second.body) == (201, 201, first.body)
    assert second.headers["idempotent-replayed"] == "true"
    assert "idempotent-content" not in second.headers
    assert second.headers["location"] == first.headers["location"]


@pytest.mark.parametrize("size", ["Other", LARGE], ids=["small", "large"])
def test_other_content_has_the_first_answer_too(lab: Integrator, value: str, size: str) -> None:
    first = lab.register(register_body(value))
    second = lab.register(register_body(value, conclusion=size))

    assert (second.status, second.body) == (201, first.body)
    assert second.headers["idempotent-content"] == "different"
    assert total(lab, value) == 1


@pytest.mark.parametrize(("conclusion", "count"), [("One", 0), ("Two", 1)])
def test_other_content_is_counted_as_such(
    lab: Integrator, value: str, conclusion: str, count: int
) -> None:
    moves = Moves(running(lab))

    for said in ("One", conclusion):
        lab.register(register_body(value, conclusion=said))

    assert moves.by("other_content_total") == count


def test_the_answer_to_a_repetition_is_the_first_also_after_an_update(
    lab: Integrator, value: str
) -> None:
    first = lab.register(register_body(value))
    lab.patch(path_of(first), AMENDED)

    second = lab.register(register_body(value))

    assert (second.body, second.headers["etag"]) == (first.body, 'W/"1"')


def test_the_same_identifier_is_another_report_of_another_tenant(
    service: RunningService, lab: Integrator, value: str
) -> None:
    first = lab.register(register_body(value))
    second = service.integrator("Other").register(register_body(value))

    assert "idempotent-replayed" not in second.headers
    assert path_of(first) != path_of(second)


def test_a_refused_registration_stores_nothing(lab: Integrator, value: str) -> None:
    answer = lab.register(register_body(value, status="nonsense"))

    assert (answer.status, total(lab, value)) == (400, 0)


@pytest.mark.parametrize("size", [10, 200_000])
def test_a_document_of_any_size_is_registered(lab: Integrator, value: str, size: int) -> None:
    form = document(b"%PDF-" + b"x" * size)

    answer = lab.register(register_body(value, presentedForm=[form]))

    assert lab.get(path_of(answer)).json["presentedForm"][0]["data"] == form["data"]


def test_registrations_are_counted_as_made_or_repeated(lab: Integrator, value: str) -> None:
    moves = Moves(running(lab))

    for _ in range(3):
        lab.register(register_body(value))

    assert [
        moves.by("registrations_total", type="DiagnosticReport", outcome=outcome)
        for outcome in ("created", "repeated")
    ] == [1, 2]


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose clients may register twice a day."""
    config = Config(quotas=QuotasConfig(client_registrations_per_day=2))
    with RunningService(tmp_path_factory.mktemp("limited"), config=config) as service:
        yield service


def test_repetitions_count_for_no_quota_of_registrations(limited: RunningService) -> None:
    lab, values = limited.integrator(), [uuid4().hex for _ in range(3)]

    found = [lab.register(register_body(values[place])).status for place in (0, 0, 0, 1, 2)]

    assert found == [201, 201, 201, 201, 429]


# Create.


def test_a_create_is_answered_with_the_report(lab: Integrator, value: str) -> None:
    answer = create(lab, value)

    assert (answer.status, answer.json["resourceType"]) == (201, "DiagnosticReport")
    assert "preference-applied" not in answer.headers


def test_a_repeated_create_has_the_first_version(lab: Integrator, value: str) -> None:
    first = create(lab, value)
    lab.patch(path_of(first), AMENDED)

    second = create(lab, value)

    assert (second.status, second.json) == (201, first.json)
    assert second.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [("minimal", None), ("OperationOutcome", "OperationOutcome"), ("representation", "Diag")],
)
def test_a_create_is_answered_as_its_client_prefers(
    lab: Integrator, value: str, wanted: str, kind: str | None
) -> None:
    answer = create(lab, value, Prefer=f"return={wanted}")

    assert (answer.status, answer.headers["preference-applied"]) == (201, f"return={wanted}")
    assert answer.body == b"" if kind is None else answer.json["resourceType"].startswith(kind)


def test_a_condition_in_the_url_counts_like_one_in_the_header(lab: Integrator, value: str) -> None:
    create(lab, value)

    answer = create(lab, uuid4().hex, f"?identifier={SYSTEM}|{value}")

    assert answer.status == 200


@pytest.mark.parametrize("query", ["?_format=json", "?_pretty=true"])
def test_what_is_about_the_answer_is_no_condition(lab: Integrator, value: str, query: str) -> None:
    create(lab, uuid4().hex)

    assert create(lab, value, query).status == 201


def test_a_create_whose_condition_is_not_met_creates(lab: Integrator, value: str) -> None:
    answer = create(lab, value, If_None_Exist=f"identifier={SYSTEM}|{value}")

    assert (answer.status, total(lab, value)) == (201, 1)


def test_a_condition_finds_nothing_of_another_tenant(
    service: RunningService, lab: Integrator, value: str
) -> None:
    create(service.integrator("Other"), value)

    assert create(lab, value, If_None_Exist=f"identifier={SYSTEM}|{value}").status == 201


@pytest.mark.parametrize(("scope", "status"), [("c", 403), ("cs", 201)])
def test_a_condition_needs_the_right_to_search(
    strict_service: RunningService, value: str, scope: str, status: int
) -> None:
    lab = strict_service.integrator(scopes=(f"system/DiagnosticReport.{scope}",))

    answer = create(lab, value, If_None_Exist=f"identifier={SYSTEM}|{value}")

    assert answer.status == status
    assert create(lab, uuid4().hex).status == 201


def test_a_condition_that_several_meet_is_refused(lab: Integrator, value: str) -> None:
    for _ in range(2):
        create(lab, uuid4().hex)

    answer = create(lab, value, If_None_Exist="status=final")

    assert (answer.status, answer.problems) == (412, ["several-matches"])


def test_the_body_of_a_met_condition_is_not_read(lab: Integrator, value: str) -> None:
    create(lab, value)
    condition = {"If-None-Exist": f"identifier={SYSTEM}|{value}"}

    assert lab.request("POST", REPORTS, dumps({"a": 1}), condition).status == 200
