"""Who may administer the service: by the bootstrap key, or by an assertion."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from fhirpub.administration.http.callers import TYPE, Callers
from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.auth.assertions.verification import TYPE as ASSERTION
from fhirpub.auth.keys import KeyRing
from fhirpub.auth.statements import read_statement, sign_statement
from fhirpub.auth.token_request import Message
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.service import Answer
from tests.administration.conftest import BOOTSTRAP_KEY, CALLER, Administered


def test_an_assertion_gets_a_short_token_that_is_taken_as_its_caller(
    administered: Administered,
) -> None:
    granted = administered.token_for(administered.assertion())

    assert (granted.status, granted.json["expires_in"]) == (200, 300)
    token = granted.json["access_token"]
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}, key=token).json["id"]
    assert administered.audit(tenant)[0]["user"] == CALLER


def test_a_token_lives_no_longer_than_a_retired_key_verifies(administered: Administered) -> None:
    service = administered.service
    auth = replace(service.config.auth, token_seconds=120, assertion_token_seconds=60)
    ring = KeyRing(service.services.store, auth, clock=now_ms)
    callers = Callers(service.config.admin, ring, service.services.store, clock=now_ms)
    fields = {
        "grant_type": "client_credentials",
        "client_assertion_type": ASSERTION,
        "client_assertion": administered.assertion(),
    }
    form = "application/x-www-form-urlencoded"
    message = Message(content_type=form, body=urlencode(fields).encode())

    granted = service.call(callers.grant(message))

    claims = service.call(read_statement(ring, granted["access_token"], type_=TYPE))
    assert granted["expires_in"] == claims["exp"] - claims["iat"] == 120


def test_an_assertion_of_another_library_is_taken(administered: Administered) -> None:
    now = now_ms() // 1000
    claims = {
        "iss": CALLER,
        "sub": CALLER,
        "aud": f"{administered.url}/admin/v1/token",
        "exp": now + 60,
        "jti": "of-another",
    }
    key = ECKey.import_key(dict(administered.private_key))
    header = {"alg": "ES384", "kid": administered.private_key["kid"]}

    signed = jwt.encode(header, claims, key, algorithms=["ES384"])

    assert administered.token_for(signed).status == 200


def test_an_assertion_is_taken_once(administered: Administered) -> None:
    assertion = administered.assertion()

    first, again = (administered.token_for(assertion) for _ in range(2))

    assert (first.status, again.status) == (200, 401)
    assert again.json["error"] == "invalid_client"
    assert "used before" in again.json["error_description"]


def test_the_audience_is_the_interface(administered: Administered) -> None:
    for_clients = f"{administered.service.base_url}/oauth/token"

    refused = administered.token_for(administered.assertion(audience=for_clients))

    assert refused.status == 401
    assert (
        f"must have the aud {administered.url}/admin/v1/token" in refused.json["error_description"]
    )


@pytest.mark.parametrize("subject", ["bootstrap", "unknown", "../terraform"])
def test_who_is_not_in_the_settings_gets_no_token(
    administered: Administered, subject: str
) -> None:
    assert administered.token_for(administered.assertion(subject=subject)).status == 401


def test_another_key_gets_no_token(administered: Administered) -> None:
    private, _public = new_key_pair()
    same_name = private | {"kid": administered.private_key["kid"]}

    assert administered.token_for(administered.assertion(key=same_name)).status == 401


def test_an_expired_assertion_gets_no_token(administered: Administered) -> None:
    refused = administered.token_for(administered.assertion(clock=lambda: now_ms() - 3_600_000))

    assert (refused.status, "has expired" in refused.json["error_description"]) == (401, True)


def test_a_key_that_is_replaced_in_its_file_counts_at_once(administered: Administered) -> None:
    file = Path(administered.service.config.admin.callers[0].partition("=")[2])
    before, (private, public) = file.read_bytes(), new_key_pair()
    try:
        file.write_bytes(orjson.dumps(public))

        assert administered.token_for(administered.assertion()).status == 401
        assert administered.token_for(administered.assertion(key=private)).status == 200
    finally:
        file.write_bytes(before)


@pytest.mark.parametrize("key", [None, "", "wrong", "a.b.c", "c0ffee"])
def test_without_a_right_key_nothing_is_served(
    administered: Administered, key: str | None
) -> None:
    for path in ("/tenants", "/openapi.json", "/nothing"):
        refused = administered.request("GET", path, key=key)

        assert refused.status == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")


def test_the_token_of_a_client_administers_nothing(administered: Administered) -> None:
    token = administered.service.integrator().token

    assert administered.request("GET", "/tenants", key=token).status == 401


def test_a_token_for_administration_is_none_of_a_client(administered: Administered) -> None:
    token = administered.token_for(administered.assertion()).json["access_token"]
    headers = {"Authorization": f"Bearer {token}"}

    assert (
        administered.service.request("GET", "/fhir/r4/DiagnosticReport", headers=headers).status
        == 401
    )


@pytest.mark.parametrize(
    ("changes", "type_", "reason"),
    [
        ({"exp": 1}, TYPE, "has expired"),
        ({"exp": None}, TYPE, "has expired"),
        ({"exp": "9999999999"}, TYPE, "has expired"),
        ({"aud": "https://admin.example.org/admin/v1"}, TYPE, "audience"),
        ({"sub": "removed"}, TYPE, "not of this service"),
        ({"sub": "bootstrap"}, TYPE, "not of this service"),
        ({"sub": [CALLER]}, TYPE, "not of this service"),
        ({}, "at+jwt", "not of this service"),
        ({}, "audit-checkpoint+jwt", "not of this service"),
    ],
)
def test_a_signed_token_that_is_not_of_a_caller_now_is_refused(
    administered: Administered, changes: dict[str, Any], type_: str, reason: str
) -> None:
    claims = {"sub": CALLER, "aud": f"{administered.url}/admin/v1", "exp": now_ms() // 1000 + 60}
    ring = administered.service.services.tokens.ring

    def asked(claims: dict[str, Any], type_: str) -> Answer:
        token = administered.service.call(sign_statement(ring, claims, type_=type_))
        return administered.request("GET", "/tenants", key=token)

    assert asked(claims, TYPE).status == 200
    refused = asked(claims | changes, type_)
    assert refused.status == 401
    assert reason in refused.issues[0]["diagnostics"]


def test_a_caller_with_several_headers_is_refused(administered: Administered) -> None:
    with socket.create_connection(("127.0.0.1", administered.port), timeout=20) as connection:
        header = f"Authorization: Bearer {BOOTSTRAP_KEY}\r\n".encode()
        lines = b"GET /admin/v1/tenants HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        connection.sendall(lines + header * 2 + b"\r\n")
        received = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert received.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b" " * 100_000, None])
def test_a_file_of_keys_that_cannot_be_used_has_none(
    administered: Administered, content: bytes | None
) -> None:
    file = Path(administered.service.config.admin.callers[0].partition("=")[2])
    before = file.read_bytes()
    try:
        file.unlink()
        if content is not None:
            file.write_bytes(content)

        refused = administered.token_for(administered.assertion())
    finally:
        file.write_bytes(before)

    assert (refused.status, refused.json["error"]) == (401, "invalid_client")
    assert str(file) not in refused.json["error_description"]


def test_the_service_itself_has_no_administration(administered: Administered) -> None:
    assert administered.service.request("GET", "/admin/v1/tenants").status == 404


def test_a_refusal_is_counted_in_the_audit_trail(administered: Administered) -> None:
    administered.request("GET", "/tenants", key="wrong")

    audit = administered.service.services.audit
    assert audit is not None
    administered.service.call(audit.settle())
    (record, *_) = [one for one in administered.audit() if one["action"] == "unauthenticated"]
    assert (record["status"], record["address"]) == (401, "127.0.0.1")
