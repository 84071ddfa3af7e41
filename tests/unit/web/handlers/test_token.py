"""Grants and revocations over HTTP: their headers, limits and refusals."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest

from fhirpub.config.settings import Config, ServerConfig
from fhirpub.errors import FhirpubError, StoreUnavailable, Throttled
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.error_mapping import MalformedRequest, TooSlow
from fhirpub.web.handlers.token import OAuthHandler, binding
from tests.log_lines import caught_lines
from tests.unit.web.handlers.asking import named

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def form_of(lab: Integrator, **changes: str) -> bytes:
    usual = {
        "grant_type": "client_credentials",
        "client_id": lab.client_id,
        "client_secret": lab.client_secret,
        "audience": lab.service.config.auth.audience,
    }
    return urlencode(usual | changes).encode()


def ask(lab: Integrator, body: bytes, path: str = "/oauth/token", **headers: str) -> Answer:
    return lab.service.request("POST", path, body, FORM | named(headers))


def revoke(lab: Integrator, token: str) -> Answer:
    return ask(lab, form_of(lab, token=token), "/oauth/revoke")


def test_a_grant_is_a_bearer_token_that_no_cache_keeps(lab: Integrator) -> None:
    answer = ask(lab, form_of(lab))

    assert (answer.status, answer.json["token_type"]) == (200, "Bearer")
    assert answer.json["expires_in"] == lab.service.config.auth.token_seconds
    assert answer.headers["content-type"] == "application/json"
    assert (answer.headers["cache-control"], answer.headers["pragma"]) == ("no-store", "no-cache")


def test_a_refusal_is_json_that_no_cache_keeps(lab: Integrator) -> None:
    answer = ask(lab, form_of(lab, client_secret="wrong"), Accept="application/fhir+xml")

    assert (answer.status, answer.json["error"]) == (401, "invalid_client")
    assert (answer.headers["cache-control"], answer.headers["pragma"]) == ("no-store", "no-cache")


@pytest.mark.parametrize(("size", "status"), [(8_192, 200), (8_193, 413)])
def test_a_request_has_at_most_8192_bytes(lab: Integrator, size: int, status: int) -> None:
    body = form_of(lab) + b"&note="

    answer = ask(lab, body + b"x" * (size - len(body)))

    assert answer.status == status
    if status == 413:
        assert answer.json == {
            "error": "invalid_request",
            "error_description": "the request has more than 8192 bytes",
        }


def test_a_compressed_request_is_malformed(lab: Integrator) -> None:
    answer = ask(lab, form_of(lab), Content_Encoding="gzip")

    assert (answer.status, answer.json["error"]) == (400, "invalid_request")


def test_a_request_that_is_not_compressed_may_say_so(lab: Integrator) -> None:
    assert ask(lab, form_of(lab), Content_Encoding="Identity").status == 200


def test_a_revoked_token_is_refused_from_then_on(lab: Integrator) -> None:
    before = lab.get("/fhir/r4/DiagnosticReport").status

    answer = revoke(lab, lab.token)

    assert (before, answer.status, answer.body) == (200, 200, b"")
    assert lab.get("/fhir/r4/DiagnosticReport").status == 401


def test_to_revoke_what_is_no_token_succeeds_as_well(lab: Integrator) -> None:
    assert revoke(lab, "none").status == 200


def test_the_token_of_another_client_stays(service: RunningService, lab: Integrator) -> None:
    other = service.integrator("Other")

    revoke(other, lab.token)

    assert lab.get("/fhir/r4/DiagnosticReport").status == 200


def test_keys_may_be_kept_for_five_minutes_by_anyone(service: RunningService) -> None:
    answer = service.request("GET", "/.well-known/jwks.json")

    assert answer.headers["cache-control"] == "public, max-age=300"
    assert [key for key in answer.json["keys"] if "d" in key] == []


@pytest.mark.parametrize("name", ["oauth-authorization-server", "smart-configuration"])
def test_what_is_published_names_the_addresses_of_this_service(
    service: RunningService, name: str
) -> None:
    found = service.request("GET", f"/.well-known/{name}").json

    assert found["token_endpoint"] == f"{service.base_url}/oauth/token"
    assert "tls_client_certificate_bound_access_tokens" not in found


def test_a_refusal_of_basic_credentials_names_its_scheme(lab: Integrator) -> None:
    given = {"grant_type": "client_credentials", "audience": lab.service.config.auth.audience}
    basic = ask(lab, urlencode(given).encode(), Authorization="Basic eDp5")
    posted = ask(lab, form_of(lab, client_secret="wrong"))

    assert (basic.status, basic.headers["www-authenticate"]) == (401, 'Basic realm="fhirpub"')
    assert "www-authenticate" not in posted.headers


def test_the_line_of_a_grant_and_of_a_revocation_names_the_client(lab: Integrator) -> None:
    with caught_lines() as caught:
        ask(lab, form_of(lab), X_Request_Id="granted")
        ask(lab, form_of(lab, token="none"), "/oauth/revoke", X_Request_Id="revoked")
        lines = [caught.of("granted"), caught.of("revoked")]

    assert [(one["tenant"], one["client"]) for one in lines] == [
        (lab.tenant.id, lab.client_id)
    ] * 2
    assert lab.client_secret not in str(lines)


def test_tokens_are_bound_to_certificates_if_a_proxy_passes_them_on() -> None:
    passed_on = ServerConfig(certificate_header="X-Client-Cert")

    assert binding(Config(server=passed_on)) == {
        "tls_client_certificate_bound_access_tokens": True
    }
    assert binding(Config()) == {}


def refusal(problem: Exception) -> tuple[int, str, str, dict[str, str]]:
    """Return the status, the error and its text, and the headers that a refusal is written as."""
    written: list[bytes] = []
    handler: Any = SimpleNamespace(headers={}, status=200, finish=written.append)
    OAuthHandler.write_refusal(handler, problem)
    body = json.loads(written[0])
    return handler.status, body["error"], body["error_description"], handler.headers


def test_a_fault_is_an_error_of_the_server_without_its_text() -> None:
    found = refusal(KeyError("a secret"))

    assert found[:3] == (500, "server_error", "the service could not answer")


@pytest.mark.parametrize(
    ("problem", "status", "seconds"),
    [(Throttled(retry_after=7), 429, "7"), (StoreUnavailable("away", retry_after=3), 503, "3")],
)
def test_a_client_that_may_try_again_learns_when(
    problem: Exception, status: int, seconds: str
) -> None:
    found = refusal(problem)

    assert found[:2] == (status, "temporarily_unavailable")
    assert found[3]["Retry-After"] == seconds


@pytest.mark.parametrize(("kind", "status"), [(TooSlow, 408), (MalformedRequest, 400)])
def test_a_request_that_arrives_too_slowly_or_breaks_http_is_refused_as_such(
    kind: type[FhirpubError], status: int
) -> None:
    assert refusal(kind("it went wrong"))[:3] == (status, "invalid_request", "it went wrong")
