"""What clients can read about the token endpoint before they use it (RFC 8414, SMART)."""

from __future__ import annotations

from typing import Any

from fhirpub.config.settings import AuthConfig

_GRANTS = ["client_credentials"]
_METHODS = ["client_secret_basic", "client_secret_post"]


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
        "revocation_endpoint_auth_methods_supported": _METHODS,
    }


def smart_configuration(base_url: str, *, issuer: str, config: AuthConfig) -> dict[str, Any]:
    """Return the SMART configuration; scopes are a capability only where they are enforced."""
    capabilities = ["client-confidential-symmetric"]
    if config.enforce_scopes:
        capabilities += ["permission-v1", "permission-v2"]
    return {
        **server_metadata(base_url, issuer=issuer),
        "code_challenge_methods_supported": [],
        "capabilities": capabilities,
    }
