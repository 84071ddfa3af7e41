"""Searches by URL and by form: their parameters, limits, scopes and refusals."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import uuid4

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import SYSTEM, register_body
from tests.panels import panel, result

REPORTS = "/fhir/r4/DiagnosticReport"
FORM = "application/x-www-form-urlencoded"


def post(lab: Integrator, body: bytes, query: str = "", kind: str = FORM) -> Answer:
    path = f"{REPORTS}/_search{query}"
    return lab.request("POST", path, body, {"Content-Type": kind})


def registered(lab: Integrator) -> str:
    value = uuid4().hex
    assert lab.register(register_body(value)).status == 201
    return f"{SYSTEM}|{value}"


def test_a_form_finds_what_a_url_finds(lab: Integrator) -> None:
    wanted = {"identifier": registered(lab)}
    registered(lab)

    by_url = lab.get(f"{REPORTS}?{urlencode(wanted)}")
    by_form = post(lab, urlencode(wanted).encode())

    assert (by_url.json["total"], by_form.json["total"]) == (1, 1)
    assert by_form.json["entry"] == by_url.json["entry"]


def test_parameters_of_the_url_count_beside_those_of_the_form(lab: Integrator) -> None:
    first, second = registered(lab), registered(lab)

    query, form = (urlencode({"identifier": one}) for one in (first, second))

    assert post(lab, form.encode(), f"?{query}").json["total"] == 0


def test_the_format_of_a_form_comes_before_what_is_accepted(lab: Integrator) -> None:
    assert post(lab, b"_format=xml").headers["content-type"] == "application/fhir+xml"


def test_a_form_may_be_empty(lab: Integrator) -> None:
    assert post(lab, b"").status == 200


def test_what_is_no_form_is_refused(lab: Integrator) -> None:
    assert post(lab, b"{}", kind="application/json").status == 415


def test_an_empty_body_of_another_type_is_refused_too(lab: Integrator) -> None:
    assert post(lab, b"", kind="application/json").status == 415


def test_a_parameter_of_a_form_without_a_value_is_named_as_not_used(lab: Integrator) -> None:
    answer = post(lab, b"unknown=")

    assert b"the search parameter unknown has no value and was not used" in answer.body


def test_a_form_that_is_not_utf_8_is_refused(lab: Integrator) -> None:
    answer = post(lab, b"identifier=%FF")

    assert (answer.status, answer.problems) == (400, ["parameter-invalid"])


@pytest.mark.parametrize(("number", "status"), [(200, 200), (201, 400)])
def test_a_form_has_at_most_200_parameters(lab: Integrator, number: int, status: int) -> None:
    body = "&".join(["_summary=count"] + ["_ignored="] * (number - 1)).encode()

    answer = post(lab, body)

    assert (answer.status, "search-too-costly" in answer.body.decode()) == (
        status,
        status == 400,
    )


@pytest.mark.parametrize(("size", "status"), [(65_536, 200), (65_537, 413)])
def test_a_form_has_at_most_64_kib(lab: Integrator, size: int, status: int) -> None:
    body = b"_summary=count&_ignored="

    assert post(lab, body + b"x" * (size - len(body))).status == status


@pytest.mark.parametrize(("prefer", "status"), [("", 200), ("handling=strict", 400)])
def test_an_unknown_parameter_is_refused_only_by_those_who_prefer_it(
    lab: Integrator, prefer: str, status: int
) -> None:
    assert lab.get(f"{REPORTS}?unknown=1", Prefer=prefer).status == status


@pytest.mark.parametrize(
    ("scopes", "statuses"),
    [
        (("system/DiagnosticReport.s",), [200, 403, 403, 403]),
        (("system/DiagnosticReport.rs",), [200, 200, 200, 200]),
        (("system/DiagnosticReport.r",), [403, 403, 403, 403]),
        (("system/Observation.rs",), [403, 403, 403, 403]),
    ],
)
def test_what_is_included_needs_the_right_to_read(
    strict_service: RunningService, scopes: tuple[str, ...], statuses: list[int]
) -> None:
    lab = strict_service.integrator(scopes=scopes)
    include = "_include=DiagnosticReport:patient"

    found = [
        lab.get(REPORTS),
        lab.get(f"{REPORTS}?{include}"),
        lab.get(f"{REPORTS}?_include:iterate=DiagnosticReport:patient&{include}"),
        post(lab, include.encode()),
    ]

    assert [answer.status for answer in found] == statuses


def test_a_search_finds_nothing_of_others(service: RunningService, lab: Integrator) -> None:
    wanted = urlencode({"identifier": registered(lab)})
    other = service.integrator("Other")

    assert other.get(f"{REPORTS}?{wanted}").json["total"] == 0
    assert post(other, wanted.encode()).json["total"] == 0


def test_a_search_is_of_the_type_in_the_address(lab: Integrator) -> None:
    lab.register(panel(uuid4().hex, result("r1", 1.0)))

    found = lab.get("/fhir/r4/Observation").json["entry"]

    assert [one["resource"]["resourceType"] for one in found] == ["Observation"]


@pytest.mark.parametrize("name", ["_include:iterate", "_revinclude"])
def test_other_forms_of_an_inclusion_need_the_right_to_read_too(
    strict_service: RunningService, name: str
) -> None:
    lab = strict_service.integrator(scopes=("system/DiagnosticReport.s",))

    assert lab.get(f"{REPORTS}?{name}=DiagnosticReport:patient").status == 403
