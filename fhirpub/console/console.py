"""The console of one service: its sessions, and the interfaces that its pages ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fhirpub.administration.http.interface import Interface
from fhirpub.auth.throttle import Throttle
from fhirpub.config.console import console_base_url, origin_of
from fhirpub.config.settings import Config
from fhirpub.console.internal import ServiceClient
from fhirpub.console.openid import OpenIdProvider
from fhirpub.console.sessions import Sessions
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.routes import Router
from fhirpub.web.services import Services

if TYPE_CHECKING:
    from fhirpub.console.ceremonies import Ceremonies


@dataclass(frozen=True, slots=True)
class Console:
    """What all pages work with; made by the composition root."""

    services: Services
    sessions: Sessions
    interface: Interface
    router: Router
    """The routes of the service, which pages ask in memory."""
    throttle: Throttle
    """What slows down guesses at sign-in."""
    ceremonies: Ceremonies | None
    """How persons make and use passkeys, where that is possible."""
    provider: OpenIdProvider | None
    """The provider by which people sign in, if the settings name one."""

    @property
    def config(self) -> Config:
        """The settings of the service."""
        return self.services.config

    @property
    def base_url(self) -> str:
        """The URL by which browsers reach it, without a slash at its end."""
        return console_base_url(self.config.console, self.config.base_url)

    @property
    def origin(self) -> str:
        """The origin of its pages (RFC 6454)."""
        return origin_of(self.base_url)

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by HTTPS."""
        return self.base_url.startswith("https://")

    def client(self, handler: BaseHandler) -> ServiceClient:
        """Return what asks the service for one request of a browser."""
        return ServiceClient(self.router, self.services, handler)
