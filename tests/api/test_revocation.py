"""One token is revoked over HTTP (RFC 7009), and every worker refuses it within 30 seconds.

Unless FHIRPUB_TEST_FULL is set, the workers look ten times as often, and have three seconds.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from oauthlib.oauth2 import BackendApplicationClient  # type: ignore[import-untyped]

from fhirpub.auth.keys import FRESH_SECONDS
from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.quick_service import QUICK, TIMES
from tests.tokens import claims_of

PATH = "/oauth/revoke"
FORM = "application/x-www-form-urlencoded"
MAX_SECONDS = 30 if variable("FHIRPUB_TEST_FULL") else 30 / TIMES


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator("Lab Uno")


def revoke(client: Integrator, token: str, **changes: str | None) -> Answer:
    fields: dict[str, str | None] = {
        "token": token,
        "client_id": client.client_id,
        "client_secret": client.client_secret,
        **changes,
    }
    form = urlencode({name: value for name, value in fields.items() if value is not None})
    return client.service.request("POST", PATH, form.encode(), {"Content-Type": FORM})


def read(client: Integrator) -> Answer:
    return client.get("/fhir/r4/DiagnosticReport?_count=1")


def test_a_revoked_token_is_refused_at_once_by_its_process(lab: Integrator) -> None:
    assert read(lab).status == 200

    answer = revoke(lab, lab.token)

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["cache-control"] == "no-store"
    refused = read(lab)
    assert refused.status == 401
    assert refused.problems == ["token-revoked"]
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    lab.log_in()
    assert read(lab).status == 200


def test_credentials_by_http_basic_and_fields_as_json_are_taken_too(lab: Integrator) -> None:
    basic = base64.b64encode(f"{lab.client_id}:{lab.client_secret}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/json"}
    body = json.dumps({"token": lab.token, "token_type_hint": "access_token"}).encode()

    assert lab.service.request("POST", PATH, body, headers).status == 200
    assert read(lab).status == 401


@pytest.mark.parametrize("token", ["unknown", "a.b.c", "Ω"])
def test_what_is_no_valid_token_gets_the_same_answer(lab: Integrator, token: str) -> None:
    for _ in range(2):
        assert revoke(lab, token).status == 200
    assert read(lab).status == 200


def test_a_token_that_is_revoked_twice_gets_the_same_answer(lab: Integrator) -> None:
    assert [revoke(lab, lab.token).status for _ in range(2)] == [200, 200]


def test_a_client_cannot_revoke_the_token_of_another(
    service: RunningService, lab: Integrator
) -> None:
    for other in (service.integrator("Lab Dos"), service.another_client(lab.tenant)):
        answer = revoke(other, lab.token)

        assert answer.status == 400
        assert answer.json["error"] == "unauthorized_client"
        assert read(lab).status == 200


def test_wrong_credentials_are_refused_as_the_token_endpoint_does(lab: Integrator) -> None:
    answer = revoke(lab, lab.token, client_secret="wrong")

    assert answer.status == 401
    assert answer.json["error"] == "invalid_client"
    assert read(lab).status == 200


def test_a_request_without_a_token_is_a_400_that_names_it(lab: Integrator) -> None:
    answer = revoke(lab, "", client_secret=None)

    assert answer.status == 400
    assert answer.json == {
        "error": "invalid_request",
        "error_description": "missing: token, client_secret",
    }


def test_a_token_in_the_address_is_refused_since_addresses_are_logged(lab: Integrator) -> None:
    answer = lab.service.request("POST", f"{PATH}?token={lab.token}", b"", {"Content-Type": FORM})

    assert answer.status == 400
    assert "never in the address" in answer.json["error_description"]


def test_another_method_is_refused_in_the_format_of_oauth(service: RunningService) -> None:
    answer = service.request("GET", PATH)

    assert (answer.status, answer.headers["allow"]) == (405, "POST, OPTIONS")
    assert answer.json["error"] == "invalid_request"


def test_both_discovery_documents_announce_the_address(service: RunningService) -> None:
    for name in ("oauth-authorization-server", "smart-configuration"):
        found = service.request("GET", f"/.well-known/{name}").json

        assert found["revocation_endpoint"] == f"{service.base_url}{PATH}"
        assert "client_secret_basic" in found["revocation_endpoint_auth_methods_supported"]


def test_an_oauth_library_revokes_its_token(
    lab: Integrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    address = f"{lab.service.base_url}{PATH}"
    client = BackendApplicationClient(lab.client_id)
    _url, headers, body = client.prepare_token_revocation_request(address, lab.token)
    basic = base64.b64encode(f"{lab.client_id}:{lab.client_secret}".encode()).decode()

    sent = {**headers, "Authorization": f"Basic {basic}"}
    assert lab.service.request("POST", PATH, body.encode(), sent).status == 200
    assert read(lab).status == 401


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path, workers=2, module=QUICK) as running:
        yield running


def statuses(connections: list[http.client.HTTPConnection], token: str) -> list[int]:
    """Return the answers to one request on each connection, which stays with its worker."""
    found = []
    for connection in connections:
        headers = {"Authorization": f"Bearer {token}"}
        connection.request("GET", "/fhir/r4/DiagnosticReport?_count=1", None, headers)
        answer = connection.getresponse()
        answer.read()
        found.append(answer.status)
    return found


def wait_until_refused(
    connections: list[http.client.HTTPConnection], token: str
) -> tuple[float, list[int]]:
    """Return the seconds until every worker refuses a token, and the answers in between."""
    began, seen = time.monotonic(), []
    while True:
        latest = statuses(connections, token)
        seen += latest
        passed = time.monotonic() - began
        if latest == [401] * len(connections) or passed > 90:
            return passed, seen
        time.sleep(MAX_SECONDS / 60)


@pytest.mark.slow
def test_a_token_revoked_by_one_worker_or_the_operator_is_refused_by_all_within_30_seconds(
    process: ServiceProcess,
) -> None:
    lab = process.integrator()
    tokens: list[Any] = []
    for _ in range(2):
        lab.log_in()
        tokens.append(lab.token)
    with ExitStack() as stack:
        connections = [
            http.client.HTTPConnection("127.0.0.1", process.port, timeout=60) for _ in range(24)
        ]
        for connection in connections:
            stack.callback(connection.close)
        assert [set(statuses(connections, token)) for token in tokens] == [{200}, {200}]

        assert revoke(lab, tokens[0]).status == 200
        jti = claims_of(tokens[1])["jti"]
        process.command("token", "revoke", "--client", lab.client_id, "--jti", jti)

        for token in tokens:
            passed, _seen = wait_until_refused(connections, token)
            assert passed <= MAX_SECONDS + 20  # a busy machine answers late
    assert FRESH_SECONDS == 30
