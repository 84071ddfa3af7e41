"""The members of a registration as they are stored, and the response that names them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.members import response
from fhirpub.storage.contract import Version
from tests.panels import result, specimen
from tests.unit.interactions.patients.people import (
    DAY,
    NATIONAL,
    START,
    Ward,
    id_of,
    issues_of,
    person,
)


def parameters(version: Version) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(version.response)["parameter"]
    return found


async def a_panel(ward: Ward, **changes: Any) -> Version:
    blood: Any = {"specimen": {"reference": "Specimen/blood"}}
    return await ward.report(
        "R-1",
        person((NATIONAL, "1")),
        result("b", **blood),
        specimen(),
        result("a", status="preliminary", **changes),
    )


async def test_members_follow_in_the_order_in_which_they_were_sent(ward: Ward) -> None:
    report = await a_panel(ward)

    names = [one["name"] for one in parameters(report)]
    assert names == ["diagnosticReport", "observation", "specimen", "observation", "issues"]
    assert [one["valueReference"]["reference"] for one in parameters(report)[1:4]] == [
        f"{one.type}/{one.id}" for one in report.members
    ]


async def test_a_member_is_a_version_of_its_own(ward: Ward) -> None:
    report = await a_panel(ward)

    assert [one.type for one in report.members] == ["Observation", "Specimen", "Observation"]
    for one in report.members:
        assert (one.version, one.system, one.value) == (1, "", "")
        assert (one.created, one.updated) == (START + DAY, START + DAY)
        meta = json.loads(one.body)["meta"]
        assert (json.loads(one.body)["id"], meta["versionId"]) == (one.id, "1")
    assert [one.status for one in report.members] == ["final", "", "preliminary"]


async def test_a_member_refers_to_the_others_by_their_new_ids(ward: Ward) -> None:
    report = await a_panel(ward)

    first, blood, _last = (json.loads(one.body) for one in report.members)
    assert first["specimen"]["reference"] == f"Specimen/{blood['id']}"
    assert first["subject"]["reference"] == f"Patient/{id_of(report)}"


async def test_ids_of_members_follow_from_the_report_and_their_keys(ward: Ward) -> None:
    report = await a_panel(ward)
    other = await ward.report("R-2", person((NATIONAL, "1")), result("a"))

    (again,) = (one for one in other.members)
    assert again.id not in {one.id for one in report.members}
    assert again.id == ward.tenant.member_id(other.id, "observation", ("id", "a"))


async def test_a_member_is_found_by_the_identifiers_of_the_patient(ward: Ward) -> None:
    report = await a_panel(ward)

    names = {one[0] for one in json.loads(report.members[0].search)}
    assert "subject:Patient.identifier" in names


async def test_the_first_issue_is_that_it_was_created(ward: Ward) -> None:
    report = await a_panel(ward)

    first = issues_of(report)[0]
    assert (first["severity"], first["diagnostics"]) == (
        "information",
        "DiagnosticReport was created",
    )


# The resource in short


async def test_the_resource_is_shown_in_short(ward: Ward) -> None:
    short = parameters(await a_panel(ward))[0]["resource"]

    assert {"resourceType", "id", "meta", "identifier", "status", "code"} <= short.keys()
    assert "presentedForm" not in short
    assert short["meta"]["tag"][0]["code"] == "SUBSETTED"


@pytest.mark.parametrize(("most", "is_short"), [(0, True), (400, True), (65_536, False)])
async def test_what_would_be_too_long_is_left_out(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, most: int, *, is_short: bool
) -> None:
    monkeypatch.setattr(response, "_MAX_SUMMARY_BYTES", most)

    short = parameters(await a_panel(ward))[0]["resource"]

    optional = short.keys() - {"resourceType", "id", "meta", "identifier", "status", "code"}
    assert bool(optional) is not is_short


async def test_a_long_list_is_shown_by_its_first_item(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response, "_MAX_SUMMARY_BYTES", 0)
    codings = [{"system": "urn:s", "code": str(number)} for number in range(3)]
    vaccine = {"vaccineCode": {"coding": codings, "text": "x"}}
    context = ward.context
    ward_type = context.types["Immunization"]
    stored = {
        "resourceType": "Immunization",
        "id": "7",
        "meta": {"versionId": "1"},
        "status": "completed",
        **vaccine,
    }

    short = response._short_form(stored, replace(ward_type), context)

    assert short["vaccineCode"] == {"coding": codings[:1], "text": "x"}


@pytest.mark.parametrize(("spare", "is_whole"), [(0, True), (-1, False)])
async def test_a_summary_is_short_if_it_has_as_many_bytes_as_it_may(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, spare: int, *, is_whole: bool
) -> None:
    shown = parameters(await a_panel(ward))[0]["resource"]
    monkeypatch.setattr(response, "_MAX_SUMMARY_BYTES", len(dumps(shown)) + spare)
    ward.day -= 1

    again = await ward.report("R-2", person((NATIONAL, "1")))

    assert ("subject" in parameters(again)[0]["resource"]) == is_whole


def test_only_the_first_item_of_each_list_is_shown() -> None:
    concept = {"coding": [{"code": "a"}, {"code": "b"}], "text": "x"}

    assert response._first_items([concept, concept]) == [{"coding": [{"code": "a"}], "text": "x"}]
    assert response._first_items("final") == "final"
    assert response._first_items({"text": "xyz"}) == {"text": "xyz"}
