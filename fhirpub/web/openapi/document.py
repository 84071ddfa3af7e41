"""OpenAPI 3.1 of the whole HTTP interface, made from the routes and the enabled types (D-260)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus

import fhirpub
from fhirpub.audit.event import AUDIT_EVENT
from fhirpub.fhir.definitions.schema_components import components, ref
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.message.content_negotiation import FHIR_JSON
from fhirpub.web.openapi.audit_operations import AUDIT_OPERATIONS
from fhirpub.web.openapi.batch_operations import BATCH_OPERATIONS
from fhirpub.web.openapi.operation import Operation, Success
from fhirpub.web.openapi.operations import OPERATIONS
from fhirpub.web.openapi.parameters import (
    HEADERS,
    PARAMETERS,
    QUOTA_HEADERS,
    audited,
    conditions,
    search_parameters,
    tries,
)
from fhirpub.web.openapi.patient_operations import PATIENT_OPERATIONS
from fhirpub.web.openapi.plugin_operations import of_plugin, parameters_of_plugin
from fhirpub.web.openapi.request_bodies import body_of, own_schemas
from fhirpub.web.openapi.webhook_events import event_requests, event_schemas
from fhirpub.web.openapi.webhook_operations import WEBHOOK_OPERATIONS
from fhirpub.web.routes import Route, routes
from fhirpub.web.services import Services

TABLE = OPERATIONS | PATIENT_OPERATIONS | AUDIT_OPERATIONS | BATCH_OPERATIONS | WEBHOOK_OPERATIONS
"""What every handler does, by its class and method."""
_BLANKS = {
    "id": {"pattern": "^[A-Za-z0-9.-]{1,64}$"},
    "version": {"pattern": "^[0-9]{1,16}$"},
}
_OAUTH, _BEARER = "oauth2", "bearer"
_SERVED = ("Binary", "Bundle", "CapabilityStatement", "OperationDefinition", "OperationOutcome")
_JSON = "application/json"
# Named first, octets are what generators make of a document; FHIR's form would hide it.
_DOCUMENT: JsonObject = {
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
    "*/*": {},
}
_ABOUT = """\
FHIR R4 (4.0.1) over HTTP: diagnostic reports and what else is enabled, registered in one call that
is safe to repeat. Resources are sent and answered as `application/fhir+json` and
`application/fhir+xml`; the names from before (`application/json`, `text/json`,
`application/json+fhir`, and those of XML) are understood too. Bodies may be sent in gzip
(`Content-Encoding`), and large responses are in gzip for clients that accept it. Wherever there
is GET there is HEAD, and OPTIONS returns the methods of a path. Another method gets 405 with
`Allow`, too long an address 414, and too long headers 431.

The schemas are necessary, not sufficient: FHIR's own rules, and ours, are stated in the
CapabilityStatement and by the OperationOutcome of a refusal, which names each place. Extensions
and the siblings of primitives (`_status`) may stand wherever R4 has them; the schemas do not name
them. A parameter without a value counts as left out.
"""


def openapi(services: Services) -> tuple[str, bytes]:
    """Return the document and its entity tag, which is weak: it is that of gzip as well."""
    body = dumps(document(services))
    return f'W/"{hashlib.sha256(body).hexdigest()[:16]}"', body


def document(services: Services) -> JsonObject:
    """Return the document."""
    table = routes(services)
    types = services.types.values()
    served = dict.fromkeys(
        [
            *(resource_type.name for resource_type in types),
            *(p.type for resource_type in types for p in resource_type.parts),
            *([AUDIT_EVENT] if services.config.audit.enabled else ()),
            "OperationOutcome",
        ]
    )
    r4 = components(services.context.schemas.by_id, [*served, *_SERVED], entries=served)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fhirpub",
            "summary": "Publish diagnostic reports over FHIR R4: one call, safe to repeat.",
            "description": _ABOUT,
            "version": fhirpub.__version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": services.config.base_url}],
        "paths": _paths(table, services),
        "webhooks": event_requests(services.endpoints.event_types),
        "components": {
            "schemas": {
                **r4,
                **own_schemas(types, r4),
                **event_schemas(services.endpoints.event_types),
            },
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "responses": {
                _named(refusal): _refusal(refusal, "OperationOutcome") for refusal in _REFUSALS
            },
            "securitySchemes": {
                _OAUTH: _credentials(services),
                _BEARER: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The same token, for a client that has one already.",
                },
            },
        },
        "tags": [{"name": name} for name in dict.fromkeys(_tag(route) for route in table)],
    }


_SCOPES = {
    "c": "register a {}",
    "r": "read a {} and what came with it",
    "u": "update a {}",
    "s": "find a {}",
}


def _credentials(services: Services) -> JsonObject:
    scopes = {
        f"system/{name}.{letter}": meaning.format(name)
        for name in services.context.searched
        for letter, meaning in _SCOPES.items()
        if name in services.types or letter in "rs"
    }
    if services.config.audit.enabled:
        scopes[f"system/{AUDIT_EVENT}.r"] = "read an event of the audit trail"
        scopes[f"system/{AUDIT_EVENT}.s"] = "find events of the audit trail"
    scopes["webhooks.read"] = "read endpoints of webhooks, and what was sent"
    scopes["webhooks.write"] = "change and try endpoints, and send again"
    return {
        "type": "oauth2",
        "description": "Scopes count where `[auth] enforce_scopes` is true, and always for the "
        "audit trail.",
        "flows": {
            "clientCredentials": {
                "tokenUrl": f"{services.config.base_url}/oauth/token",
                "scopes": scopes,
            }
        },
    }


# Paths.


def _paths(table: Sequence[Route], services: Services) -> JsonObject:
    names = Counter(_operation_id(route) for route in table)
    paths: dict[str, JsonObject] = {}
    for route in table:
        operation = _declared(route)
        path = paths.setdefault(route.path.replace("{}", "{{{}}}").format(*operation.blanks), {})
        described = _describe(operation, route, services, table)
        if names[described["operationId"]] > 1 and route.path.startswith("/fhir/"):
            described["operationId"] += "OfFhir"
        path[route.method.lower()] = described
    return paths


def _declared(route: Route) -> Operation:
    return of_plugin(route.declared) if route.declared else TABLE[route.handler, route.method]


def _operation_id(route: Route) -> str:
    return _declared(route).name + route.type_name


def _tag(route: Route) -> str:
    return _declared(route).tag.replace("{type}", route.type_name)


def _describe(
    operation: Operation, route: Route, services: Services, table: Sequence[Route]
) -> JsonObject:
    said: JsonObject = {
        "operationId": _operation_id(route),
        "summary": operation.summary.replace("{type}", route.type_name),
        "description": operation.text,
        "tags": [_tag(route)],
        "parameters": [
            *map(_blank, operation.blanks[: route.path.count("{}")]),
            *_parameters(operation, route, services),
        ],
        "security": [{_OAUTH: _scopes(operation, route)}, {_BEARER: []}]
        if route.handler.requires_token
        else [],
        "requestBody": body_of(operation.body, services, route.type_name),
        "responses": {
            **{
                str(status): _success(success, route, table)
                for status, success in operation.successes.items()
            },
            **{
                str(refusal): _refused(refusal, operation)
                for refusal in _refusals(operation, route)
            },
        },
    }
    return {name: value for name, value in said.items() if value or name == "security"}


def _scopes(operation: Operation, route: Route) -> list[str]:
    """Return the scopes that are needed; what belongs to others is read with any of theirs."""
    if operation.scope or not route.handler.scope or route.handler.belongs_to_others:
        return [operation.scope] if operation.scope else []
    return [f"system/{route.type_name}.{name}" for name in route.handler.scope]


def _blank(name: str) -> JsonObject:
    schema = {"type": "string", **_BLANKS.get(name, {})}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _parameters(operation: Operation, route: Route, services: Services) -> list[JsonObject]:
    made = {
        "searched": search_parameters,
        "conditions": conditions,
        "tries": tries,
        "audited": audited,
    }
    parameters = parameters_of_plugin(route.declared)
    for name in operation.parameters:
        if name in made:
            parameters += made[name](services, route.type_name)
        else:
            parameters.append({"$ref": f"#/components/parameters/{name}"})
    return parameters


# Answers.

_MEANINGS = {
    400: "The request cannot be read, or is no valid FHIR R4.",
    401: "There is no access token, or not a valid one.",
    403: "The access token has no scope for this, the client may not call from this address, or "
    "the tenant may not store more.",
    404: "There is nothing under this address, for this tenant.",
    406: "No format is spoken here that the client accepts.",
    408: "The body took too long; it may be sent again.",
    409: "The identifier is registered with other content, and the operator has this refused; or "
    "what had it was erased.",
    412: "The resource has not the version that the conditions name.",
    413: "The body, or a document in it, is too large.",
    415: "The body is of a type, or in a content coding, that is not read here.",
    416: "The document has no such part.",
    422: "The body is valid FHIR, and breaks a rule; or a search is too costly.",
    428: "The version that is to be replaced is not named by `If-Match`.",
    429: "There were too many requests, or a quota of the day is used up; come back after "
    "`Retry-After` seconds.",
    500: "The service failed; the request may be sent again.",
    503: "The store cannot be reached, or there is no room; come back as for 429.",
}
_REFUSALS = tuple(_MEANINGS)
_OBLIGED = {
    401: ("WWW-Authenticate",),
    403: ("WWW-Authenticate",),
    416: ("Content-Range",),
    429: ("Retry-After", *QUOTA_HEADERS),
    503: ("Retry-After",),
}


def _refusals(operation: Operation, route: Route) -> list[int]:
    """Return the statuses of refusals: those of every handler of its class, and its own."""
    statuses = {400, 500, *operation.refusals}
    if route.handler.requires_token:
        statuses |= {401, 429, 503}
        if route.handler.scope:
            statuses.add(403)
    if issubclass(route.handler, BodyHandler):
        statuses |= {408, 413, 503}
        if operation.refuses_in != "OAuthError":
            statuses.add(415)
    return sorted(statuses)


def _refused(status: int, operation: Operation) -> JsonObject:
    if operation.refuses_in == "OperationOutcome":
        return {"$ref": f"#/components/responses/{_named(status)}"}
    return _refusal(status, operation.refuses_in)


def _named(status: int) -> str:
    return "".join(word.capitalize() for word in HTTPStatus(status).name.split("_"))


def _refusal(status: int, schema: str) -> JsonObject:
    fhir = schema == "OperationOutcome"
    return {
        "description": _MEANINGS[status],
        "headers": _headers(_OBLIGED.get(status, ())),
        "content": _fhir(schema) if fhir else {_JSON: {"schema": ref(schema)}},
    }


def _success(success: Success, route: Route, table: Iterable[Route]) -> JsonObject:
    schema = success.schema.replace("{type}", route.type_name)
    contents: dict[str, Callable[[], JsonObject]] = {
        "fhir": lambda: _fhir(schema),
        "json": lambda: {_JSON: {"schema": ref(schema)}},
        "document": lambda: _DOCUMENT,
        "media": lambda: {schema: {"schema": {"type": "string"}}},
        "empty": dict,
    }
    said = {
        "description": success.text,
        "headers": _headers((*success.headers, *_quota_headers(route))),
        "content": contents[success.form](),
        "links": _links(success, route, table),
    }
    return {name: value for name, value in said.items() if value}


def _quota_headers(route: Route) -> tuple[str, ...]:
    is_counted = route.handler.requires_token and route.handler.is_counted
    return QUOTA_HEADERS if is_counted else ()


def _links(success: Success, route: Route, table: Iterable[Route]) -> JsonObject:
    """Return the operations that use the id of the created resource."""
    base = route.path.removesuffix("/$register") + "/{}"
    return {
        name: {"operationId": name, "parameters": {"id": f"$response.body#{success.id_at}"}}
        for item in table
        if success.id_at and item.path.startswith(base) and item.path.count("{}") == 1
        for name in (_operation_id(item),)
    }


def _fhir(name: str) -> JsonObject:
    # Without XML: of an answer in two forms a client in TypeScript knows no type.
    schema = {"schema": ref(name)}
    return {FHIR_JSON: schema, _JSON: schema}


def _headers(names: Iterable[str]) -> JsonObject:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *names)}
