"""The parameters and headers of the interface, in the words of OpenAPI."""

from __future__ import annotations

from fhirpub.audit.parameters import ORDERS, declared
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.capabilities import search_parameters_of
from fhirpub.interactions.cursors import CURSOR
from fhirpub.interactions.history import BELOW
from fhirpub.web.handlers.webhook_deliveries import HIGHEST_SEQUENCE, MAX_PAGE_BYTES, USUAL_PAGE
from fhirpub.web.message.content_negotiation import FHIR_JSON, FHIR_XML
from fhirpub.web.services import Services
from fhirpub.webhooks.management.arrivals import MAX_WAIT_SECONDS
from fhirpub.webhooks.management.delivery_log import SHOWN_STATES

_TEXT: JsonObject = {"type": "string"}
_MOMENT: JsonObject = {"type": "string", "format": "date-time"}
_PAGE: JsonObject = {
    "type": "integer",
    "minimum": 0,
    "maximum": MAX_PAGE_BYTES,
    "default": USUAL_PAGE,
}
_SEQUENCE: JsonObject = {
    "type": "integer",
    "format": "int64",
    "minimum": 0,
    "maximum": HIGHEST_SEQUENCE,
}
_WAIT: JsonObject = {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS, "default": 0}
_COUNT: JsonObject = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
_ONE_UP: JsonObject = {**_COUNT, "minimum": 1}


def _query(name: str, text: str, schema: JsonObject) -> JsonObject:
    return {"name": name, "in": "query", "description": text, "schema": schema}


def _header(name: str, text: str, example: str) -> JsonObject:
    said = {"name": name, "in": "header", "description": text, "schema": _TEXT}
    return {**said, "example": example}


def _response_header(text: str, schema: JsonObject = _TEXT) -> JsonObject:
    return {"description": text, "required": True, "schema": schema}


_FORMS: JsonObject = {"type": "string", "enum": ["json", "xml", FHIR_JSON, FHIR_XML]}
PARAMETERS: dict[str, JsonObject] = {
    "_format-of-document": _query(
        "_format",
        "FHIR's form of the document, or any other media type for the document as it is, "
        "whatever `Accept` says.",
        {"type": "string", "pattern": "^(json|xml)?$|/"},
    ),
    "If-Match-required": {
        **_header(
            "If-Match",
            "The version that was read; 412 if it is another, unless nothing differs from it. "
            "`*`: whichever is the latest. 428 without it.",
            'W/"1"',
        ),
        "required": True,
    },
} | {
    record["name"]: record
    for record in (
        _query("_format", "The form of the answer, whatever `Accept` says.", _FORMS),
        _query("_pretty", "`true`: in lines, for people.", _TEXT),
        _query(
            "_summary",
            "A part of the resource.",
            {"type": "string", "enum": ["true", "text", "data", "false"]},
        ),
        _query("_elements", "The elements that are wanted, separated by commas.", _TEXT),
        _query("_count", "The most entries of a page.", _COUNT),
        _query("_since", "From this moment on.", _TEXT),
        _query("_at", "What was the latest version at this moment, or in this time.", _TEXT),
        _query(BELOW, "Where a page begins; taken from the link to it.", _COUNT),
        _query(CURSOR, "Where a page begins; taken from the link to it.", _TEXT),
        _query(
            "status", "What became of a delivery.", {"type": "string", "enum": [*SHOWN_STATES]}
        ),
        _query("event_type", "The name of an event.", _TEXT),
        _query("resource", "What an event is about, such as Type/id.", _TEXT),
        _query("since", "From this moment on.", _MOMENT),
        _query("until", "Before this moment.", _MOMENT),
        _query("limit", "The most entries of a page; 0: as many as usual.", _PAGE),
        _query("before", "Where a page begins; taken from `next`. 0: the newest.", _SEQUENCE),
        _query("after_seq", "The sequence of the last event that the client has.", _SEQUENCE),
        _query("wait", "How many seconds to wait for an event if there is none yet.", _WAIT),
        _header("If-Match", "The version that is meant; 412 if it is another.", 'W/"1"'),
        _header(
            "If-None-Exist",
            "A search: if it finds one resource, nothing is created.",
            "identifier=https://north-quay.example/reports|NQ-2026-000418",
        ),
        _header(
            "If-None-Match",
            "The version that the client has; then 304, of an update 412.",
            'W/"1"',
        ),
        _header(
            "If-Modified-Since",
            "When the client got what it has; 304 if that is the latest.",
            "Sat, 21 Nov 2026 10:00:00 GMT",
        ),
        _header(
            "If-Unmodified-Since",
            "When the client got what it means; 412 if there is a newer version.",
            "Sat, 21 Nov 2026 10:00:00 GMT",
        ),
        _header(
            "Prefer",
            "`return=minimal`, `representation` or `OperationOutcome` for writes; "
            "`handling=strict` for searches: a parameter that is not known gets 400.",
            "return=representation",
        ),
    )
}

HEADERS: dict[str, JsonObject] = {
    "X-Request-Id": _response_header(
        "The id of the request in the log; the client's own if it sent one."
    ),
    "ETag": _response_header("The version, for `If-Match` and `If-None-Match`."),
    "Last-Modified": _response_header("When the version was made."),
    "Location": _response_header(
        "The address of the version.", {"type": "string", "format": "uri"}
    ),
    "Idempotent-Replayed": {
        "description": "`true` if the identifier was registered by an earlier call.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "Idempotent-Content": {
        "description": "`different` if that call had other content, which is not stored now.",
        "schema": {"type": "string", "enum": ["different"]},
    },
    "Content-Range": _response_header("Which bytes these are, of how many."),
    "WWW-Authenticate": {
        "description": "How to authenticate (RFC 6750); not in a 403 about a quota.",
        "schema": _TEXT,
    },
    "Retry-After": {
        "description": "Seconds to wait.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "RateLimit-Policy": {
        "description": "The quotas per minute of the client and its tenant, if they have any "
        "(draft-ietf-httpapi-ratelimit-headers-11).",
        "schema": _TEXT,
        "example": '"client_requests_per_minute";q=600;w=60',
    },
    "RateLimit": {
        "description": "What remains of each, and the seconds until it is complete again.",
        "schema": _TEXT,
        "example": '"client_requests_per_minute";r=577;t=23',
    },
}
QUOTA_HEADERS = ("RateLimit-Policy", "RateLimit")
"""Headers of every response to a client that has a quota of requests per minute."""


_ABOUT_THE_PAGE = (
    PARAMETERS["_count"],
    PARAMETERS[CURSOR],
    PARAMETERS["_elements"],
    _query("_include", "References to follow, such as `*`; with `:iterate` further.", _TEXT),
    _query("_revinclude", "References that lead to the matches, to follow back.", _TEXT),
    _query("_sort", "Parameters to sort by, separated by commas; `-` for the reverse.", _TEXT),
    _query(
        "_summary",
        "A part of each resource, or how many there are.",
        {"type": "string", "enum": ["true", "text", "data", "count", "false"]},
    ),
    _query(
        "_total",
        "Whether the number of all is wanted.",
        {"type": "string", "enum": ["none", "estimate", "accurate"]},
    ),
)


def search_parameters(services: Services, type_name: str) -> list[JsonObject]:
    """Return the parameters of a search: its criteria and its paging."""
    return [*conditions(services, type_name), *_ABOUT_THE_PAGE]


def conditions(services: Services, type_name: str) -> list[JsonObject]:
    """Return what a type can be searched by, as the CapabilityStatement declares it."""
    declared = search_parameters_of(type_name, services.context)
    return [_query(record["name"], record["documentation"], _TEXT) for record in declared]


def audited(_services: Services, _type_name: str) -> list[JsonObject]:
    """Return what AuditEvents can be searched by, and the parameters of a page of them."""
    criteria = [_query(one["name"], one["documentation"], _TEXT) for one in declared()]
    page = [
        _query("_sort", "The order that there is.", {"type": "string", "enum": [*ORDERS]}),
        _query("_total", "Events are not counted.", {"type": "string", "enum": ["none"]}),
    ]
    about = [PARAMETERS[name] for name in ("_summary", CURSOR, "_elements")]
    return [*criteria, *about, _query("_count", "The most entries of a page.", _ONE_UP), *page]


def tries(services: Services, type_name: str) -> list[JsonObject]:
    """Return what can be tried: of each parameter the one value that is not refused."""
    fits = {
        "mode": ("What is tried: a registration.", "create"),
        "profile": ("What the type is held to.", services.types[type_name].canonical),
    }
    return [
        _query(name, text, {"type": "string", "enum": [value]})
        for name, (text, value) in fits.items()
    ]
