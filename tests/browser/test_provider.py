"""Signing in by an OpenID Connect provider of third-party code, in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from fhirpub.auth.clients import NewClient, add_client
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.service import RunningService
from tests.browser.visits import Visiting
from tests.node.packages import Scripts
from tests.node.provider import Provider
from tests.ports import free_port

SECRET = "a-secret-of-the-console"
OPERATOR = "op@hospital.example"


@pytest.fixture(scope="module")
def provider(node: Scripts) -> Iterator[tuple[str, int]]:
    """A provider, and the port that its console is to have: it accepts every name."""
    port = free_port()
    client = {
        "client_id": "console",
        "client_secret": SECRET,
        "redirect_uris": [f"http://127.0.0.1:{port}/console/sign-in/provider"],
    }
    running = Provider(node, {"people": True, "clients": [client]})
    yield running.url, port
    running.stop()


@pytest.fixture(scope="module")
def service(
    provider: tuple[str, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A console whose people sign in at the provider."""
    issuer, port = provider
    config = Config(
        console=ConsoleConfig(
            enabled=True,
            port=port,
            oidc_issuer=issuer,
            oidc_client_id="console",
            oidc_client_secret=SECRET,
            oidc_operators=[OPERATOR],
        )
    )
    with RunningService(tmp_path_factory.mktemp("provider"), config=config) as running:
        lab = running.integrator("North Quay Laboratory")
        new = NewClient(
            tenant=lab.tenant.id,
            name="ada@lab.example",
            environment=config.auth.environment,
            is_person=True,
            scopes=("webhooks.read",),
        )
        for person in (new, *[replace(new, name="twice@lab.example")] * 2):
            running.call(add_client(running.services.store, person, clock=now_ms))
        yield running


def sign_in(visit: Visiting, service: RunningService, name: str) -> Page:
    """Sign in at the provider by a name, and return where the browser comes back to."""
    console = service.config.console
    visited = visit(f"http://127.0.0.1:{console.port}")
    visited.open("/console/endpoints")
    page = visited.page
    page.get_by_role("link", name="Sign in with your organization").click()
    page.locator('[name="login"]').fill(name)
    page.locator('[name="password"]').fill("any")
    page.get_by_role("button", name=re.compile("sign-in", re.IGNORECASE)).click()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(f"http://127.0.0.1:{console.port}/**")
    visited.expect("another origin")
    visited.problems.clear()  # the page of the provider asks for fonts
    return page


def test_a_person_whom_the_operator_added_signs_in(
    visit: Visiting, service: RunningService
) -> None:
    page = sign_in(visit, service, "ada@lab.example")

    expect(page.locator(".who")).to_have_text("ada@lab.example")
    expect(page.get_by_role("heading", name="Endpoints")).to_be_visible()


def test_an_operator_whom_the_settings_name_signs_in(
    visit: Visiting, service: RunningService
) -> None:
    page = sign_in(visit, service, OPERATOR)

    expect(page.locator(".who")).to_have_text(OPERATOR)


@pytest.mark.parametrize("name", ["eve@lab.example", "twice@lab.example"])
def test_whom_the_operator_has_not_added_once_is_nobody(
    name: str, visit: Visiting, service: RunningService
) -> None:
    page = sign_in(visit, service, name)

    expect(page.get_by_role("alert")).to_contain_text("this service does not")
    expect(page.locator(".who")).to_have_count(0)


def test_an_email_that_the_provider_has_not_verified_is_not_trusted(
    visit: Visiting, service: RunningService
) -> None:
    page = sign_in(visit, service, "unverified@lab.example")

    expect(page.get_by_role("alert")).to_contain_text("The sign-in was not completed")


def test_an_answer_of_the_provider_is_for_the_browser_that_asked(
    visit: Visiting, service: RunningService
) -> None:
    visited = visit(f"http://127.0.0.1:{service.config.console.port}")
    visited.open("/console/sign-in/provider?code=stolen&state=known")
    visited.expect("403")

    expect(visited.page.get_by_role("alert")).to_contain_text("The sign-in was not completed")
