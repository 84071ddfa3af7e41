"""The console, made and served where the settings ask for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from socket import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tornado.netutil import bind_sockets

from fhirpub.app.administration import create_interface
from fhirpub.auth.passkeys import why_none
from fhirpub.auth.throttle import Throttle
from fhirpub.config.console import ConsoleConfig, console_base_url, origin_of
from fhirpub.config.settings import Config
from fhirpub.console.console import Console
from fhirpub.console.routes import console_routes
from fhirpub.console.sessions import Sessions
from fhirpub.errors import ConfigurationError
from fhirpub.http.server import Bounds, Server
from fhirpub.http.sockets import REFUSALS, reserve_address, why_not
from fhirpub.web.adapter import RequestRouterAdapter
from fhirpub.web.routes import Route, Router, routes
from fhirpub.web.services import Services

if TYPE_CHECKING:
    from fhirpub.console.ceremonies import Ceremonies


def create_console(services: Services) -> Console:
    """Create the console of a service."""
    config, clock = services.config, services.clock
    sessions = Sessions(config, services.tokens, services.store, clock=clock)
    throttle = Throttle(config.limits.token_failures, clock=clock)
    return Console(
        services,
        sessions,
        create_interface(services),
        Router(services),
        throttle,
        _create_ceremonies(config),
    )


def _create_ceremonies(config: Config) -> Ceremonies | None:
    """Return how persons make and use passkeys; None where there can be none."""
    if why_none(config):
        return None
    from fhirpub.console.ceremonies import Ceremonies  # noqa: PLC0415 - needs an extra

    url = console_base_url(config.console, config.base_url)
    return Ceremonies(urlsplit(url).hostname or "", origin_of(url))


def table_of(services: Services) -> Sequence[Route]:
    """Return the routes of the service, with those of the console if it serves that as well."""
    config = services.config.console
    if not config.enabled or config.port:
        return routes(services)
    return [*routes(services), *console_routes(create_console(services))]


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
    table = console_routes(create_console(services))
    server = Server(RequestRouterAdapter(services, table), bounds)
    server.add_sockets(_bind(config, reuse_port=services.config.server.workers > 1))
    try:
        yield
    finally:
        server.stop()
        await server.close_all_connections()


def _bind(config: ConsoleConfig, *, reuse_port: bool) -> list[socket]:
    try:
        return bind_sockets(config.port, address=config.host, reuse_port=reuse_port)
    except REFUSALS as problem:
        raise _cannot_listen(config, problem) from None


def _cannot_listen(config: ConsoleConfig, problem: Exception) -> ConfigurationError:
    address = f"{config.host} port {config.port}"
    return ConfigurationError(f"[console] port: cannot listen on {address}: {why_not(problem)}")
