"""What grants state, what of refusals is counted, and certificates that a proxy passes on."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.testing.service import Integrator, RunningService
from tests import raw
from tests.audit_trail import read_chain
from tests.unit.web.handlers.asking import asked, running
from tests.unit.web.handlers.test_token import FORM, ask, form_of

HEADER = "X-Client-Cert"


def test_a_grant_states_the_scopes_of_the_token(service: RunningService) -> None:
    lab = service.integrator(scopes=("system/DiagnosticReport.rs", "system/Patient.r"))

    whole = ask(lab, form_of(lab)).json
    part = ask(lab, form_of(lab, scope="system/Patient.r")).json

    assert whole["scope"] == "system/DiagnosticReport.rs system/Patient.r"
    assert part["scope"] == "system/Patient.r"


def tokens_in(lab: Integrator, chain: str) -> Counter[int]:
    """Return how many refused tokens a chain has of each status, in one record or in several."""
    found: Counter[int] = Counter()
    for one in read_chain(lab, chain):
        if one["action"] == "token" and one["status"] >= 400:
            found[one["status"]] += one["count"]
    return found


def test_a_refused_client_is_counted_in_the_chain_of_its_tenant(lab: Integrator) -> None:
    for _ in range(2):
        assert ask(lab, form_of(lab, client_secret="wrong")).status == 401

    assert tokens_in(lab, lab.tenant.id) == {401: 2}


def test_a_malformed_request_is_counted_in_the_chain_of_the_service(lab: Integrator) -> None:
    before = tokens_in(lab, "")
    assert ask(lab, b"grant_type=x").status == 400

    assert tokens_in(lab, "") - before == {400: 1}


@pytest.mark.parametrize(
    ("problem", "status"), [(KeyError("a fault"), 500), (StoreUnavailable("away"), 503)]
)
def test_a_request_that_the_service_fails_is_not_counted_as_refused(
    lab: Integrator, problem: Exception, status: int
) -> None:
    async def grant(*_message: Any, **_more: Any) -> Any:
        raise problem

    async def found() -> int:
        services = replace(running(lab).services, tokens=cast("Any", SimpleNamespace(grant=grant)))
        async with asked(lab, "POST", "/oauth/token", FORM, services=services) as one:
            one.handler.data_received(form_of(lab))
            one.handler.run()
            await one.exchange.wait_ended()
            return one.exchange.status

    before = tokens_in(lab, "")

    assert running(lab).call(found()) == status
    assert tokens_in(lab, "") - before == {}


def behind_a_proxy(lab: Integrator, certificate: str) -> tuple[int, Any]:
    """Return what a request for a token gets that a trusted proxy passes on."""

    async def found() -> tuple[int, Any]:
        services = running(lab).services
        server = replace(
            services.config.server, certificate_header=HEADER, trusted_proxies=["127.0.0.1"]
        )
        services = replace(services, config=replace(services.config, server=server))
        given = {**FORM, HEADER: certificate} if certificate else FORM
        async with asked(lab, "POST", "/oauth/token", given, services=services) as one:
            one.handler.data_received(form_of(lab))
            one.handler.run()
            await one.exchange.wait_ended()
            return one.exchange.status, orjson.loads(one.exchange.body or b"")

    result: tuple[int, Any] = running(lab).call(found())
    return result


def test_a_certificate_that_cannot_be_read_grants_no_token(lab: Integrator) -> None:
    status, body = behind_a_proxy(lab, "none at all")

    assert (status, body["error"]) == (400, "invalid_request")
    assert "certificate that cannot be read" in body["error_description"]


def test_without_a_certificate_a_token_is_granted(lab: Integrator) -> None:
    assert behind_a_proxy(lab, "")[0] == 200


@pytest.mark.parametrize("enabled", [True, False])
def test_scopes_of_the_trail_are_offered_where_there_is_one(
    lab: Integrator, *, enabled: bool
) -> None:
    async def found() -> list[str]:
        services = running(lab).services
        audit = replace(services.config.audit, enabled=enabled)
        services = replace(services, config=replace(services.config, audit=audit))
        path = "/.well-known/smart-configuration"
        async with asked(lab, "GET", path, services=services) as one:
            one.handler.run()
            await one.exchange.wait_ended()
            scopes: list[str] = orjson.loads(one.exchange.body or b"")["scopes_supported"]
            return scopes

    scopes = running(lab).call(found())
    assert any("AuditEvent" in scope for scope in scopes) is enabled
    assert any("DiagnosticReport" in scope for scope in scopes)


def test_scopes_of_all_that_can_be_found_are_offered(service: RunningService) -> None:
    found = service.request("GET", "/.well-known/smart-configuration").json["scopes_supported"]

    for name in ("DiagnosticReport", "Observation", "Specimen"):
        assert any(scope.startswith(f"system/{name}.") for scope in found), name


def test_a_token_is_bound_to_the_certificate_that_the_proxy_passes_on(lab: Integrator) -> None:
    certificate = b"\x30\x01"

    status, body = behind_a_proxy(lab, f":{base64.b64encode(certificate).decode()}:")

    payload = body["access_token"].split(".")[1]
    claims = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    digest = base64.urlsafe_b64encode(hashlib.sha256(certificate).digest()).rstrip(b"=")
    assert (status, claims["cnf"]) == (200, {"x5t#S256": digest.decode()})


def test_two_headers_with_credentials_are_refused(lab: Integrator) -> None:
    pair = base64.b64encode(f"{lab.client_id}:{lab.client_secret}".encode()).decode()
    audience = lab.service.config.auth.audience
    body = f"grant_type=client_credentials&audience={audience}".encode()
    lines = ("Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}")

    found = [
        raw.request(
            lab.service,
            "POST /oauth/token",
            *lines,
            *[f"Authorization: Basic {pair}"] * count,
            body=body,
        ).status
        for count in (1, 2)
    ]

    assert found == [200, 400]


def test_credentials_in_the_address_are_refused(lab: Integrator) -> None:
    answer = ask(lab, form_of(lab), f"/oauth/token?client_secret={lab.client_secret}")

    assert (answer.status, answer.json["error"]) == (400, "invalid_request")
