"""Makes the console of a service from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fhirpub.administration.http.interface import Interface
from fhirpub.auth.passkeys import why_none
from fhirpub.auth.throttle import Throttle
from fhirpub.config.console import console_base_url, origin_of
from fhirpub.config.settings import Config
from fhirpub.console.console import Console
from fhirpub.console.openid import OpenIdProvider
from fhirpub.console.sessions import Sessions
from fhirpub.runtime.clock import Clock
from fhirpub.web.routes import Router
from fhirpub.web.services import Services

if TYPE_CHECKING:
    from fhirpub.console.ceremonies import Ceremonies


def create_console(services: Services, interface: Interface) -> Console:
    """Create the console of a service, in which operators run operations by an interface."""
    config, clock = services.config, services.clock
    sessions = Sessions(config, services.tokens, services.store, clock=clock)
    throttle = Throttle(config.limits.token_failures, clock=clock)
    return Console(
        services,
        sessions,
        interface,
        Router(services),
        throttle,
        _create_ceremonies(config),
        _create_provider(config, clock),
    )


def _create_provider(config: Config, clock: Clock) -> OpenIdProvider | None:
    if not config.console.oidc_issuer:
        return None
    from fhirpub.console.provider_client import request  # noqa: PLC0415 - imports aiohttp

    redirect = f"{console_base_url(config.console, config.base_url)}/console/sign-in/provider"
    return OpenIdProvider(config.console, redirect=redirect, request=request, clock=clock)


def _create_ceremonies(config: Config) -> Ceremonies | None:
    """Return how persons make and use passkeys; None where there can be none."""
    if why_none(config):
        return None
    from fhirpub.console.ceremonies import Ceremonies  # noqa: PLC0415 - needs an extra

    url = console_base_url(config.console, config.base_url)
    return Ceremonies(urlsplit(url).hostname or "", origin_of(url))
