"""The console, served where the settings ask for it; others do not even import it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from fhirpub.app.administration import create_interface
from fhirpub.http.own_ports import bind_own_port
from fhirpub.http.server import Bounds, Server
from fhirpub.web.adapter import RequestRouterAdapter
from fhirpub.web.routes import Route, routes
from fhirpub.web.services import Services


def table_of(services: Services) -> Sequence[Route]:
    """Return the routes of the service, with those of the console if it serves that as well."""
    config = services.config.console
    if not config.enabled or config.port:
        return routes(services)
    return [*routes(services), *_routes(services)]


@asynccontextmanager
async def serving_console(services: Services, bounds: Bounds) -> AsyncGenerator[None, None]:
    """Serve the console on its own port until the block ends, if the settings name one.

    Raises ConfigurationError.
    """
    config = services.config.console
    if not config.enabled or not config.port:
        yield
        return
    server = Server(RequestRouterAdapter(services, _routes(services)), bounds)
    reuse_port = services.config.server.workers > 1
    server.add_sockets(bind_own_port("console", config, reuse_port=reuse_port))
    try:
        yield
    finally:
        server.stop()
        await server.close_all_connections()


def _routes(services: Services) -> Sequence[Route]:
    from fhirpub.console.creation import create_console  # noqa: PLC0415 - few need it
    from fhirpub.console.routes import console_routes  # noqa: PLC0415

    return console_routes(create_console(services, create_interface(services)))
