"""Every page of a client shows nothing of another tenant, and changes nothing there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fhirpub.console.routes import PAGES
from fhirpub.console.visit import BASE, Page
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Integrator, RunningService
from tests.console.tabs import Tab, open_tab
from tests.console.test_protection import name_of
from tests.console.test_resources import publish
from tests.waiting import wait_until

ENDPOINTS = "/webhooks/v1/endpoints"
OF_ONE = [page for page in PAGES if page.audience == "integrator" and "{}" in page.path]
OF_ONE = [page for page in OF_ONE if page.path != "/resources/{}"]


@dataclass(frozen=True)
class Owned:
    """What a tenant has."""

    lab: Integrator
    report: str
    endpoint: str
    event: str

    def path(self, page: Page) -> str:
        """Return the path of a page, filled with what there is."""
        first, second = self.endpoint, self.event
        if page.path.startswith("/resources"):
            first, second = "DiagnosticReport", self.report
        for kind, value in (("state", "pause"), ("trial", "test"), ("rotate", "secret")):
            if f"/{kind}/" in page.path:
                second = value
        return BASE + page.path.replace("{}", first, 1).replace("{}", second, 1)


@pytest.fixture(scope="module")
def owned(console: RunningService) -> Iterator[Owned]:
    """A tenant with a report, an endpoint and a delivery."""
    lab = console.integrator("Owner")
    with Receiver() as receiver:
        receiver.answer(Reply(status=200, echo=True))
        endpoint = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json["id"]
        assert lab.request("POST", f"{ENDPOINTS}/{endpoint}/verify").json["passed"]
        report = publish(lab, "OWNED-1")
        path = f"{ENDPOINTS}/{endpoint}/deliveries"
        assert wait_until(lambda: b'"delivered"' in lab.get(path).body)
        event = lab.get(path).json["deliveries"][0]["event_id"]
        yield Owned(lab, report, endpoint, event)


def send(tab: Tab, page: Page, path: str) -> tuple[int, str]:
    """Ask for a page, or send its form; return the status and the text."""
    fields = {"status": "delivered", "since": "2020-01-01T00:00"}
    answer = tab.get(path) if page.method == "GET" else tab.post(path, fields)
    return answer.status, answer.body.decode()


def state_of(owned: Owned) -> tuple[str, int, int]:
    """Return what forms could change: the state, the revision, and how many deliveries wait."""
    one = owned.lab.get(f"{ENDPOINTS}/{owned.endpoint}").json
    found = owned.lab.get(f"{ENDPOINTS}/{owned.endpoint}/deliveries").json["deliveries"]
    return one["state"], one["revision"], sum(len(each["attempts"]) for each in found)


@pytest.mark.parametrize("page", OF_ONE, ids=name_of)
def test_a_page_of_another_tenant_is_not_there(page: Page, owned: Owned, tab: Tab) -> None:
    before = state_of(owned)

    status, text = send(tab, page, owned.path(page))

    assert status == 404
    assert "OWNED-1" not in text
    assert state_of(owned) == before


@pytest.mark.parametrize("page", [one for one in OF_ONE if one.method == "GET"], ids=name_of)
def test_the_page_is_there_for_its_own_tenant(page: Page, owned: Owned) -> None:
    assert send(open_tab(owned.lab), page, owned.path(page))[0] == 200


@pytest.mark.parametrize("page", ["", "/history"])
def test_another_type_in_the_path_shows_nothing(page: str, owned: Owned) -> None:
    mine = open_tab(owned.lab)

    assert mine.get(f"/console/resources/Patient/{owned.report}{page}").status == 404
