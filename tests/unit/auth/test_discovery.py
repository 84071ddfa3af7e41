from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.auth.scopes import gives_something
from fhirpub.errors import TokenRefused
from tests.unit.auth.conftest import ISSUER, World

METHODS = ["client_secret_basic", "client_secret_post", "private_key_jwt"]
BASE = "https://fhir.example.org"


async def test_the_server_metadata_say_what_is_offered(world: World) -> None:
    assert world.tokens.metadata(BASE) == {
        "issuer": ISSUER,
        "token_endpoint": "https://fhir.example.org/oauth/token",
        "revocation_endpoint": "https://fhir.example.org/oauth/revoke",
        "jwks_uri": "https://fhir.example.org/.well-known/jwks.json",
        "grant_types_supported": ["client_credentials"],
        "response_types_supported": [],
        "token_endpoint_auth_methods_supported": METHODS,
        "token_endpoint_auth_signing_alg_values_supported": ["RS384", "ES384", "RS256", "ES256"],
        "revocation_endpoint_auth_methods_supported": METHODS,
        "revocation_endpoint_auth_signing_alg_values_supported": [
            "RS384",
            "ES384",
            "RS256",
            "ES256",
        ],
    }


async def test_all_addresses_are_where_the_service_is_and_not_at_its_issuer(world: World) -> None:
    metadata = world.tokens.metadata("https://elsewhere.example.org")

    places = [value for value in metadata.values() if isinstance(value, str)]
    assert [place.startswith("https://elsewhere.") for place in places] == [False, *[True] * 3]
    assert metadata["issuer"] == ISSUER


@pytest.mark.parametrize("enforced", [True, False])
async def test_scopes_are_a_capability_only_where_they_are_enforced(
    make_world: Callable[..., Any], *, enforced: bool
) -> None:
    world: World = await make_world(enforce_scopes=enforced)

    smart = world.tokens.smart_configuration(BASE, types=["DiagnosticReport"])

    assert world.tokens.metadata(BASE).items() <= smart.items()
    assert ("permission-v2" in smart["capabilities"]) is enforced
    assert {"client-confidential-asymmetric", "client-confidential-symmetric"} <= {
        *smart["capabilities"]
    }


async def test_the_smart_configuration_has_what_backend_services_need(world: World) -> None:
    smart = world.tokens.smart_configuration(BASE, types=["DiagnosticReport"])

    assert smart["scopes_supported"] == [
        "system/*.cruds",
        "system/*.rs",
        "system/*.read",
        "system/*.write",
        "system/DiagnosticReport.cruds",
        "system/DiagnosticReport.rs",
        "webhooks.read",
        "webhooks.write",
    ]
    assert all(gives_something(scope) for scope in smart["scopes_supported"])
    assert smart["code_challenge_methods_supported"] == []


@pytest.mark.parametrize("grant", ["authorization_code", "refresh_token", "password"])
async def test_a_grant_that_is_not_listed_is_refused(world: World, grant: str) -> None:
    with pytest.raises(TokenRefused) as raised:
        await world.ask(grant_type=grant)

    assert raised.value.error == "unsupported_grant_type"
