"""The console, made and served where the settings ask for it."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.app.administration import create_interface
from fhirpub.console.console import Console
from fhirpub.console.routes import console_routes
from fhirpub.console.sessions import Sessions
from fhirpub.web.routes import Route, Router, routes
from fhirpub.web.services import Services


def create_console(services: Services) -> Console:
    """Create the console of a service."""
    sessions = Sessions(services.config, services.tokens, services.store, clock=services.clock)
    return Console(services, sessions, create_interface(services), Router(services))


def table_of(services: Services) -> Sequence[Route]:
    """Return the routes of the service, with those of the console if it serves that as well."""
    config = services.config.console
    if not config.enabled or config.port:
        return routes(services)
    return [*routes(services), *console_routes(create_console(services))]
