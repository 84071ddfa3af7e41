"""Pages of resources: what is looked for, shown, and compared."""

from __future__ import annotations

from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.console.pages import resources
from fhirpub.console.visit import PageRefused, ServiceRefused, Visit
from tests.unit.console.pages.visiting import a_visit, as_page, asked, in_words, written

ID = "0123abcd-0123-4567-89ab-0123456789ab"
OBSERVATION = {"resourceType": "Observation", "id": "o", "status": "final"}
PATIENT = {"resourceType": "Patient", "id": "p", "identifier": [{"value": "77"}]}
ALL, ONE = "/fhir/r4/Observation", "/fhir/r4/Observation/o"


def served(**parameters: list[str]) -> Any:
    """Return services with types, and what each is searched by."""
    searched = {
        name: SimpleNamespace(parameters=dict.fromkeys(names))
        for name, names in parameters.items()
    }
    return SimpleNamespace(context=SimpleNamespace(searched=searched))


SERVED = served(
    Observation=["patient", "status", "date", "name"], Patient=["name", "birthdate"], Media=[]
)


def visit_of(answers: dict[str, Any], *blanks: str, **query: str) -> Visit:
    return a_visit(answers, *blanks, services=SERVED, **query)


def found(*entries: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "entry": [{"resource": one, "search": {"mode": mode}} for mode, one in entries],
        **more,
    }


@pytest.mark.parametrize(
    "page", [resources.show_list, resources.show_resource, resources.show_history]
)
async def test_a_type_that_is_not_served_has_no_page(page: Any) -> None:
    visit = visit_of({}, "Claim", "c")

    with pytest.raises(PageRefused) as refusal:
        await page(visit)

    assert refusal.value.status == HTTPStatus.NOT_FOUND
    assert asked(visit) == []


@pytest.mark.parametrize(
    ("type_name", "fields", "has_date"),
    [
        ("Observation", ["identifier", "patient", "status"], True),
        ("Patient", ["identifier", "name", "birthdate"], False),
        ("Media", ["identifier"], False),
    ],
)
async def test_a_form_has_the_fields_by_which_a_type_is_searched(
    type_name: str, fields: list[str], *, has_date: bool
) -> None:
    page = as_page(await resources.show_list(visit_of({f"/fhir/r4/{type_name}": {}}, type_name)))

    assert (page.values["fields"], page.values["has_date"]) == (fields, has_date)
    assert (page.title, page.section) == (type_name, type_name)


async def test_a_list_has_the_newest_first_and_their_number() -> None:
    visit = visit_of({ALL: found(total=3)}, "Observation")

    page = as_page(await resources.show_list(visit))

    query = [("_count", "25"), ("_sort", "-_lastUpdated"), ("_total", "accurate")]
    assert asked(visit) == [(ALL, query)]
    assert page.values["total"] == 3


async def test_the_fields_of_the_form_are_parameters() -> None:
    query = {"identifier": " 7 ", "patient": ID, "status": "", "name": "x", "since": "2024-05-01"}
    visit = visit_of({ALL: {}}, "Observation", **query)

    await resources.show_list(visit)

    assert asked(visit)[0][1][3:] == [
        ("identifier", "7"),
        ("patient", ID),
        ("date", "ge2024-05-01"),
    ]


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        (ID, "patient"),
        (ID[:-1], "patient.identifier"),
        (f"urn:x|{ID}", "patient.identifier"),
        (f"{ID[:-1]}_", "patient.identifier"),
        ("77", "patient.identifier"),
    ],
)
def test_a_patient_is_known_by_an_id_or_by_an_identifier(text: str, parameter: str) -> None:
    assert resources._parameter("patient", text) == parameter


def test_another_field_is_its_parameter() -> None:
    assert resources._parameter("status", "x|y") == "status"


async def test_only_matches_are_rows_and_only_filled_columns_are_shown() -> None:
    answer = found(("match", OBSERVATION), ("include", PATIENT))

    page = as_page(await resources.show_list(visit_of({ALL: answer}, "Observation")))

    assert [row.path for row in page.values["rows"]] == ["/console/resources/Observation/o"]
    assert page.values["columns"] == ["identifier", "status"]


async def test_a_column_is_shown_that_some_of_the_rows_fill() -> None:
    without = {name: value for name, value in OBSERVATION.items() if name != "status"}
    answer = found(("match", without), ("match", OBSERVATION), ("match", without))

    page = as_page(await resources.show_list(visit_of({ALL: answer}, "Observation")))

    assert page.values["columns"] == ["identifier", "status"]


async def test_a_list_leads_to_the_next_page() -> None:
    link = [{"relation": "next", "url": "https://fhir.example.org/x?_cursor=k"}]
    visit = visit_of({ALL: found(link=link)}, "Observation", status="final")

    page = as_page(await resources.show_list(visit))

    assert page.values["following"] == "/console/resources/Observation?status=final&cursor=k"


async def test_a_resource_is_shown_with_what_came_with_it() -> None:
    identified = {**OBSERVATION, "identifier": [{"value": "L-1"}]}
    answer = found(("match", identified), ("include", PATIENT))
    visit = visit_of({ALL: answer}, "Observation", "o")

    page = as_page(await resources.show_resource(visit))

    assert asked(visit) == [(ALL, [("_id", "o"), ("_include", "*")])]
    assert page.title == "Observation L-1"
    assert [row.path for row in page.values["others"]] == ["/console/resources/Patient/p"]
    assert page.values["resource"] == identified
    assert '"status": "final"' in page.values["json"]


async def test_a_resource_without_an_identifier_has_its_type_as_title() -> None:
    visit = visit_of({ALL: found(("match", OBSERVATION))}, "Observation", "o")

    assert as_page(await resources.show_resource(visit)).title == "Observation"


async def test_a_resource_that_is_not_found_is_refused_as_the_service_does() -> None:
    visit = visit_of({ALL: found(("include", PATIENT)), ONE: (410, {})}, "Observation", "o")

    with pytest.raises(ServiceRefused) as refusal:
        await resources.show_resource(visit)

    assert refusal.value.answer.status == 410
    assert asked(visit)[-1] == (ONE, [("_summary", "true")])


async def test_a_resource_that_came_in_between_is_to_be_loaded_again() -> None:
    visit = visit_of({ALL: found(), ONE: OBSERVATION}, "Observation", "o")

    with pytest.raises(PageRefused, match="load the page again"):
        await resources.show_resource(visit)


async def test_results_are_in_their_table_alone() -> None:
    value = {**OBSERVATION, "id": "v", "valueString": "5.4"}
    results = [{"reference": "Observation/v"}]
    report = {"resourceType": "Media", "id": "r", "result": results, "note": [{"text": "x"}]}
    answer = found(("match", report), ("include", value), ("include", PATIENT))

    page = as_page(
        await resources.show_resource(visit_of({"/fhir/r4/Media": answer}, "Media", "r"))
    )

    assert [row.path for row in page.values["results"]] == ["/console/resources/Observation/v"]
    assert [row.path for row in page.values["others"]] == ["/console/resources/Patient/p"]
    assert [label for label, _ in page.values["facts"]] == ["note"]


async def test_each_of_several_results_is_in_the_table_alone() -> None:
    values: list[Any] = [{**OBSERVATION, "id": one, "valueString": one} for one in "vw"]
    results = [{"reference": f"Observation/{one}"} for one in "vw"]
    report = {"resourceType": "Media", "id": "r", "result": results}
    answer = found(("match", report), *(("include", one) for one in values), ("include", PATIENT))

    page = as_page(
        await resources.show_resource(visit_of({"/fhir/r4/Media": answer}, "Media", "r"))
    )

    assert [row.value for row in page.values["results"]] == ["v", "w"]
    assert [row.path for row in page.values["others"]] == ["/console/resources/Patient/p"]
    assert page.values["facts"] == []


async def test_what_came_with_a_resource_and_is_no_result_stays_a_fact() -> None:
    report = {"resourceType": "Media", "id": "r", "performer": [{"reference": "Patient/p"}]}
    answer = found(("match", report), ("include", PATIENT))

    page = as_page(
        await resources.show_resource(visit_of({"/fhir/r4/Media": answer}, "Media", "r"))
    )

    assert [label for label, _ in page.values["facts"]] == ["performer"]


def test_a_list_of_more_than_shown_results_stays_a_fact() -> None:
    listed = [{"reference": "Observation/v"}, {"reference": "Observation/w"}]

    assert resources._referring({"result": listed}, {"Observation/v"}) == []
    assert resources._referring({"result": listed}, {"Observation/v", "Observation/w"}) == [
        "result"
    ]
    assert resources._referring({"result": [], "code": {}, "name": ["x"]}, {""}) == []


@pytest.mark.parametrize(("length", "is_shown"), [(65_536, True), (65_537, False)])
def test_json_that_is_too_long_to_read_is_not_shown(length: int, *, is_shown: bool) -> None:
    empty = len(resources._json({"a": ""}))

    assert bool(resources._json({"a": "x" * (length - empty)})) is is_shown


def version(number: int, **members: Any) -> dict[str, Any]:
    meta = {"versionId": str(number), "lastUpdated": f"2024-05-0{number}T10:00:00Z"}
    return {**OBSERVATION, "meta": meta, **members}


async def test_versions_are_compared_each_with_the_one_before_it() -> None:
    versions = [version(2, status="amended"), version(1)]
    visit = visit_of(
        {f"{ONE}/_history": {"entry": [{"resource": one} for one in versions]}}, "Observation", "o"
    )

    page = as_page(await resources.show_history(visit))

    second, first = page.values["rows"]
    assert asked(visit) == [(f"{ONE}/_history", [("_count", "20")])]
    assert (second["number"], second["status"], second["is_first"]) == ("2", "amended", False)
    assert (first["number"], first["is_first"], first["differences"]) == ("1", True, None)
    assert second["differences"]
    assert page.title == "Versions of Observation o"


async def test_a_page_of_versions_asks_for_its_cursor_and_leads_to_the_next() -> None:
    link = [{"relation": "next", "url": "https://fhir.example.org/x?_cursor=k"}]
    history = {"entry": [{"request": {}}], "link": link}
    visit = visit_of({f"{ONE}/_history": history}, "Observation", "o", cursor="j")

    page = as_page(await resources.show_history(visit))

    assert asked(visit)[0][1][-1] == ("_cursor", "j")
    assert (page.values["rows"], page.values["following"]) == ([], "k")


async def test_an_id_in_a_path_is_encoded() -> None:
    visit = visit_of({}, "Observation", "../x")

    with pytest.raises(ServiceRefused):
        await resources.show_history(visit)

    assert asked(visit)[0][0] == "/fhir/r4/Observation/..%2Fx/_history"


async def test_a_list_is_written_with_its_columns_and_leads_to_each_resource() -> None:
    identified = {**OBSERVATION, "identifier": [{"value": "L-1"}]}
    visit = visit_of({ALL: found(("match", identified), total=1)}, "Observation")

    page = written(await resources.show_list(visit))

    assert '<a href="/console/resources/Observation/o">L-1</a>' in page
    assert '<th scope="col">Status</th>' in page
    assert '<th scope="col">Patient</th>' not in page


async def test_versions_are_written_with_what_changed() -> None:
    versions = [{"resource": one} for one in (version(2, status="amended"), version(1))]
    visit = visit_of({f"{ONE}/_history": {"entry": versions}}, "Observation", "o")

    page = written(await resources.show_history(visit))

    assert "2024-05-02 10:00:00 UTC" in page
    assert '"/console/resources/Observation/o"' in page


async def test_a_resource_is_written_with_what_came_with_it() -> None:
    answer = found(("match", version(1)), ("include", PATIENT))

    page = written(await resources.show_resource(visit_of({ALL: answer}, "Observation", "o")))

    assert '"/console/resources/Patient/p"' in page
    assert '"/console/resources/Observation/o/history"' in page
    assert "&quot;status&quot;: &quot;final&quot;" in page


def test_each_page_of_resources_has_its_address_and_audience() -> None:
    assert in_words(resources.PAGES) == [
        "GET /resources/{} show_list integrator",
        "GET /resources/{}/{} show_resource integrator",
        "GET /resources/{}/{}/history show_history integrator",
    ]
