"""What a browser gets at /, and what machines get there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config
from fhirpub.testing.service import RunningService
from fhirpub.web.routes import routes
from tests.ports import free_port

BROWSER = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service without a console, which names its documentation."""
    url = "https://docs.example.org/?a=1&b=2"
    config = Config(console=ConsoleConfig(documentation_url=url))
    with RunningService(tmp_path_factory.mktemp("root"), config=config) as running:
        yield running


def test_a_person_reads_what_this_is(without: RunningService) -> None:
    answer = without.request("GET", "/", headers=BROWSER)

    text = answer.body.decode()
    assert answer.status == 200
    for link in ("/metadata", "/openapi.json", "https://docs.example.org/?a=1&amp;b=2"):
        assert f'href="{link}"' in text


@pytest.mark.parametrize("accept", ["*/*", "application/fhir+json", ""])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_a_machine_gets_the_refusal_of_any_other_path(
    accept: str, method: str, without: RunningService
) -> None:
    answer = without.request(method, "/", headers={"Accept": accept} if accept else {})

    assert answer.status == 404
    assert answer.json["resourceType"] == "OperationOutcome"


def test_a_person_is_led_to_the_console_where_there_is_one(console: RunningService) -> None:
    answer = console.request("GET", "/", headers=BROWSER)

    assert (answer.status, answer.headers["location"]) == (303, f"{console.base_url}/console/")


def test_without_the_console_there_is_no_route_of_it(without: RunningService) -> None:
    assert not [one for one in routes(without.services) if "console" in one.path]
    assert without.request("GET", "/console/", headers=BROWSER).status == 404


def test_the_console_on_a_port_of_its_own_is_nowhere_else(tmp_path: Path) -> None:
    port = free_port()
    config = Config(console=ConsoleConfig(enabled=True, port=port))
    with RunningService(tmp_path, config=config) as running:
        own = replace(running.config, server=replace(running.config.server, port=port))
        on_service = running.request("GET", "/console/sign-in", headers=BROWSER)
        running.config = own
        on_own = running.request("GET", "/console/sign-in", headers=BROWSER)
        of_service = running.request("GET", "/metadata", headers=BROWSER)

    assert (on_service.status, on_own.status, of_service.status) == (404, 200, 404)
