"""The first page of a person, and help."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.config.settings import AuthConfig
from fhirpub.console.pages import start
from fhirpub.console.pages.endpoints import level_of
from fhirpub.console.visit import Html, Visit
from tests.unit.console.pages.visiting import a_visit, as_page, asked
from tests.unit.console.test_visit import CALLER, a_session

REPORTS = "/fhir/r4/DiagnosticReport"
ENDPOINTS = "/webhooks/v1/endpoints"
REPORT = {"resourceType": "DiagnosticReport", "id": "r1", "identifier": [{"value": "R-1"}]}
READ: dict[str, Any] = {REPORTS: {"entry": [{"resource": REPORT}]}, ENDPOINTS: {"endpoints": []}}
ALL = ("system/DiagnosticReport.rs", "webhooks.read")


def visited(answers: Any = None, *scopes: str) -> Visit:
    """Return the visit of a person of a client with scopes, in a service with two types."""
    visit: Any = a_visit(READ if answers is None else answers)
    services = SimpleNamespace(
        types={"DiagnosticReport": None, "Specimen": None},
        context=SimpleNamespace(searched=["Patient", "DiagnosticReport", "Specimen"]),
        audit=None,
    )
    auth = replace(AuthConfig(), enforce_scopes=True)
    visit.console = SimpleNamespace(services=services, config=SimpleNamespace(auth=auth))
    visit.session = a_session(replace(CALLER, scopes=scopes))
    return visit  # type: ignore[no-any-return]


async def shown(answers: Any = None, *scopes: str) -> Html:
    return as_page(await start.show_start(visited(answers, *scopes)))


async def test_the_five_latest_are_asked_for_without_whose_they_are() -> None:
    visit = visited(None, *ALL)

    page = as_page(await start.show_start(visit))

    assert asked(visit)[0] == (
        REPORTS,
        [("_count", "5"), ("_sort", "-_lastUpdated"), ("_elements", "identifier,status,code")],
    )
    assert [one.identifier for one in page.values["latest"]] == ["R-1"]
    assert page.values["most"] == 5


async def test_the_latest_are_of_the_first_type_that_is_served_and_permitted() -> None:
    page = await shown(
        {"/fhir/r4/Specimen": {"resourceType": "Bundle"}}, "system/Patient.s", "system/Specimen.s"
    )

    assert page.values["type_name"] == "Specimen"
    assert page.values["latest"] == []


async def test_nothing_is_asked_for_what_the_scopes_do_not_permit() -> None:
    visit = visited(None)

    page = as_page(await start.show_start(visit))

    assert asked(visit) == []
    assert (page.values["type_name"], page.values["latest"]) == ("", ())
    assert page.values["endpoints"] is None
    assert page.values["has_pages"] is False


async def test_endpoints_are_shown_to_those_that_may_read_them_alone() -> None:
    visit = visited({ENDPOINTS: {"endpoints": []}}, "webhooks.read")

    page = as_page(await start.show_start(visit))

    assert [path for path, _query in asked(visit)] == [ENDPOINTS]
    assert page.values["endpoints"] == []
    assert page.values["has_pages"] is True


async def test_what_is_refused_leaves_the_other_part_and_says_why() -> None:
    page = await shown({ENDPOINTS: {"endpoints": []}}, *ALL)

    assert page.values["latest"] is None
    assert page.values["endpoints"] == []
    assert page.values["problems"] == ["no, not so"]


async def test_both_refusals_are_shown() -> None:
    page = await shown({}, *ALL)

    assert (page.values["latest"], page.values["endpoints"]) == (None, None)
    assert page.values["problems"] == ["no, not so", "no, not so"]


async def test_endpoints_that_need_attention_are_first() -> None:
    states = ("active", "paused", "unverified", "disabled", "active", "disabled")
    found = [
        {"id": str(number), "state": state, "url": "https://x.example"}
        for number, state in enumerate(states)
    ]

    page = await shown({**READ, ENDPOINTS: {"endpoints": found}}, *ALL)

    assert [one["id"] for one in page.values["endpoints"]] == ["3", "5", "2", "1", "0", "4"]


@pytest.mark.parametrize("state", ["disabled", "unverified", "paused", "active"])
def test_an_endpoint_that_its_client_reads_needs_no_attention(state: str) -> None:
    well = start._place({"state": "active", "url": "https://x.example"})

    assert start._place({"state": state, "url": "pull:lis"}) == well


async def test_the_start_names_the_tenant_of_the_person() -> None:
    page = await shown(None, *ALL)

    assert (page.values["tenant"], page.values["level"]) == ("Lab", level_of)
    assert (page.template, page.title, page.section) == ("start.html", "Start", "start")


async def test_help_names_how_long_a_session_lasts() -> None:
    visit: Any = a_visit()
    console = SimpleNamespace(idle_minutes=7, session_hours=3)
    visit.console = SimpleNamespace(config=SimpleNamespace(console=console))

    page = as_page(await start.show_help(visit))

    assert page.values == {"idle_minutes": 7, "session_hours": 3}
    assert page.template == "help.html"


def test_the_start_is_for_those_who_signed_in_and_help_for_anyone() -> None:
    assert [(one.path, one.audience) for one in start.PAGES] == [
        ("/", "signed-in"),
        ("/help", "anyone"),
    ]
