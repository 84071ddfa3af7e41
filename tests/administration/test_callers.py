"""Who may administer the service: by the bootstrap key, or by an assertion."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.runtime.clock import now_ms
from tests.administration.conftest import CALLER, Administered


def test_an_assertion_gets_a_short_token_that_is_taken_as_its_caller(
    administered: Administered,
) -> None:
    granted = administered.token_for(administered.assertion())

    assert (granted.status, granted.json["expires_in"]) == (200, 300)
    token = granted.json["access_token"]
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}, key=token).json["id"]
    assert administered.audit(tenant)[0]["user"] == CALLER


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


@pytest.mark.parametrize("subject", ["bootstrap", "nobody", "../terraform"])
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


def test_the_service_itself_has_no_administration(administered: Administered) -> None:
    assert administered.service.request("GET", "/admin/v1/tenants").status == 404


def test_a_refusal_is_counted_in_the_audit_trail(administered: Administered) -> None:
    administered.request("GET", "/tenants", key="wrong")

    assert administered.service.services.audit is not None
    assert administered.request("GET", "/audit").status == 200
