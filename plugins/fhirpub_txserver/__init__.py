"""Looks codes up at a FHIR terminology server."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.plugin_api import CodeSource, PluginContext, hookimpl
from fhirpub_txserver.client import TerminologyServer
from fhirpub_txserver.settings import ServerSettings


@hookimpl
def fhirpub_settings() -> type[ServerSettings]:
    """Return where the server is."""
    return ServerSettings


@hookimpl
def fhirpub_terminology(context: PluginContext) -> Sequence[CodeSource]:
    """Add the server, if there is one."""
    settings = context.settings(ServerSettings)
    return [TerminologyServer(settings)] if settings.url else []
