"""Passkeys in a real browser, with an authenticator of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from fhirpub.testing.service import RunningService
from tests.browser.visits import View, Visiting
from tests.console.sign_in.conftest import Site, config_in
from tests.console.sign_in.visitor import path_of
from tests.ports import free_port


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console whose origin is its real address."""
    folder, port = tmp_path_factory.mktemp("passkeys"), free_port()
    config, key = config_in(folder, base_url=f"http://localhost:{port}", port=port)
    with RunningService(folder, config=config) as running:
        yield Site(service=running, operator_key=key)


def test_a_person_accepts_an_invitation_and_signs_in_again(site: Site, visit: Visiting) -> None:
    visited = visit(site.service.config.console.base_url)
    visited.add_authenticator()
    page = visited.page
    visited.open(path_of(site.person("Ada Laband")["url"]))
    page.get_by_role("button", name="Make a passkey").click()
    expect(page.locator(".who")).to_have_text("Ada Laband")

    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in with a passkey").click()

    expect(page.locator(".who")).to_have_text("Ada Laband")
    cookies = visited.context.cookies()
    assert [(one["name"], one["httpOnly"], one["sameSite"]) for one in cookies] == [
        ("fhirpub_session", True, "Lax")
    ]


def test_who_has_a_passkey_already_is_shown_that(site: Site, visit: Visiting) -> None:
    visited = visit(site.service.config.console.base_url)
    visited.add_authenticator()
    invited = site.person("Ada Laband")
    visited.open(path_of(invited["url"]))
    visited.page.get_by_role("button", name="Make a passkey").click()
    expect(visited.page.locator(".who")).to_have_text("Ada Laband")

    visited.open(path_of(site.json("client", "invite", invited["client_id"])["url"]))
    visited.page.get_by_role("button", name="Make a passkey").click()

    alert = visited.page.get_by_role("alert")
    expect(alert).to_have_text("This device has a passkey of yours already: sign in with it.")
    expect(visited.page.get_by_role("button", name="Make a passkey")).to_be_enabled()


def test_a_sign_in_that_is_cancelled_can_be_repeated(site: Site, visit: Visiting) -> None:
    visited = visit(site.service.config.console.base_url)
    visited.add_authenticator()  # which has no passkey of this site
    visited.open("/console/sign-in")

    visited.page.get_by_role("button", name="Sign in with a passkey").click()

    expect(visited.page.get_by_role("alert")).to_contain_text("Try again.")
    expect(visited.page.get_by_role("button", name="Sign in with a passkey")).to_be_enabled()


@pytest.mark.parametrize("path", ["/console/sign-in", "invitation"])
def test_pages_of_signing_in_can_be_looked_at_in_each_way(
    site: Site, visit: Visiting, view: View, path: str
) -> None:
    place = path_of(site.person()["url"]) if path == "invitation" else path
    visited = visit(site.service.config.console.base_url, view)

    visited.open(place)

    visited.capture(path.rpartition("/")[2])
