"""The console, served where the settings ask for it; others do not even import it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from socket import socket

from tornado.netutil import bind_sockets

from fhirpub.app.administration import create_interface
from fhirpub.config.console import ConsoleConfig
from fhirpub.errors import ConfigurationError
from fhirpub.http.server import Bounds, Server
from fhirpub.http.sockets import REFUSALS, reserve_address, why_not
from fhirpub.web.adapter import RequestRouterAdapter
from fhirpub.web.routes import Route, routes
from fhirpub.web.services import Services


def table_of(services: Services) -> Sequence[Route]:
    """Return the routes of the service, with those of the console if it serves that as well."""
    config = services.config.console
    if not config.enabled or config.port:
        return routes(services)
    return [*routes(services), *_routes(services)]


@contextmanager
def reserve_console(config: ConsoleConfig) -> Iterator[None]:
    """Reserve its own port for workers to share, until the block ends.

    Raises ConfigurationError.
    """
    if not config.enabled or not config.port:
        yield
        return
    try:
        reserved = reserve_address(config.host, config.port)
    except REFUSALS as problem:
        raise _cannot_listen(config, problem) from None
    with reserved:
        yield


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
    server.add_sockets(_bind(config, reuse_port=services.config.server.workers > 1))
    try:
        yield
    finally:
        server.stop()
        await server.close_all_connections()


def _routes(services: Services) -> Sequence[Route]:
    from fhirpub.console.creation import create_console  # noqa: PLC0415 - few need it
    from fhirpub.console.routes import console_routes  # noqa: PLC0415

    return console_routes(create_console(services, create_interface(services)))


def _bind(config: ConsoleConfig, *, reuse_port: bool) -> list[socket]:
    try:
        return bind_sockets(config.port, address=config.host, reuse_port=reuse_port)
    except REFUSALS as problem:
        raise _cannot_listen(config, problem) from None


def _cannot_listen(config: ConsoleConfig, problem: Exception) -> ConfigurationError:
    address = f"{config.host} port {config.port}"
    return ConfigurationError(f"[console] port: cannot listen on {address}: {why_not(problem)}")
