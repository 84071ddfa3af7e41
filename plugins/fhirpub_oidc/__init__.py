"""Accepts the access tokens of OpenID Connect issuers that the operator names."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.plugin_api import PluginContext, TokenIssuer, hookimpl
from fhirpub_oidc.claims import issuers_of
from fhirpub_oidc.settings import IssuerSettings


@hookimpl
def fhirpub_settings() -> type[IssuerSettings]:
    """Return which issuers there are, and what their claims mean."""
    return IssuerSettings


@hookimpl
def fhirpub_authenticate(context: PluginContext) -> Sequence[TokenIssuer]:
    """Add the issuers."""
    return issuers_of(context.settings(IssuerSettings))
