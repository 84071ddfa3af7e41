"""The one table of URLs, and the router that reads it.

A path that no row has is 404, a method that its rows do not have is 405 with ``Allow``: both
before anybody is asked for a token (decisions, part 0).
"""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tornado.httputil import HTTPServerRequest
from tornado.web import Application, HTTPError, stream_request_body

from fhirpub.errors import ConfigurationError
from fhirpub.interactions.capabilities import own_resources, statement
from fhirpub.logs import logger
from fhirpub.web.base import BaseHandler, BodyHandler, streamed
from fhirpub.web.binary import BinaryHandler
from fhirpub.web.health import LiveHandler, ReadyHandler
from fhirpub.web.history import HistoryHandler
from fhirpub.web.metadata import MetadataHandler, PublicMetadataHandler
from fhirpub.web.read import OwnHandler, PartHandler, ReadHandler, VersionHandler
from fhirpub.web.register import CreateHandler, RegisterHandler
from fhirpub.web.search import SearchFormHandler, SearchHandler
from fhirpub.web.services import Services
from fhirpub.web.token import (
    KeysHandler,
    ServerMetadataHandler,
    SmartConfigurationHandler,
    TokenHandler,
    write_method_not_allowed,
)
from fhirpub.web.update import UpdateHandler

_log = logger()

SMALL_BODY_BYTES = 65_536
"""A body up to this length is read before its handler is made, which costs less."""


@dataclass(frozen=True)
class Route:
    """A method and a path. ``{}`` in the path is one segment, handed to the handler."""

    method: str
    path: str
    handler: type[BaseHandler]
    type_name: str = ""

    @cached_property
    def for_large_bodies(self) -> type[BaseHandler]:
        """The handler of a body that does not fit into one piece."""
        if issubclass(self.handler, BodyHandler) and not self.handler.streams:
            return streamed(self.handler)
        return self.handler


def routes(services: Services) -> list[Route]:
    """Return every URL of the service, those asked for most first."""
    parts = {part.type for each in services.types.values() for part in each.parts}
    config = services.config.fhir
    about = PublicMetadataHandler if config.metadata_public else MetadataHandler
    return [
        *(route for name in services.types for route in _of_type(name)),
        *(Route("GET", f"/fhir/r4/{name}/{{}}", PartHandler, name) for name in sorted(parts)),
        Route("GET", "/fhir/r4/Binary/{}", BinaryHandler, "Binary"),
        Route("GET", "/fhir/r4/CapabilityStatement/{}", OwnHandler, "CapabilityStatement"),
        Route("GET", "/fhir/r4/OperationDefinition/{}", OwnHandler, "OperationDefinition"),
        Route("GET", "/fhir/r4/metadata", about),
        Route("GET", "/metadata", about),
        Route("POST", "/oauth/token", TokenHandler),
        Route("GET", "/.well-known/jwks.json", KeysHandler),
        Route("GET", "/.well-known/oauth-authorization-server", ServerMetadataHandler),
        Route("GET", "/.well-known/smart-configuration", SmartConfigurationHandler),
        Route("GET", "/fhir/r4/.well-known/smart-configuration", SmartConfigurationHandler),
        Route("GET", "/health/live", LiveHandler),
        Route("GET", "/health/ready", ReadyHandler),
    ]


def _of_type(name: str) -> list[Route]:
    base = f"/fhir/r4/{name}"
    return [
        Route("GET", f"{base}/{{}}", ReadHandler, name),
        Route("PATCH", f"{base}/{{}}", UpdateHandler, name),
        Route("POST", f"{base}/$register", RegisterHandler, name),
        Route("GET", base, SearchHandler, name),
        Route("POST", base, CreateHandler, name),
        Route("POST", f"{base}/_search", SearchFormHandler, name),
        Route("GET", f"{base}/{{}}/_history", HistoryHandler, name),
        Route("GET", f"{base}/{{}}/_history/{{}}", VersionHandler, name),
    ]


def application(services: Services) -> Application:
    """Return the application that serves the table of URLs."""
    table = routes(services)
    for route in table:
        if not hasattr(route.handler, "requires_token"):
            raise ConfigurationError(f"{route.path} does not state whether it needs a token")
    return _Application(
        services,
        table,
        log_function=_log_every if services.config.logs.level == "debug" else _log_refusal,
        request_ids=map(f"{secrets.token_hex(6)}-{{:x}}".format, itertools.count(1)),
        own_resources=own_resources(services.context),
        statement=statement(services.context),
    )


@stream_request_body
class NotFoundHandler(BodyHandler):
    """Answer a path that does not exist."""

    streams = True

    requires_token = False
    status = 404

    def check_format(self) -> None:
        """Take any Accept."""

    def check_content_type(self) -> None:
        """Take any body, to throw it away."""

    def data_received(self, chunk: bytes) -> None:
        """Throw a piece of the body away, however many there are."""

    def refuse(self) -> None:
        """Refuse once the body has been read."""
        self.services.bodies.end(self.request)
        raise HTTPError(self.status)

    get = head = post = put = patch = delete = options = refuse

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Refuse a method that nobody has as any other."""
        super().write_error(self.status if status_code == 405 else status_code, **kwargs)


class MethodNotAllowedHandler(NotFoundHandler):
    """Answer a method that its path does not have, and tell those that it has (D-16, D-148)."""

    status = 405

    def initialize(self, services: Services, type_name: str = "", allow: str = "") -> None:
        """Take the methods that there are."""
        super().initialize(services, type_name)
        self._allow = allow
        self.set_header("Allow", allow)

    def options(self) -> None:
        """Tell the methods."""
        self.set_status(204)
        self.finish()

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Tell the methods with the refusal."""
        self.set_header("Allow", self._allow)
        super().write_error(status_code, **kwargs)


class TokenMethodNotAllowedHandler(MethodNotAllowedHandler):
    """Answer a method that the token endpoint does not have."""

    def write_error(self, status_code: int, **kwargs: Any) -> None:  # noqa: ARG002 - Tornado's
        """Tell the methods, in OAuth's words."""
        self.set_header("Allow", self._allow)
        write_method_not_allowed(self)


@dataclass(slots=True)
class _Path:
    pattern: re.Pattern[str]
    methods: dict[str, Route] = field(default_factory=dict)

    @property
    def refusing(self) -> type[MethodNotAllowedHandler]:
        """The handler of the methods that the path does not have."""
        own = any(route.handler is TokenHandler for route in self.methods.values())
        return TokenMethodNotAllowedHandler if own else MethodNotAllowedHandler


class _Application(Application):
    """Tornado's application with a router that knows methods."""

    def __init__(self, services: Services, table: Sequence[Route], **settings: Any) -> None:
        super().__init__([], **settings)
        self._services = services
        paths = _paths(table)
        # A path without a blank to fill is looked up first: /$register is no id.
        self._plain = {name: path for name, path in paths.items() if "{}" not in name}
        self._patterns = [path for name, path in paths.items() if "{}" in name]

    def find_handler(self, request: HTTPServerRequest, **_kwargs: Any) -> Any:
        """Return the delegate for a request: of its route, of a 405, or of a 404."""
        headers = request.headers
        if "," in headers.get("Content-Length", ""):
            headers["Content-Length"] = "two"  # Tornado would go on if both say the same
        self._services.bodies.begin(request)
        handler, arguments, groups = self._target(request)
        return self.get_handler_delegate(
            request, handler, {"services": self._services, **arguments}, list(groups)
        )

    def _target(
        self, request: HTTPServerRequest
    ) -> tuple[type[BaseHandler], Mapping[str, str], tuple[bytes, ...]]:
        groups: tuple[bytes, ...] = ()
        path = self._plain.get(request.path.replace("%24", "$"))
        if path is None:
            for path in self._patterns:
                match = path.pattern.fullmatch(request.path)
                if match is not None:
                    groups = tuple(each.encode() for each in match.groups())
                    break
            else:
                return NotFoundHandler, {}, ()
        method = "GET" if request.method == "HEAD" else str(request.method)
        route = path.methods.get(method)
        if route is None:
            return path.refusing, {"allow": _allow(path.methods)}, ()
        handler = route.handler if _is_small(request) else route.for_large_bodies
        return handler, {"type_name": route.type_name}, groups


def _paths(table: Sequence[Route]) -> dict[str, _Path]:
    paths: dict[str, _Path] = {}
    for route in table:
        if route.path not in paths:
            pattern = re.escape(route.path).replace(re.escape("{}"), "([^/]+)")
            paths[route.path] = _Path(re.compile(pattern))
        paths[route.path].methods[route.method] = route
    return paths


def _is_small(request: HTTPServerRequest) -> bool:
    """Tell whether a body can be waited for as a whole: it says how long it is, and is coming."""
    length = request.headers.get("Content-Length", "")
    # Of other types Tornado would read some by its own rules.
    if "Expect" in request.headers or "json" not in request.headers.get("Content-Type", ""):
        return False
    return length.isdecimal() and len(length) <= 5 and int(length) <= SMALL_BODY_BYTES


def _allow(methods: Mapping[str, Route]) -> str:
    heads = ["HEAD"] if "GET" in methods else []
    return ", ".join([*methods, *heads, "OPTIONS"])


def _log_every(handler: Any) -> None:
    if handler.get_status() < 400:
        _log.debug("answered", status=handler.get_status(), method=handler.request.method)
    _log_refusal(handler)


def _log_refusal(handler: Any) -> None:
    status = handler.get_status()
    if status < 400:
        return
    request: HTTPServerRequest = handler.request
    write: Callable[..., None] = _log.error if status >= 500 else _log.info
    write(
        "refused",
        status=status,
        method=request.method,
        handler=type(handler).__name__,
        type=handler.type_name,
        request_id=handler.request_id,
        milliseconds=round(request.request_time() * 1000, 1),
        client=getattr(getattr(handler, "caller", None), "client_id", None),
    )
