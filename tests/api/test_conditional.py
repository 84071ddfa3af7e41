"""Conditional interactions: create if no report matches, update the one that matches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.settings import Config, LimitsConfig
from fhirpub.storage.contract import MAX_PAGE_BYTES
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import SYSTEM, register_body, self_contained

BASE = "/fhir/r4/DiagnosticReport"


def create(
    lab: Integrator, value: str, condition: str = "", *, query: str = "", **headers: str
) -> Answer:
    given = {"If-None-Exist": condition} if condition else {}
    return lab.request("POST", f"{BASE}{query}", self_contained(value), {**given, **headers})


def update(lab: Integrator, query: str, **headers: str) -> Answer:
    body = {"resourceType": "DiagnosticReport", "status": "amended"}
    return lab.request("PATCH", f"{BASE}?{query}", body, headers)


def id_of(answer: Answer) -> str:
    return answer.headers["location"].split("/")[-3]


def test_create_makes_what_is_not_there(lab: Integrator) -> None:
    answer = create(lab, "C-1", f"identifier={SYSTEM}|C-1")

    assert answer.status == 201


@pytest.mark.parametrize("form", ["{}", "?{}", "DiagnosticReport?{}"])
def test_create_answers_with_what_is_there(lab: Integrator, form: str) -> None:
    first = create(lab, "C-2")
    update(lab, f"identifier={SYSTEM}|C-2")

    answer = create(lab, "C-3", form.format(f"identifier={SYSTEM}|C-2"))

    assert (answer.status, id_of(answer)) == (200, id_of(first))
    assert (answer.json["status"], answer.headers["etag"]) == ("amended", 'W/"2"')
    assert lab.get(f"{BASE}?identifier={SYSTEM}|C-3").json["total"] == 0


def test_create_spares_the_body_of_what_is_there(lab: Integrator) -> None:
    create(lab, "C-19")

    answer = create(lab, "C-19", f"identifier={SYSTEM}|C-19", Prefer="return=minimal")

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["preference-applied"] == "return=minimal"


@pytest.mark.parametrize(("condition", "status"), [("né", 200), ("n%C3%A9", 200), ("n%E9", 400)])
def test_a_condition_in_the_header_is_read_as_one_in_the_url(
    lab: Integrator, condition: str, status: int
) -> None:
    create(lab, "né")

    header = f"identifier={SYSTEM}|{condition}".encode().decode("latin-1")

    assert create(lab, "C-22", header).status == status


def test_of_racing_updates_on_one_condition_that_they_end_one_succeeds(lab: Integrator) -> None:
    condition = f"identifier={SYSTEM}|C-21&status=preliminary"
    preliminary = self_contained("C-21", status="preliminary")
    assert lab.request("POST", BASE, preliminary).status == 201

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _number: update(lab, condition).status, range(8)))

    assert sorted(made) == [204, *[404] * 7]


@pytest.mark.parametrize("condition", ["", f"identifier={SYSTEM}|C-20"])
def test_create_echoes_the_wish_for_the_whole(lab: Integrator, condition: str) -> None:
    create(lab, "C-20")

    answer = create(lab, "C-20", condition, Prefer="return=representation")

    assert answer.headers["preference-applied"] == "return=representation"
    assert answer.json["resourceType"] == "DiagnosticReport"


def test_create_takes_the_condition_in_the_url_as_well(lab: Integrator) -> None:
    first = create(lab, "C-11")

    answer = create(lab, "C-12", query=f"?identifier={SYSTEM}%7CC-11&_format=json")

    assert (answer.status, id_of(answer)) == (200, id_of(first))


def test_a_question_mark_in_a_value_begins_no_condition(lab: Integrator) -> None:
    create(lab, "C-16")

    answer = create(lab, "C-17", f"identifier=https://lab.example/?identifier={SYSTEM}|C-16")

    assert answer.status == 201


def test_conditions_in_both_places_must_both_hold(lab: Integrator) -> None:
    create(lab, "C-13")

    answer = create(lab, "C-14", f"identifier={SYSTEM}|C-13", query="?status=amended")

    assert answer.status == 201


@pytest.mark.parametrize(
    ("query", "status"),
    [("?_format=json&_pretty=true", 201), ("?nonsense=1", 400), ("?_count=1", 400)],
)
def test_what_only_shapes_the_answer_is_no_condition(
    lab: Integrator, query: str, status: int
) -> None:
    assert create(lab, "C-15", query=query).status == status


def test_create_does_not_validate_a_body_that_it_does_not_need(lab: Integrator) -> None:
    create(lab, "C-4")

    answer = lab.request("POST", BASE, b"{", {"If-None-Exist": f"identifier={SYSTEM}|C-4"})

    assert answer.status == 200


def test_create_under_a_taken_identifier_is_a_200_if_there_was_a_condition(
    lab: Integrator,
) -> None:
    create(lab, "C-5")

    answer = create(lab, "C-5", f"identifier={SYSTEM}|C-no-such")

    assert answer.status == 200


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        (f"identifier={SYSTEM}|", 412),
        ("identifier=", 400),
        ("nonsense=1", 400),
        ("nonsense", 400),
        ("_count=3", 400),
        ("identifier=&status=final", 400),
    ],
)
def test_a_condition_must_mean_one_or_none(lab: Integrator, condition: str, status: int) -> None:
    create(lab, "C-6")
    create(lab, "C-7")

    assert create(lab, "C-8", condition).status == status
    assert lab.get(f"{BASE}?identifier={SYSTEM}|C-8").json["total"] == 0


def test_a_condition_has_no_effect_on_a_registration(lab: Integrator) -> None:
    lab.register(register_body("C-9"))

    answer = lab.register(register_body("C-10"), If_None_Exist=f"identifier={SYSTEM}|C-9")

    assert answer.status == 201
    assert lab.get(f"{BASE}?identifier={SYSTEM}|C-10").json["total"] == 1


def test_the_one_that_matches_is_updated(lab: Integrator) -> None:
    first = create(lab, "U-1")

    answer = update(lab, f"identifier={SYSTEM}|U-1")

    assert (answer.status, id_of(answer), answer.headers["etag"]) == (204, id_of(first), 'W/"2"')


def test_an_update_under_a_condition_heeds_the_version_too(lab: Integrator) -> None:
    create(lab, "U-2")

    answer = update(lab, f"identifier={SYSTEM}|U-2", **{"If-Match": 'W/"7"'})

    assert answer.status == 412


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        (f"identifier={SYSTEM}|U-no-such", 404, "not-found"),
        (f"identifier={SYSTEM}|", 412, "multiple-matches"),
        ("nonsense=1", 400, "not-supported"),
        ("", 400, "invalid"),
        ("identifier=&status=registered", 400, "invalid"),
    ],
)
def test_an_update_needs_one_match(lab: Integrator, query: str, status: int, code: str) -> None:
    create(lab, "U-3")
    create(lab, "U-4")

    answer = update(lab, query)

    assert (answer.status, answer.issues[0]["code"]) == (status, code)


def test_what_is_no_name_of_a_parameter_is_not_shown(lab: Integrator) -> None:
    answer = update(lab, "Ana%20L=1&foo:exact=1&status:not=")

    assert answer.issue_expressions == {"foo", "status"}
    assert update(lab, "Ana%20L=1&foo:exact=1").issue_expressions == {"foo"}


def test_all_that_is_wrong_with_a_condition_is_reported_at_once(lab: Integrator) -> None:
    answer = create(lab, "C-18", "nonsense=1&date=x&status=")

    assert answer.status == 400
    assert answer.issue_expressions == {"nonsense", "date", "status"}


def test_another_tenants_resource_matches_nothing(
    service: RunningService, lab: Integrator
) -> None:
    create(service.integrator(), "U-5")

    assert update(lab, f"identifier={SYSTEM}|U-5").status == 404
    assert create(lab, "U-5", f"identifier={SYSTEM}|U-5").status == 201


def test_what_is_declared_is_so(lab: Integrator) -> None:
    statement: dict[str, Any] = lab.get("/fhir/r4/metadata").json
    (declared,) = [
        resource_entry
        for resource_entry in statement["rest"][0]["resource"]
        if resource_entry["type"] == "DiagnosticReport"
    ]

    assert declared["conditionalCreate"] is True


def test_one_of_several_is_not_updated_however_large_they_are(tmp_path: Path) -> None:
    limits = LimitsConfig(resource_bytes=2 * MAX_PAGE_BYTES)
    with RunningService(tmp_path, config=replace(Config(), limits=limits)) as service:
        lab = service.integrator()
        for value in "ab":
            large = [{"text": "x" * 1_000_000}] * 18
            assert lab.register(register_body(value, conclusionCode=large)).status == 201

        answer = update(lab, "status=final")

    assert answer.status == 412
