"""Which handler a request gets by its path and method, and what a refusal of a method allows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from tornado.httputil import HTTPHeaders, RequestStartLine

from fhirpub.errors import ConfigurationError, NotPermitted
from fhirpub.interactions.context import Context
from fhirpub.testing.service import RunningService
from fhirpub.web.handlers import webhook_deliveries as deliveries
from fhirpub.web.handlers import webhook_endpoints as endpoints
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.batch.handler import BatchHandler
from fhirpub.web.handlers.binary import BinaryHandler
from fhirpub.web.handlers.health import LiveHandler
from fhirpub.web.handlers.history import HistoryHandler, TypeHistoryHandler
from fhirpub.web.handlers.patients.resources import PatientHandler, PatientVersionHandler
from fhirpub.web.handlers.read import (
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
)
from fhirpub.web.handlers.registrations.register import CreateHandler, RegisterHandler
from fhirpub.web.handlers.search import SearchFormHandler, SearchHandler
from fhirpub.web.handlers.token import KeysHandler, RevocationHandler, TokenHandler
from fhirpub.web.handlers.update import ConditionalUpdateHandler, UpdateHandler
from fhirpub.web.handlers.validate import ValidateHandler
from fhirpub.web.message.request import Request
from fhirpub.web.routes import Route, Router, _of_part

R4 = "/fhir/r4"
ONE = "/webhooks/v1/endpoints/e"


def request(method: str, path: str) -> Request:
    line = RequestStartLine(method, path, "HTTP/1.1")
    return Request(line, HTTPHeaders(), SimpleNamespace())


@pytest.fixture(scope="module")
def router(service: RunningService) -> Router:
    return Router(service.services)


def found(router: Router, method: str, path: str) -> BaseHandler:
    return router.handler(request(method, path))


@pytest.mark.parametrize(
    ("method", "path", "handler"),
    [
        ("GET", f"{R4}/DiagnosticReport/1", ReadHandler),
        ("HEAD", f"{R4}/DiagnosticReport/1", ReadHandler),
        ("PATCH", f"{R4}/DiagnosticReport/1", UpdateHandler),
        ("PATCH", f"{R4}/DiagnosticReport", ConditionalUpdateHandler),
        ("GET", f"{R4}/DiagnosticReport", SearchHandler),
        ("POST", f"{R4}/DiagnosticReport", CreateHandler),
        ("POST", f"{R4}/DiagnosticReport/_search", SearchFormHandler),
        ("POST", f"{R4}/DiagnosticReport/$register", RegisterHandler),
        ("POST", f"{R4}/DiagnosticReport/$validate", ValidateHandler),
        ("GET", f"{R4}/DiagnosticReport/_history", TypeHistoryHandler),
        ("GET", f"{R4}/DiagnosticReport/1/_history", HistoryHandler),
        ("GET", f"{R4}/DiagnosticReport/1/_history/2", VersionHandler),
        ("GET", f"{R4}/Observation/1/_history/2", VersionHandler),
        ("GET", f"{R4}/Patient/1", PatientHandler),
        ("GET", f"{R4}/Patient/1/_history/1", PatientVersionHandler),
        ("GET", f"{R4}/Organization/1", PartHandler),
        ("GET", f"{R4}/Organization/1/_history/1", PartVersionHandler),
        ("GET", f"{R4}/Binary/1", BinaryHandler),
        ("GET", f"{R4}/CapabilityStatement/1", OwnHandler),
        ("GET", f"{R4}/OperationDefinition/1", OwnHandler),
        ("GET", f"{R4}/CodeSystem/1", ProblemsHandler),
        ("POST", R4, BatchHandler),
        ("POST", f"{R4}/", BatchHandler),
        ("POST", "/oauth/token", TokenHandler),
        ("POST", "/oauth/revoke", RevocationHandler),
        ("GET", "/.well-known/jwks.json", KeysHandler),
        ("GET", "/health/live", LiveHandler),
        ("GET", ONE, endpoints.EndpointHandler),
        ("PATCH", ONE, endpoints.ChangeEndpointHandler),
        ("DELETE", ONE, endpoints.DeleteEndpointHandler),
        ("POST", f"{ONE}/pause", endpoints.PauseHandler),
        ("POST", f"{ONE}/enable", endpoints.EnableHandler),
        ("POST", f"{ONE}/verify", endpoints.VerifyHandler),
        ("POST", f"{ONE}/test", endpoints.TestHandler),
        ("POST", f"{ONE}/secret:rotate", endpoints.RotateSecretHandler),
        ("POST", f"{ONE}/token:rotate", endpoints.RotateTokenHandler),
        ("GET", f"{ONE}/deliveries", deliveries.DeliveriesHandler),
        ("GET", f"{ONE}/deliveries/d", deliveries.DeliveryHandler),
        ("GET", f"{ONE}/events", deliveries.EventsHandler),
        ("POST", f"{ONE}/replay", deliveries.ReplayHandler),
        ("GET", f"{ONE}/stats", deliveries.StatsHandler),
        ("GET", "/webhooks/v1/event-types", endpoints.EventTypesHandler),
        ("GET", "/", RootHandler),
        ("GET", "/nowhere", NotFoundHandler),
        ("GET", f"{R4}/DiagnosticReport/$register/x", NotFoundHandler),
        ("GET", f"{R4}/DiagnosticReport/$unknown", NotFoundHandler),
        ("GET", f"{R4}/DiagnosticReport/1/2", NotFoundHandler),
        ("GET", f"{R4}x/DiagnosticReport/1", NotFoundHandler),
        ("GET", "/fhirxr4/metadata", NotFoundHandler),
        ("PUT", f"{R4}/DiagnosticReport/1", MethodNotAllowedHandler),
        ("GET", f"{R4}/DiagnosticReport/$register", MethodNotAllowedHandler),
        ("GET", "/oauth/token", TokenMethodNotAllowedHandler),
    ],
)
def test_a_path_and_a_method_lead_to_a_handler(
    router: Router, method: str, path: str, handler: type[BaseHandler]
) -> None:
    assert type(found(router, method, path)) is handler


def test_a_handler_has_the_blanks_of_its_path_in_their_order(router: Router) -> None:
    handler = found(router, "GET", f"{R4}/DiagnosticReport/a/_history/2")

    assert handler._path_parameters == ("a", "2")
    assert handler.type_name == "DiagnosticReport"


def test_a_handler_is_counted_under_the_path_without_ids(router: Router) -> None:
    handler = found(router, "GET", f"{R4}/DiagnosticReport/a/_history/2")

    assert handler.route == f"{R4}/DiagnosticReport/{{}}/_history/{{}}"


def test_a_refused_method_is_counted_under_its_path(router: Router) -> None:
    assert found(router, "PUT", f"{R4}/DiagnosticReport/a").route == f"{R4}/DiagnosticReport/{{}}"


@pytest.mark.parametrize(
    ("path", "allow", "forms"),
    [
        ("/oauth/token", "POST, OPTIONS", 0),
        (f"{R4}/DiagnosticReport", "PATCH, GET, POST, HEAD, OPTIONS", 3),
        (f"{R4}/DiagnosticReport/1", "GET, PATCH, HEAD, OPTIONS", 3),
        (f"{R4}/DiagnosticReport/1/_history", "GET, HEAD, OPTIONS", 0),
        (ONE, "GET, PATCH, DELETE, HEAD, OPTIONS", 1),
    ],
)
def test_a_refused_method_names_those_that_are_allowed(
    router: Router, path: str, allow: str, forms: int
) -> None:
    handler = found(router, "PUT", path)

    assert isinstance(handler, MethodNotAllowedHandler)
    assert handler.allow == allow
    assert bool(handler.forms) == bool(forms)


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
def test_another_method_of_oauth_is_refused_as_oauth_does(router: Router, path: str) -> None:
    assert type(found(router, "GET", path)) is TokenMethodNotAllowedHandler


def test_an_address_may_be_escaped_where_it_need_not_be(router: Router) -> None:
    handler = found(router, "GET", f"{R4}/Diagnostic%52eport/%61%2d1")

    assert (type(handler), handler._path_parameters) == (ReadHandler, ("a-1",))


def test_a_batch_finds_the_handlers_of_its_entries(router: Router) -> None:
    handler = found(router, "POST", R4)

    assert isinstance(handler, BatchHandler)
    assert handler.find_handler == router.handler


def test_an_entry_of_a_batch_has_services_of_its_own(
    router: Router, service: RunningService
) -> None:
    others = replace(service.services, in_flight=set())

    handler = router.handler(request("GET", f"{R4}/DiagnosticReport/1"), others)

    assert handler.services is others


def test_what_breaks_http_is_refused_as_it_is(router: Router) -> None:
    refusal = NotPermitted()

    handler = router.refusing(request("GET", "/"), refusal)

    assert isinstance(handler, RefusingHandler)
    assert handler.refusal is refusal


def test_a_row_must_state_whether_it_needs_a_token(service: RunningService) -> None:
    with pytest.raises(ConfigurationError, match="/x does not state whether it needs a token"):
        Router(service.services, [Route("GET", "/x", BaseHandler)])


def test_without_an_audit_trail_there_is_no_address_of_its_events(service: RunningService) -> None:
    config = replace(service.config, audit=replace(service.config.audit, enabled=False))
    path = f"{R4}/AuditEvent"

    without = Router(replace(service.services, config=config)).handler(request("GET", path))

    assert isinstance(without, NotFoundHandler)


def test_patients_of_one_type_alone_are_parts_like_others() -> None:
    context = SimpleNamespace(has_patients=False, members=())

    found = _of_part("Patient", cast("Context", context))

    assert [route.handler for route in found] == [PartHandler, PartVersionHandler]
