"""Pages of endpoints: what they ask of the service, show, and lead to."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest

from fhirpub.console.pages import endpoints
from fhirpub.console.pages.endpoints import level_of
from fhirpub.console.visit import PageRefused, ServiceRefused
from tests.unit.console.pages.visiting import (
    REFUSAL,
    a_visit,
    as_page,
    asked,
    in_words,
    place_of,
)

BASE = "/webhooks/v1"
ONE = f"{BASE}/endpoints/e1"
ENDPOINT = {
    "id": "e1",
    "description": "LIS",
    "url": "https://lis.example/hooks",
    "state": "active",
}
HOURS = [{"succeeded": 1, "failed": 0}] * 24
DAYS = [{"succeeded": 0, "failed": 2}] * 7
TYPES = {"event_types": [{"name": "patient.created"}, {"name": "patient.updated"}]}
READ: dict[str, Any] = {
    ONE: ENDPOINT,
    f"{ONE}/stats": {"by_hour": HOURS, "by_day": DAYS},
    f"{ONE}/deliveries": {"deliveries": [{"sequence": 1}]},
}


@pytest.mark.parametrize(
    ("state", "level"),
    [
        ("active", "good"),
        ("delivered", "good"),
        ("disabled", "bad"),
        ("dead", "bad"),
        ("cancelled", ""),
        ("paused", "warn"),
        ("unverified", "warn"),
        ("pending", "warn"),
    ],
)
def test_each_state_has_its_level(state: str, level: str) -> None:
    assert level_of(state) == level


async def test_the_list_has_the_endpoints() -> None:
    page = as_page(
        await endpoints.show_list(a_visit({f"{BASE}/endpoints": {"endpoints": [ENDPOINT]}}))
    )

    assert page.values["endpoints"] == [ENDPOINT]
    assert (page.title, page.section, page.status) == ("Endpoints", "endpoints", 200)


async def test_an_endpoint_is_shown_with_its_latest_deliveries() -> None:
    visit = a_visit(READ, "e1")

    page = as_page(await endpoints.show_endpoint(visit))

    assert asked(visit)[-1] == (f"{ONE}/deliveries", [("limit", "10")])
    assert page.values["deliveries"] == [{"sequence": 1}]
    assert page.title == "LIS"
    assert page.values["is_read"] is False


async def test_an_endpoint_is_shown_with_a_chart_of_the_day_and_one_of_the_week() -> None:
    page = as_page(await endpoints.show_endpoint(a_visit(READ, "e1")))

    assert page.values["day"].count('class="ok"') == 24
    assert page.values["week"].count('class="failed"') == 7
    assert "Attempts of each hour of the last day" in page.values["day"]
    assert "Attempts of each day of the last week" in page.values["week"]


async def test_an_endpoint_without_a_description_has_its_url_as_title() -> None:
    pulled = {**ENDPOINT, "description": "", "url": "pull:"}

    page = as_page(await endpoints.show_endpoint(a_visit({**READ, ONE: pulled}, "e1")))

    assert page.title == "pull:"
    assert page.values["is_read"] is True


async def test_an_id_in_the_path_is_encoded() -> None:
    visit = a_visit({}, "../clients?x")

    with pytest.raises(ServiceRefused):
        await endpoints.show_endpoint(visit)

    assert asked(visit) == [(f"{BASE}/endpoints/..%2Fclients%3Fx", [])]


@pytest.mark.parametrize("act", ["pause", "enable"])
async def test_a_change_of_state_leads_back_to_the_endpoint(act: str) -> None:
    visit = a_visit({ONE: ENDPOINT, f"POST {ONE}/{act}": {}}, "e1", act)

    assert place_of(await endpoints.change_state(visit)) == "/console/endpoints/e1"
    assert asked(visit)[-1] == (f"POST {ONE}/{act}", None)


async def test_a_change_that_the_service_refuses_is_refused() -> None:
    visit = a_visit({ONE: ENDPOINT, f"POST {ONE}/pause": (409, REFUSAL)}, "e1", "pause")

    with pytest.raises(ServiceRefused):
        await endpoints.change_state(visit)


@pytest.mark.parametrize(
    ("page", "blank"),
    [
        (endpoints.change_state, "delete"),
        (endpoints.try_endpoint, "enable"),
        (endpoints.ask_rotation, "key"),
        (endpoints.rotate, "key"),
    ],
)
async def test_another_act_is_not_found_and_not_asked_for(page: Any, blank: str) -> None:
    visit = a_visit({ONE: ENDPOINT}, "e1", blank)

    with pytest.raises(PageRefused) as refusal:
        await page(visit)

    assert refusal.value.status == HTTPStatus.NOT_FOUND
    assert len(asked(visit)) == 1


@pytest.mark.parametrize(("trial", "name"), [("verify", "Challenge"), ("test", "Test event")])
async def test_a_trial_shows_what_came_of_it(trial: str, name: str) -> None:
    came = {"outcome": "ok"}
    visit = a_visit({ONE: ENDPOINT, f"POST {ONE}/{trial}": came}, "e1", trial)

    page = as_page(await endpoints.try_endpoint(visit))

    assert (page.title, page.values["name"], page.values["came"]) == (name, name, came)


@pytest.mark.parametrize(
    ("kind", "name"), [("secret", "signing secret"), ("token", "bearer token")]
)
async def test_a_rotation_is_asked_for_first(kind: str, name: str) -> None:
    visit = a_visit({ONE: ENDPOINT}, "e1", kind)

    page = as_page(await endpoints.ask_rotation(visit))

    assert (page.values["kind"], page.values["name"]) == (kind, name)
    assert len(asked(visit)) == 1


@pytest.mark.parametrize("kind", ["secret", "token"])
async def test_a_rotation_shows_the_new_secret(kind: str) -> None:
    new = {**ENDPOINT, "secret": "new"}
    visit = a_visit({ONE: ENDPOINT, f"POST {ONE}/{kind}:rotate": new}, "e1", kind)

    page = as_page(await endpoints.rotate(visit))

    assert asked(visit)[-1] == (f"POST {ONE}/{kind}:rotate", {})
    assert (page.template, page.values["endpoint"]) == ("secrets.html", new)


async def test_a_deletion_is_asked_for_first() -> None:
    visit = a_visit({ONE: ENDPOINT}, "e1")

    page = as_page(await endpoints.ask_deletion(visit))

    assert page.values["endpoint"] == ENDPOINT
    assert asked(visit) == [(ONE, [])]


async def test_a_deletion_leads_to_the_list() -> None:
    visit = a_visit({ONE: ENDPOINT, f"DELETE {ONE}": {}}, "e1")

    assert place_of(await endpoints.delete(visit)) == "/console/endpoints"
    assert asked(visit)[-1] == (f"DELETE {ONE}", None)


async def test_the_form_names_the_types_of_events_and_of_payloads() -> None:
    page = as_page(await endpoints.show_form(a_visit({f"{BASE}/event-types": TYPES})))

    assert page.values["names"] == ["patient.created", "patient.updated"]
    assert {*page.values["payloads"]} == {"id-only", "standard"}
    assert (page.status, page.values["problems"]) == (200, [])


async def test_an_added_endpoint_is_shown_with_its_secrets() -> None:
    form = {"url": " https://a.example ", "description": "LIS", "payload": "id-only"}
    visit = a_visit({f"POST {BASE}/endpoints": ENDPOINT}, form=form)
    visit.form = {**visit.form, "event_types": ["patient.created", "patient.updated"]}

    page = as_page(await endpoints.add(visit))

    body = {
        "url": "https://a.example",
        "description": "LIS",
        "event_types": ["patient.created", "patient.updated"],
        "payload": "id-only",
    }
    assert asked(visit) == [(f"POST {BASE}/endpoints", body)]
    assert (page.template, page.title) == ("secrets.html", "Added")


async def test_an_endpoint_without_types_of_events_gets_all() -> None:
    visit = a_visit({f"POST {BASE}/endpoints": ENDPOINT}, form={"url": "https://a.example"})

    await endpoints.add(visit)

    assert asked(visit)[0][1]["event_types"] == ["*"]


async def test_a_refused_endpoint_shows_the_form_with_what_is_wrong() -> None:
    answers = {f"POST {BASE}/endpoints": (422, REFUSAL), f"{BASE}/event-types": TYPES}

    page = as_page(await endpoints.add(a_visit(answers, form={"url": "x"})))

    assert (page.template, page.status) == ("add_endpoint.html", 422)
    assert page.values["problems"] == ["no, not so"]
    assert page.values["field"]("url") == "x"


def test_each_page_of_endpoints_has_its_address_and_audience() -> None:
    assert in_words(endpoints.PAGES) == [
        "GET /endpoints show_list integrator",
        "GET /add-endpoint show_form integrator",
        "POST /add-endpoint add integrator",
        "GET /endpoints/{} show_endpoint integrator",
        "POST /endpoints/{}/state/{} change_state integrator",
        "POST /endpoints/{}/trial/{} try_endpoint integrator",
        "GET /endpoints/{}/rotate/{} ask_rotation integrator",
        "POST /endpoints/{}/rotate/{} rotate integrator",
        "GET /endpoints/{}/delete ask_deletion integrator",
        "POST /endpoints/{}/delete delete integrator",
    ]
