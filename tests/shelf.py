"""The plugins that come with the service."""

from __future__ import annotations

from fhirpub.plugin_host.sources import available

SHELF = sorted(source.name for source in available() if source.name != "oidc")
"""All that can be enabled without settings: one of them has to be given an issuer."""
