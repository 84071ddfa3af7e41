"""The pages of operators in a browser: at each width, in both themes, without scripts too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from fhirpub.testing.receiver import Receiver
from fhirpub.testing.service import RunningService
from tests.browser.accessibility import check_accessibility
from tests.browser.visits import View, Visit, Visiting
from tests.console.operating import OPERATIONS, Estate, form_path, furnish
from tests.console.tabs import KEY, SETTINGS


@pytest.fixture(scope="module")
def estate(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Estate]:
    folder, url = tmp_path_factory.mktemp("operators"), store_url("operators")
    with RunningService(folder, config=SETTINGS, store_url=url) as service, Receiver() as receiver:
        yield furnish(service, receiver, KEY)


def pages_of(estate: Estate) -> dict[str, str]:
    """Return the path of a page of each kind, by the name of its screenshot."""
    return {
        "overview": "/console/",
        "tenants": f"{OPERATIONS}/tenants",
        "tenant": f"{OPERATIONS}/tenants/{estate.tenant}",
        "endpoint": f"{OPERATIONS}/endpoints/{estate.endpoint}",
        "erasures": f"{OPERATIONS}/erasures",
        "chain": f"{OPERATIONS}/audit/{estate.tenant}",
        "operations": OPERATIONS,
        "form": f"{form_path('endpointSet')}?endpoint={estate.endpoint}",
        "result": f"{form_path('quotaShow')}?tenant={estate.tenant}",
    }


def begin(visit: Visiting, estate: Estate, view: View | None = None) -> Visit:
    """Begin a visit of an operator who is signed in."""
    visited = visit(estate.service.base_url, view or View())
    visited.use(estate.tab.cookie)
    return visited


def test_every_page_is_in_order(visit: Visiting, view: View, estate: Estate) -> None:
    visited = begin(visit, estate, view)

    for name, path in pages_of(estate).items():
        assert visited.open(path).status == 200, path
        check_accessibility(visited.page)
        visited.capture(f"console-operators-{name}")


def test_a_client_is_added_and_disabled(visit: Visiting, estate: Estate) -> None:
    page = (visited := begin(visit, estate)).page
    visited.open(f"{OPERATIONS}/tenants/{estate.tenant}")

    page.get_by_role("link", name="Add a client").click()
    page.get_by_label("Name", exact=True).fill("Analyser 7")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("Shown only now.")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("link", name="To its page").click()
    page.get_by_role("link", name="Analyser 7").click()
    page.get_by_role("link", name="Disable for good").click()
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("It cannot be undone.")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("button", name="Yes, go on").click()
    page.get_by_role("link", name="To its page").click()

    expect(page.get_by_role("heading", name="Analyser 7")).to_be_visible()
    expect(page.get_by_text("disabled", exact=True)).to_be_visible()


def test_an_operator_signs_in_by_the_key_and_verifies_a_chain(
    visit: Visiting, estate: Estate
) -> None:
    page = (visited := visit(estate.service.base_url, View())).page
    visited.open(f"{OPERATIONS}/audit/{estate.tenant}")

    page.get_by_label("Administrative key").fill(KEY)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="Verify the chain").click()

    expect(page.get_by_text("The chain is right")).to_be_visible()


def test_a_confirmation_leads_back_to_the_form(visit: Visiting, estate: Estate) -> None:
    page = (visited := begin(visit, estate)).page
    visited.open(f"{form_path('endpointRm')}?endpoint={estate.endpoint}")

    page.get_by_role("button", name="Go on").click()
    page.get_by_role("link", name="No, back").click()

    expect(page.get_by_label("Endpoint")).to_have_value(estate.endpoint)
