"""Settings for the tests of warnings."""

from __future__ import annotations

from typing import Any

from fhirpub.config.settings import (
    AuthConfig,
    Config,
    FhirConfig,
    LimitsConfig,
    ServerConfig,
    StorageConfig,
)

_SERVER: dict[str, Any] = {"base_url": "https://fhir.lab", "trusted_proxies": ["127.0.0.1"]}


def production(
    url: str = "sqlite:///f.db", *, audience: str = "https://fhir.lab/fhir", **server: Any
) -> Config:
    """Return settings for production without any other reason for a warning."""
    return Config(
        server=ServerConfig(**_SERVER | server),
        auth=AuthConfig(environment="production", audience=audience, enforce_scopes=True),
        storage=StorageConfig(url=url),
        fhir=FhirConfig(hash_check="strict"),
        limits=LimitsConfig(connections=64),
    )
