"""The pages of integrators in a browser: at each width, in both themes, without scripts too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from fhirpub.testing.service import RunningService
from tests.browser.accessibility import check_accessibility
from tests.browser.stage import ANSWER, Stage, staged
from tests.browser.visits import View, Visit, Visiting
from tests.console.tabs import SETTINGS, open_tab

WIDE = View()


@pytest.fixture(scope="module")
def service(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service with a console."""
    folder = tmp_path_factory.mktemp("console")
    with RunningService(folder, config=SETTINGS, store_url=store_url("pages")) as running:
        yield running


@pytest.fixture(scope="module")
def stage(service: RunningService) -> Iterator[Stage]:
    """What the pages show."""
    with staged(service) as found:
        yield found


def begin(visit: Visiting, stage: Stage, view: View = WIDE) -> Visit:
    """Begin a visit of a person who is signed in."""
    visited = visit(stage.lab.service.base_url, view)
    visited.use(open_tab(stage.lab).cookie)
    return visited


def test_every_page_is_in_order(visit: Visiting, view: View, stage: Stage) -> None:
    visited = begin(visit, stage, view)

    for name, path in stage.pages.items():
        assert visited.open(f"/console/{path}").status == 200, path
        check_accessibility(visited.page)
        visited.capture(f"console-{name}")


def test_the_sign_in_is_in_order(visit: Visiting, view: View, service: RunningService) -> None:
    visited = visit(service.base_url, view)

    visited.open("/console/sign-in")
    check_accessibility(visited.page)
    visited.capture("console-sign-in")


def test_why_a_delivery_failed_is_two_clicks_away_and_it_is_sent_again(
    visit: Visiting, stage: Stage
) -> None:
    page = (visited := begin(visit, stage)).page
    visited.open("/console/")

    page.get_by_role("link", name="retrying deliveries of Ward system").click()
    page.locator(f'a[href$="{stage.event}"]').click()
    expect(page.get_by_text("the answer was 502, not 2xx").first).to_be_visible()
    expect(page.get_by_text(ANSWER.decode()).first).to_be_visible()
    page.get_by_role("button", name="Send it again").click()

    expect(page.get_by_role("status")).to_be_visible()


def test_a_filter_replaces_what_was_found_without_another_page(
    visit: Visiting, stage: Stage
) -> None:
    page = (visited := begin(visit, stage)).page
    visited.open("/console/resources/DiagnosticReport")
    page.evaluate("window.isSamePage = true")

    page.get_by_label("Identifier").fill("none")
    page.keyboard.press("Enter")

    expect(page.get_by_text("Nothing was found.")).to_be_visible()
    assert "identifier=none" in page.url
    assert page.evaluate("window.isSamePage") is True


def test_the_keyboard_begins_with_a_link_to_the_content(visit: Visiting, stage: Stage) -> None:
    page = (visited := begin(visit, stage)).page
    visited.open("/console/endpoints")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    expect(page.get_by_role("link", name="Add an endpoint")).to_be_focused()


def test_a_person_signs_out(visit: Visiting, stage: Stage) -> None:
    page = (visited := begin(visit, stage)).page
    visited.open("/console/")

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    visited.open("/console/endpoints")

    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_what_is_wrong_with_a_filter_is_shown_in_place_of_what_was_found(
    visit: Visiting, stage: Stage
) -> None:
    page = (visited := begin(visit, stage)).page
    visited.open("/console/resources/DiagnosticReport")

    page.get_by_label("Identifier").fill("|")
    page.keyboard.press("Enter")

    expect(page.get_by_role("alert")).to_be_visible()
    visited.expect("status of 4")


def test_a_part_that_is_loaded_after_the_session_leads_to_the_sign_in(
    visit: Visiting, stage: Stage
) -> None:
    page = (visited := begin(visit, stage)).page
    visited.open("/console/resources/DiagnosticReport")
    visited.context.clear_cookies()

    page.get_by_label("Identifier").fill("none")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
