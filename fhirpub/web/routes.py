"""The one table of URLs, and the router that reads it.

A path that no row has is 404, a method that its rows do not have is 405 with ``Allow``: both
before authentication (docs/behaviour/index.md, "Order of checks").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from fhirpub.audit.event import AUDIT_EVENT
from fhirpub.errors import ConfigurationError, FhirpubError
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.plugin_api.operations import PluginOperation
from fhirpub.web.addresses import Addresses
from fhirpub.web.handlers import webhook_deliveries
from fhirpub.web.handlers import webhook_endpoints as webhooks
from fhirpub.web.handlers.audit.events import (
    AuditEventHandler,
    AuditSearchFormHandler,
    AuditSearchHandler,
)
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.batch.handler import BatchHandler
from fhirpub.web.handlers.binary import BinaryHandler
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.health import LiveHandler, ReadyHandler
from fhirpub.web.handlers.history import HistoryHandler, TypeHistoryHandler
from fhirpub.web.handlers.metadata import MetadataHandler, OpenApiHandler, PublicMetadataHandler
from fhirpub.web.handlers.operation import OperationHandler
from fhirpub.web.handlers.patients.resources import (
    PatientHandler,
    PatientHistoryHandler,
    PatientSearchFormHandler,
    PatientSearchHandler,
    PatientVersionHandler,
)
from fhirpub.web.handlers.read import (
    MemberOrPartHandler,
    MemberOrPartVersionHandler,
    OwnHandler,
    PartHandler,
    PartVersionHandler,
    ProblemsHandler,
    ReadHandler,
    VersionHandler,
)
from fhirpub.web.handlers.refusals import (
    MethodNotAllowedHandler,
    NotFoundHandler,
    RefusingHandler,
    RootHandler,
    TokenMethodNotAllowedHandler,
    normalize,
)
from fhirpub.web.handlers.registrations.register import CreateHandler, RegisterHandler
from fhirpub.web.handlers.registrations.revise import ReviseHandler
from fhirpub.web.handlers.search import SearchFormHandler, SearchHandler
from fhirpub.web.handlers.token import (
    KeysHandler,
    OAuthHandler,
    RevocationHandler,
    ServerMetadataHandler,
    SmartConfigurationHandler,
    TokenHandler,
)
from fhirpub.web.handlers.update import ConditionalUpdateHandler, UpdateHandler
from fhirpub.web.handlers.validate import ValidateHandler
from fhirpub.web.message.request import Request
from fhirpub.web.services import Services

_FHIR = "/fhir/r4"
_BLANK = "([^/$][^/]*)"
"""What fills a blank. The name of an operation does not: one that there is not is no id."""


@dataclass(frozen=True)
class Route:
    """A method and a path. ``{}`` in the path is one segment, handed to the handler."""

    method: str
    path: str
    handler: type[BaseHandler]
    type_name: str = ""
    declared: PluginOperation | None = None
    """The operation of a plugin that the handler runs."""
    create: Callable[..., BaseHandler] | None = None
    """Creates the handler, if that takes more than what every handler is given."""


def routes(services: Services) -> list[Route]:
    """Return every route of the service, the most frequent first."""
    context, config = services.context, services.config.fhir
    about = PublicMetadataHandler if config.metadata_public else MetadataHandler
    return [
        *(route for name in services.types for route in _of_type(name)),
        *(_of_operation(each) for few in context.operations.values() for each in few),
        *map(_of_revisable, services.context.revisable),
        *(route for name in context.members for route in _of_member(name, context)),
        *(route for name in context.part_types for route in _of_part(name, context)),
        *(_of_patients() if context.has_patients else ()),
        *(_of_audit_events() if services.config.audit.enabled else ()),
        Route("GET", "/fhir/r4/Binary/{}", BinaryHandler, "Binary"),
        Route("GET", "/fhir/r4/CapabilityStatement/{}", OwnHandler, "CapabilityStatement"),
        Route("GET", "/fhir/r4/OperationDefinition/{}", OwnHandler, "OperationDefinition"),
        Route("GET", "/fhir/r4/CodeSystem/{}", ProblemsHandler, "CodeSystem"),
        Route("POST", _FHIR, BatchHandler),
        Route("GET", "/fhir/r4/metadata", about),
        Route("GET", "/metadata", about),
        Route("GET", "/openapi.json", OpenApiHandler),
        Route("POST", "/oauth/token", TokenHandler),
        Route("POST", "/oauth/revoke", RevocationHandler),
        Route("GET", "/.well-known/jwks.json", KeysHandler),
        Route("GET", "/.well-known/oauth-authorization-server", ServerMetadataHandler),
        Route("GET", "/.well-known/smart-configuration", SmartConfigurationHandler),
        Route("GET", "/fhir/r4/.well-known/smart-configuration", SmartConfigurationHandler),
        *webhook_routes(),
        Route("GET", "/health/live", LiveHandler),
        Route("GET", "/health/ready", ReadyHandler),
    ]


def _of_type(name: str) -> list[Route]:
    base = f"/fhir/r4/{name}"
    return [
        Route("GET", f"{base}/{{}}", ReadHandler, name),
        Route("PATCH", f"{base}/{{}}", UpdateHandler, name),
        Route("PATCH", base, ConditionalUpdateHandler, name),
        Route("POST", f"{base}/$register", RegisterHandler, name),
        Route("POST", f"{base}/$validate", ValidateHandler, name),
        Route("GET", base, SearchHandler, name),
        Route("POST", base, CreateHandler, name),
        Route("POST", f"{base}/_search", SearchFormHandler, name),
        Route("GET", f"{base}/_history", TypeHistoryHandler, name),
        Route("GET", f"{base}/{{}}/_history", HistoryHandler, name),
        Route("GET", f"{base}/{{}}/_history/{{}}", VersionHandler, name),
    ]


def _of_operation(declared: PluginOperation) -> Route:
    operation = declared.operation
    blank = "/{}" if operation.on_instance else ""
    path = f"/fhir/r4/{operation.type}{blank}/${operation.code}"
    create = partial(OperationHandler, declared)
    return Route("GET", path, OperationHandler, operation.type, declared, create)


def _of_revisable(name: str) -> Route:
    return Route("POST", f"/fhir/r4/{name}/{{}}/$revise", ReviseHandler, name)


def _of_member(name: str, context: Context) -> list[Route]:
    """Return the routes of a type that is not registered alone (ADR 24)."""
    if name in context.types:
        return []
    base = f"/fhir/r4/{name}"
    reads = [
        Route("GET", f"{base}/{{}}", ReadHandler, name),
        Route("GET", f"{base}/{{}}/_history/{{}}", VersionHandler, name),
    ]
    return [
        *(reads if name not in context.part_types else ()),
        Route("GET", base, SearchHandler, name),
        Route("POST", f"{base}/_search", SearchFormHandler, name),
        Route("GET", f"{base}/_history", TypeHistoryHandler, name),
        Route("GET", f"{base}/{{}}/_history", HistoryHandler, name),
    ]


def _of_part(name: str, context: Context) -> list[Route]:
    if name == PATIENT and context.has_patients:
        return []
    base = f"/fhir/r4/{name}/{{}}"
    version = f"{base}/_history/{{}}"
    if name in context.members:
        return [
            Route("GET", base, MemberOrPartHandler, name),
            Route("GET", version, MemberOrPartVersionHandler, name),
        ]
    return [Route("GET", base, PartHandler, name), Route("GET", version, PartVersionHandler, name)]


def _of_patients() -> list[Route]:
    """Return the routes of patients, which parts of several resources can share (ADR 26)."""
    base = f"/fhir/r4/{PATIENT}"
    return [
        Route("GET", f"{base}/{{}}", PatientHandler, PATIENT),
        Route("GET", f"{base}/{{}}/_history/{{}}", PatientVersionHandler, PATIENT),
        Route("GET", base, PatientSearchHandler, PATIENT),
        Route("POST", f"{base}/_search", PatientSearchFormHandler, PATIENT),
        Route("GET", f"{base}/{{}}/_history", PatientHistoryHandler, PATIENT),
    ]


def _of_audit_events() -> list[Route]:
    base = f"/fhir/r4/{AUDIT_EVENT}"
    return [
        Route("GET", base, AuditSearchHandler, AUDIT_EVENT),
        Route("POST", f"{base}/_search", AuditSearchFormHandler, AUDIT_EVENT),
        Route("GET", f"{base}/{{}}", AuditEventHandler, AUDIT_EVENT),
    ]


def webhook_routes() -> list[Route]:
    """Return the URLs of webhooks, which do not depend on what is served."""
    all_ = f"{webhooks.BASE}/endpoints"
    one = f"{all_}/{{}}"
    return [
        Route("GET", all_, webhooks.EndpointsHandler),
        Route("POST", all_, webhooks.AddEndpointHandler),
        Route("GET", one, webhooks.EndpointHandler),
        Route("PATCH", one, webhooks.ChangeEndpointHandler),
        Route("DELETE", one, webhooks.DeleteEndpointHandler),
        Route("POST", f"{one}/pause", webhooks.PauseHandler),
        Route("POST", f"{one}/enable", webhooks.EnableHandler),
        Route("POST", f"{one}/verify", webhooks.VerifyHandler),
        Route("POST", f"{one}/test", webhooks.TestHandler),
        Route("POST", f"{one}/secret:rotate", webhooks.RotateSecretHandler),
        Route("POST", f"{one}/token:rotate", webhooks.RotateTokenHandler),
        Route("GET", f"{one}/deliveries", webhook_deliveries.DeliveriesHandler),
        Route("GET", f"{one}/deliveries/{{}}", webhook_deliveries.DeliveryHandler),
        Route("GET", f"{one}/events", webhook_deliveries.EventsHandler),
        Route("POST", f"{one}/replay", webhook_deliveries.ReplayHandler),
        Route("GET", f"{one}/stats", webhook_deliveries.StatsHandler),
        Route("GET", f"{webhooks.BASE}/event-types", webhooks.EventTypesHandler),
    ]


@dataclass(slots=True)
class _Path:
    template: str
    pattern: re.Pattern[str]
    methods: dict[str, Route] = field(default_factory=dict)

    @property
    def refusing(self) -> type[MethodNotAllowedHandler]:
        """The handler of the methods that the path does not have."""
        own = any(issubclass(route.handler, OAuthHandler) for route in self.methods.values())
        return TokenMethodNotAllowedHandler if own else MethodNotAllowedHandler


class Router:
    """Finds the handler of a request by its path, then by its method."""

    def __init__(self, services: Services, table: Sequence[Route] = ()) -> None:
        """Read a table, by default that of the service.

        Raises ConfigurationError for a row that is not complete.
        """
        self._services = services
        paths: dict[str, _Path] = {}
        for route in table or routes(services):
            if not hasattr(route.handler, "requires_token"):
                raise ConfigurationError(f"{route.path} does not state whether it needs a token")
            pattern = re.escape(route.path).replace(re.escape("{}"), _BLANK)
            path = paths.setdefault(route.path, _Path(route.path, re.compile(pattern)))
            path.methods[route.method] = route
        # A path without a blank to fill is looked up first: /$register is no id.
        self._plain = {name: path for name, path in paths.items() if "{}" not in name}
        if _FHIR in self._plain:
            self._plain[f"{_FHIR}/"] = self._plain[_FHIR]
        self._patterns = [path for name, path in paths.items() if "{}" in name]
        self._addresses = Addresses(paths)

    def handler(self, request: Request, services: Services | None = None) -> BaseHandler:
        """Return a handler for a request: of its route, of a 405, or of a 404.

        ``services`` are those for an entry of a batch.
        """
        services = services or self._services
        asked = normalize(request.path)
        path = self._plain.get(asked)
        if path is not None:
            return self._of(path, request, services, ())
        for path in self._patterns:
            match = path.pattern.fullmatch(asked)
            if match is not None:
                return self._of(path, request, services, match.groups())
        nowhere = RootHandler if asked == "/" else NotFoundHandler
        handler = nowhere(request, services)
        handler.addresses = self._addresses
        return handler

    def refusing(self, request: Request, refusal: FhirpubError) -> BaseHandler:
        """Return a handler for what breaks HTTP."""
        handler = RefusingHandler(request, self._services)
        handler.refusal = refusal
        return handler

    def _of(
        self, path: _Path, request: Request, services: Services, blanks: tuple[str, ...]
    ) -> BaseHandler:
        method = "GET" if request.method == "HEAD" else request.method
        route = path.methods.get(method)
        handler: BaseHandler
        if route is not None:
            create = route.create or route.handler
            handler = create(request, services, route.type_name, blanks)
            if isinstance(handler, BatchHandler):
                handler.find_handler = self.handler
        else:
            handler = refusing = path.refusing(request, services)
            refusing.addresses = self._addresses
            refusing.allow = _allow(path.methods)
            refusing.forms = _forms(path.methods)
        handler.route = path.template
        return handler


def _allow(methods: Mapping[str, Route]) -> str:
    heads = ["HEAD"] if "GET" in methods else []
    return ", ".join([*methods, *heads, "OPTIONS"])


def _forms(methods: Mapping[str, Route]) -> str:
    """Return the media types of a patch, if the path takes one."""
    patch = methods.get("PATCH")
    if patch is None or not issubclass(patch.handler, BodyHandler):
        return ""
    return ", ".join(patch.handler.also_read)
