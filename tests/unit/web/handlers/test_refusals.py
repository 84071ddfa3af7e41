"""Requests that no route takes: paths, methods, the root, and what is no request."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import pytest

from fhirpub.config.console import ConsoleConfig
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.error_mapping import MalformedRequest
from fhirpub.web.handlers.refusals import _page, normalize
from fhirpub.web.routes import Router
from tests import raw
from tests.unit.web.handlers.asking import REPORTS, Asked, on_request

BROWSER = {"Accept": "text/html,application/xhtml+xml"}


def test_an_unknown_path_is_refused_without_a_token(service: RunningService) -> None:
    answer = service.request("GET", "/fhir/r4/Nothing")

    assert (answer.status, answer.json["resourceType"]) == (404, "OperationOutcome")


def test_an_unknown_path_names_the_one_that_was_meant(service: RunningService) -> None:
    answer = service.request("GET", "/fhir/r4/DiagnosticReports")

    assert "DiagnosticReport" in answer.issues[0]["diagnostics"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "TRACE", "XYZ"])
def test_a_method_that_a_path_lacks_is_refused_with_those_it_has(
    service: RunningService, method: str
) -> None:
    answer = service.request(method, REPORTS)

    assert answer.status == 405
    assert {"GET", "HEAD", "OPTIONS", "POST"} <= {*answer.headers["allow"].split(", ")}
    assert answer.json["resourceType"] == "OperationOutcome"


def test_options_lists_methods_and_the_forms_of_patches(service: RunningService) -> None:
    answer = service.request("OPTIONS", f"{REPORTS}/x")

    assert (answer.status, answer.body) == (204, b"")
    assert {"GET", "PATCH", "OPTIONS"} <= {*answer.headers["allow"].split(", ")}
    assert "application/json-patch+json" in answer.headers["accept-patch"]


def test_options_lists_no_forms_where_there_is_no_patch(service: RunningService) -> None:
    assert "accept-patch" not in service.request("OPTIONS", "/fhir/r4/metadata").headers


def test_the_token_endpoint_refuses_methods_as_oauth_does(service: RunningService) -> None:
    answer = service.request("GET", "/oauth/token")

    assert answer.status == 405
    assert answer.json == {"error": "invalid_request", "error_description": "use POST here"}
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert "POST" in answer.headers["allow"]


def test_what_is_no_request_is_refused_and_ends_the_connection(service: RunningService) -> None:
    talk = raw.talk(service, b"GET /health/live HTTP/1.1\r\n\r\n")

    assert (talk.status, talk.closed) == (400, True)


# The root.


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_browser_gets_the_page(service: RunningService, method: str) -> None:
    answer = service.request(method, "/", headers=BROWSER)

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert (answer.headers["cache-control"], answer.headers["vary"]) == ("no-store", "Accept")
    assert b"<!-- documentation -->" not in answer.body


@pytest.mark.parametrize(
    "accepted", [["TEXT/HTML"], ["image/png", "text/html"], ["*/*;q=0.1, Text/Html"]]
)
def test_html_is_asked_for_in_any_letters_and_in_any_header(
    service: RunningService, accepted: list[str]
) -> None:
    talk = raw.request(service, "GET /", *(f"Accept: {one}" for one in accepted))

    assert talk.answer.headers["content-type"] == "text/html; charset=utf-8"


def test_the_page_allows_its_own_style_only(service: RunningService) -> None:
    answer = service.request("GET", "/", headers=BROWSER)

    style = answer.body.partition(b"<style>")[2].partition(b"</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
    assert answer.headers["content-security-policy"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'"
    )


@pytest.mark.parametrize(
    ("method", "headers"), [("GET", {}), ("GET", {"Accept": "*/*"}), ("POST", BROWSER)]
)
def test_another_request_for_the_root_finds_nothing(
    service: RunningService, method: str, headers: dict[str, str]
) -> None:
    assert service.request(method, "/", headers=headers).status in (404, 405)


@pytest.fixture(scope="module")
def with_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose settings have a console, which it does not serve."""
    with RunningService(tmp_path_factory.mktemp("console")) as service:
        console = ConsoleConfig(enabled=True, base_url="https://fhir.example.org")
        object.__setattr__(service.services.config, "console", console)
        yield service


def test_a_browser_is_led_to_the_console(with_console: RunningService) -> None:
    answer = with_console.request("GET", "/", headers=BROWSER)

    assert (answer.status, answer.body) == (303, b"")
    assert answer.headers["location"] == "https://fhir.example.org/console/"
    assert answer.headers["cache-control"] == "no-store"


def test_a_page_links_to_the_documentation_that_is_named() -> None:
    shown, _ = _page('https://docs.example/?a=1&b="2"')
    plain, _ = _page("")

    assert b'href="https://docs.example/?a=1&amp;b=&quot;2&quot;"' in shown
    assert b"docs.example" not in plain


# Paths.


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/a", "/a"),
        ("/%41%7a%5f%2D%2e%7E%24%3A", "/Az_-.~$:"),
        ("/%2F%20%40%5B%60%7B%3B", "/%2F%20%40%5B%60%7B%3B"),
        ("/%30%39%5A%61", "/09Za"),
        ("/%", "/%"),
    ],
)
def test_what_need_not_be_escaped_is_not(path: str, normal: str) -> None:
    assert normalize(path) == normal


def test_an_escaped_path_is_the_same_path(service: RunningService) -> None:
    assert service.request("GET", "/health/%6Cive").status == 200


def test_what_breaks_http_is_refused_at_once(lab: Integrator) -> None:
    async def use(one: Asked) -> int:
        router = Router(one.handler.services)
        refusing = router.refusing(one.request, MalformedRequest("it is not HTTP"))
        assert refusing.begin() is None
        return one.exchange.status

    assert on_request(lab, use) == 400
