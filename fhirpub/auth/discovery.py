"""What clients can read about the token endpoint before they use it (RFC 8414, SMART)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fhirpub.auth.assertions.key_set import ALGORITHMS
from fhirpub.auth.scopes import WEBHOOKS
from fhirpub.config.settings import AuthConfig

_GRANTS = ["client_credentials"]
_METHODS = ["client_secret_basic", "client_secret_post", "private_key_jwt"]

_ANY_TYPE = [f"system/*.{form}" for form in ("cruds", "rs", "read", "write")]


def server_metadata(base_url: str, *, issuer: str) -> dict[str, Any]:
    """Return the authorization server's metadata; it has no authorization endpoint."""
    return {
        "issuer": issuer,
        "token_endpoint": f"{base_url}/oauth/token",
        "revocation_endpoint": f"{base_url}/oauth/revoke",
        "jwks_uri": f"{base_url}/.well-known/jwks.json",
        "grant_types_supported": _GRANTS,
        "response_types_supported": [],
        "token_endpoint_auth_methods_supported": _METHODS,
        "token_endpoint_auth_signing_alg_values_supported": [*ALGORITHMS],
        "revocation_endpoint_auth_methods_supported": _METHODS,
        "revocation_endpoint_auth_signing_alg_values_supported": [*ALGORITHMS],
    }


def smart_configuration(
    base_url: str, *, issuer: str, config: AuthConfig, types: Iterable[str]
) -> dict[str, Any]:
    """Return the SMART configuration; scopes are a capability only where they are enforced.

    ``types`` are the resource types that scopes may name.
    """
    capabilities = ["client-confidential-asymmetric", "client-confidential-symmetric"]
    if config.enforce_scopes:
        capabilities += ["permission-v1", "permission-v2"]
    named = [f"system/{name}.{form}" for name in types for form in ("cruds", "rs")]
    return {
        **server_metadata(base_url, issuer=issuer),
        "scopes_supported": [*_ANY_TYPE, *named, *WEBHOOKS],
        "code_challenge_methods_supported": [],
        "capabilities": capabilities,
    }
