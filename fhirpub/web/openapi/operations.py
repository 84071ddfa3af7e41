"""What each handler does, in the words of OpenAPI: the table behind `web/openapi/document.py`.

``{type}`` in a name stands for the resource type of the route.
"""

from __future__ import annotations

from fhirpub.interactions.cursors import CURSOR
from fhirpub.interactions.history import BELOW
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.binary import BinaryHandler
from fhirpub.web.handlers.health import LiveHandler, ReadyHandler
from fhirpub.web.handlers.history import HistoryHandler, TypeHistoryHandler
from fhirpub.web.handlers.metadata import MetadataHandler, OpenApiHandler, PublicMetadataHandler
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
from fhirpub.web.handlers.registrations.register import CreateHandler, RegisterHandler
from fhirpub.web.handlers.registrations.revise import ReviseHandler
from fhirpub.web.handlers.search import SearchFormHandler, SearchHandler
from fhirpub.web.handlers.token import (
    KeysHandler,
    RevocationHandler,
    ServerMetadataHandler,
    SmartConfigurationHandler,
    TokenHandler,
)
from fhirpub.web.handlers.update import ConditionalUpdateHandler, UpdateHandler
from fhirpub.web.handlers.validate import ValidateHandler
from fhirpub.web.openapi.operation import Operation, Success

_VERSIONED = ("ETag", "Last-Modified")
_WRITTEN = (*_VERSIONED, "Location")
_REGISTERED = (*_WRITTEN, "Idempotent-Replayed", "Idempotent-Content")
FORMAT = ("_format", "_pretty")
_ONE_VERSION = ("If-Match", "If-Unmodified-Since")
_CONDITIONS = ("If-None-Match", "If-Modified-Since", *_ONE_VERSION)
_UPDATED_IF = (*_ONE_VERSION, "If-None-Match")
_SUBSETS = ("_summary", "_elements")
NOT_MODIFIED = Success(text="The client has it.", form="empty", headers=("ETag",))
_SEARCHED = {
    200: Success(text="A page of what was found. Its link `next` leads on.", schema="Bundle")
}
_REPLACED = "Each named field is replaced; with `If-Match` only in the version that it names."
_STATEMENT = Operation(
    name="capabilities",
    summary="Read what the service can do, as a CapabilityStatement",
    successes={
        200: Success(text="The statement.", schema="CapabilityStatement", headers=("ETag",)),
        304: NOT_MODIFIED,
    },
    refusals=(406,),
    parameters=(*FORMAT, "If-None-Match"),
    tag="Service",
)


def reading(name: str, summary: str, blanks: tuple[str, ...] = ("id",)) -> Operation:
    """Describe a read of a resource: its name, what it is for, and the blanks of its path."""
    return Operation(
        name=name,
        summary=summary,
        successes={
            200: Success(text="The resource.", schema="{type}", headers=_VERSIONED),
            304: NOT_MODIFIED,
        },
        refusals=(404, 406, 412),
        parameters=(*FORMAT, *_SUBSETS, *_CONDITIONS),
        blanks=blanks,
    )


def _update(name: str, summary: str, *parameters: str, text: str) -> Operation:
    return Operation(
        name=name,
        summary=summary,
        text=text,
        successes={
            200: Success(
                text="For `Prefer: return=representation` the new version, for "
                "`return=OperationOutcome` the remarks on it.",
                schema="{type}OrOutcome",
                headers=_WRITTEN,
            ),
            204: Success(text="There is a new version.", form="empty", headers=_WRITTEN),
        },
        refusals=(404, 406, 412, 422),
        parameters=(*FORMAT, *parameters),
        body="update",
    )


def _discovery(name: str, summary: str) -> Operation:
    return Operation(
        name=name,
        summary=summary,
        successes={200: Success(text="As the standard has it.", form="json", schema="Object")},
        tag="Authorization",
    )


def _health(name: str, summary: str, *refusals: int) -> Operation:
    return Operation(
        name=name,
        summary=summary,
        successes={200: Success(text="Yes.", form="json", schema="Health")},
        refusals=refusals,
        tag="Service",
    )


OPERATIONS: dict[tuple[type[BaseHandler], str], Operation] = {
    (ReadHandler, "GET"): reading("read", "Read the latest version of a {type}"),
    (VersionHandler, "GET"): reading("vread", "Read one version of a {type}", ("id", "version")),
    (PartHandler, "GET"): reading("read", "Read a {type} that came with a registration"),
    (PartVersionHandler, "GET"): reading(
        "vread",
        "Read the one version of a {type} that came with a registration",
        ("id", "version"),
    ),
    (MemberOrPartHandler, "GET"): reading("read", "Read a {type} that came with a registration"),
    (MemberOrPartVersionHandler, "GET"): reading(
        "vread", "Read one version of a {type} that came with a registration", ("id", "version")
    ),
    (UpdateHandler, "PATCH"): _update(
        "update", "Update fields of a {type}", *_UPDATED_IF, "Prefer", text=_REPLACED
    ),
    (ConditionalUpdateHandler, "PATCH"): _update(
        "updateMatching",
        "Update fields of the one {type} that a search finds",
        *_UPDATED_IF,
        "Prefer",
        "conditions",
        text=f"{_REPLACED} 412 if the search finds several, 404 if none.",
    ),
    (RegisterHandler, "POST"): Operation(
        name="register",
        summary="Register a {type} with what belongs to it",
        text=(
            "One call, safe to repeat: the same business identifier again creates nothing and "
            "gets the first answer. Entries of other names are ignored, with a remark."
        ),
        successes={
            201: Success(
                text="Registered, now or by an earlier call; empty for `Prefer: return=minimal`, "
                "an OperationOutcome for `return=OperationOutcome`.",
                schema="Registered{type}OrOutcome",
                headers=_REGISTERED,
                id_at="/parameter/0/resource/id",
            )
        },
        refusals=(406, 409, 422),
        parameters=(*FORMAT, "Prefer"),
        body="register",
    ),
    (CreateHandler, "POST"): Operation(
        name="create",
        summary="Register a {type} that contains what belongs to it",
        text="The same registration as `$register`, in the form of FHIR's create.",
        successes={
            200: Success(
                text="The one that `If-None-Exist` finds.",
                schema="{type}OrOutcome",
                headers=_REGISTERED,
            ),
            201: Success(
                text="Registered, now or by an earlier call: the resource as it was registered; "
                "see `$register` for what `Prefer` changes.",
                schema="{type}OrOutcome",
                headers=_REGISTERED,
                id_at="/id",
            ),
        },
        refusals=(406, 409, 412, 422),
        parameters=(*FORMAT, "Prefer", "If-None-Exist"),
        body="create",
    ),
    (ReviseHandler, "POST"): Operation(
        name="revise",
        summary="Correct a {type} with what came with it",
        text=(
            "Takes the registration again, as it should be now. What differs becomes the next "
            "version, together with the next versions of what came with it. Safe to repeat, with "
            "the same `If-Match`: if nothing differs, nothing is stored."
        ),
        successes={
            200: Success(
                text="The {type} as it is now, and the resources that were added or changed; an "
                "OperationOutcome for `Prefer: return=OperationOutcome`.",
                schema="Registered{type}OrOutcome",
                headers=_WRITTEN,
                id_at="/parameter/0/resource/id",
            ),
            204: Success(text="For `Prefer: return=minimal`.", form="empty", headers=_WRITTEN),
        },
        refusals=(404, 406, 412, 422, 428),
        parameters=(*FORMAT, "If-Match-required", "If-None-Match", "Prefer"),
        body="register",
    ),
    (ValidateHandler, "POST"): Operation(
        name="validate",
        summary="Try the registration of a {type}",
        text="Nothing is stored. Takes what `$register` and create take, and FHIR's Parameters.",
        successes={
            200: Success(
                text="All that a registration would be refused for, or remark.",
                schema="OperationOutcome",
            )
        },
        refusals=(406,),
        parameters=(*FORMAT, "tries"),
        body="validate",
    ),
    (SearchHandler, "GET"): Operation(
        name="search",
        summary="Find resources of type {type}",
        successes=_SEARCHED,
        refusals=(406, 422),
        parameters=(*FORMAT, "Prefer", "searched"),
    ),
    (SearchFormHandler, "POST"): Operation(
        name="searchByForm",
        summary="Find resources of type {type}, with parameters in a form",
        text="Parameters of the address count as well.",
        successes=_SEARCHED,
        refusals=(406, 422),
        parameters=(*FORMAT, "Prefer"),
        body="search",
    ),
    (HistoryHandler, "GET"): Operation(
        name="history",
        summary="List the versions of a {type}, newest first",
        successes={200: Success(text="A page of versions.", schema="Bundle")},
        refusals=(404, 406),
        parameters=(*FORMAT, "_count", "_since", "_at", BELOW),
    ),
    (TypeHistoryHandler, "GET"): Operation(
        name="historyOfAll",
        summary="List the versions of every {type}, newest first",
        successes={200: Success(text="A page of versions.", schema="Bundle")},
        refusals=(406, 422),
        parameters=(*FORMAT, "_count", "_since", CURSOR),
    ),
    (BinaryHandler, "GET"): Operation(
        name="read",
        summary="Read a document",
        text=(
            "Searches and histories show its address as `url`. FHIR's Binary if `Accept` or "
            "`_format` names a form of FHIR. `Range` and `If-Range` request a part of the "
            "document (RFC 9110)."
        ),
        successes={
            200: Success(
                text="The document.", form="document", schema="{type}", headers=("ETag",)
            ),
            206: Success(
                text="The part of it that was asked for.",
                form="document",
                schema="{type}",
                headers=("ETag", "Content-Range"),
            ),
            304: NOT_MODIFIED,
        },
        refusals=(404, 406, 412, 416),
        parameters=(
            "_format-of-document",
            "_pretty",
            "If-Match",
            "If-None-Match",
        ),
    ),
    (OwnHandler, "GET"): Operation(
        name="read",
        summary="Read a {type} of the service itself",
        successes={200: Success(text="The resource.", schema="{type}")},
        refusals=(404, 406),
        parameters=FORMAT,
    ),
    (ProblemsHandler, "GET"): Operation(
        name="read",
        summary="Read the codes of problems, which are those of `issue.details`",
        successes={200: Success(text="The CodeSystem `problem`.", schema="Object")},
        refusals=(404, 406),
        parameters=FORMAT,
    ),
    (MetadataHandler, "GET"): _STATEMENT,
    (PublicMetadataHandler, "GET"): _STATEMENT,
    (OpenApiHandler, "GET"): Operation(
        name="openapi",
        summary="Read this document",
        successes={
            200: Success(text="OpenAPI 3.1.", form="json", schema="Object", headers=("ETag",)),
            304: NOT_MODIFIED,
        },
        parameters=("If-None-Match",),
        tag="Service",
    ),
    (TokenHandler, "POST"): Operation(
        name="token",
        summary="Ask for an access token",
        text=(
            "OAuth 2.0 client credentials (RFC 6749, 4.4): a secret in the body or by HTTP Basic, "
            "or an assertion signed with the private key of the client (RFC 7523; SMART Backend "
            "Services). Refusals are OAuth's."
        ),
        successes={200: Success(text="The token.", form="json", schema="Token")},
        refusals=(401, 403, 429, 503),
        body="token",
        tag="Authorization",
        refuses_in="OAuthError",
    ),
    (RevocationHandler, "POST"): Operation(
        name="revoke",
        summary="Revoke an access token of the client",
        text=(
            "RFC 7009, with the credentials of the client that has the token. It is refused from "
            "now on, by every process within 30 seconds. For what is no valid token the response "
            "is the same. Refusals are OAuth's."
        ),
        successes={200: Success(text="No such token is valid.", form="empty")},
        refusals=(401, 429, 503),
        body="revocation",
        tag="Authorization",
        refuses_in="OAuthError",
    ),
    (KeysHandler, "GET"): _discovery("keys", "Read the keys that verify tokens (RFC 7517)"),
    (ServerMetadataHandler, "GET"): _discovery(
        "authorizationServer", "Read about the token endpoint (RFC 8414)"
    ),
    (SmartConfigurationHandler, "GET"): _discovery(
        "smartConfiguration", "Read about the token endpoint, as SMART has it"
    ),
    (LiveHandler, "GET"): _health("live", "Ask whether the process answers"),
    (ReadyHandler, "GET"): _health("ready", "Ask whether requests can be served now", 503),
}
