"""The start page of a person: what needs attention, and what is new."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from fhirpub.config.console import ConsoleConfig
from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import AuthConfig, Config
from fhirpub.testing.service import Integrator, RunningService
from tests.console.tabs import Tab, open_tab, text_of
from tests.console.test_endpoints import ENDPOINTS
from tests.console.test_resources import publish

PATIENT = "Ana Inés López"


def add_endpoint(lab: Integrator, name: str) -> str:
    """Add an endpoint that is not verified; return its id."""
    url = f"http://127.0.0.1:9/{quote(name)}"
    added = lab.request("POST", ENDPOINTS, {"url": url, "description": name})
    id_: str = added.json["id"]
    return id_


def test_endpoints_that_are_not_verified_are_before_those_that_are_paused(
    lab: Integrator, tab: Tab
) -> None:
    paused = lab.request("POST", ENDPOINTS, {"url": "pull:mine", "description": "Pulled"})
    assert paused.json["state"] == "paused"
    add_endpoint(lab, "Ward")

    text = text_of(tab.get("/console/"))

    assert text.index("Ward unverified") < text.index("Pulled paused")


def test_an_endpoint_that_is_read_offers_nothing_that_sends(lab: Integrator, tab: Tab) -> None:
    pulled = lab.request("POST", ENDPOINTS, {"url": "pull:mine"}).json

    page = tab.get(f"/console/endpoints/{pulled['id']}").body.decode()

    assert "Its events are read and not sent" in page
    assert not [act for act in ("/state/", "/trial/", "/rotate/", "/replay") if act in page]
    assert f"{pulled['id']}/delete" in page


def test_no_more_than_five_endpoints_are_shown(lab: Integrator, tab: Tab) -> None:
    for number in range(6):
        add_endpoint(lab, f"Ward {number}")

    text = text_of(tab.get("/console/"))

    assert "All 6 endpoints" in text
    assert text.count("unverified") == 5


def test_the_deliveries_that_are_retried_are_one_link_away(lab: Integrator, tab: Tab) -> None:
    id_ = add_endpoint(lab, "Ward")

    page = tab.get("/console/").body.decode()

    assert f'href="/console/endpoints/{id_}/deliveries?status=retrying"' in page


def test_the_latest_reports_are_shown_without_their_patients(lab: Integrator, tab: Tab) -> None:
    publish(lab, "A-1")

    text = text_of(tab.get("/console/"))

    assert "A-1" in text
    assert PATIENT not in text
    assert PATIENT in text_of(tab.get("/console/resources/DiagnosticReport"))


def test_where_there_is_nothing_the_page_says_what_to_do(tab: Tab) -> None:
    text = text_of(tab.get("/console/"))

    assert "There is no endpoint yet. Add an endpoint" in text
    assert "no DiagnosticReport has been published" in text


def test_a_client_without_scopes_learns_who_grants_them(tmp_path: Path) -> None:
    config = Config(console=ConsoleConfig(enabled=True), auth=AuthConfig(enforce_scopes=True))
    with RunningService(tmp_path, config=config) as running:
        page = open_tab(running.integrator(scopes=())).get("/console/")

    assert page.status == 200
    assert "An operator of the service can grant them" in text_of(page)


def test_a_part_that_is_refused_leaves_the_others(tmp_path: Path) -> None:
    quotas = QuotasConfig(client_requests_per_minute=1)
    config = Config(console=ConsoleConfig(enabled=True), quotas=quotas)
    with RunningService(tmp_path, config=config) as running:
        page = open_tab(running.integrator()).get("/console/")

    assert page.status == 200
    text = text_of(page)
    assert "Not everything can be shown now" in text
    assert "no DiagnosticReport has been published" in text
    assert "Endpoints" not in text
