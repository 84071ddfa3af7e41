"""The request that an entry of a batch stands for, in the form that handlers take."""

from __future__ import annotations

import binascii
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

import pybase64
from tornado.httputil import HTTPHeaders, RequestStartLine

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.batch.envelope import CONDITIONS, EntryRequest
from fhirpub.fhir.strict_json import loads
from fhirpub.fhir.times import http_date, parse_instant
from fhirpub.interactions.patch_formats import FORMS
from fhirpub.problems import BatchProblem, ContentProblem, RequestProblem
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.batch.exchange import EntryExchange
from fhirpub.web.message.content_negotiation import FHIR_JSON
from fhirpub.web.message.request import Request

_BASE = "/fhir/r4"
_OF_ANSWER = ("_format", "_pretty")


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request, and whether it is the resource of its entry as it is."""

    data: bytes
    media_type: str = FHIR_JSON
    is_resource: bool = True


def target_of(entry: EntryRequest, fhir_url: str, at: str) -> str:
    """Return the path and query that an entry asks for. Raises InvalidContent."""
    place = f"{at}.request.url"
    relative = entry.url.removeprefix(f"{fhir_url}/")
    parts = _split(relative)
    if parts is None or parts.scheme or parts.netloc:
        said = f"must be relative to the FHIR base, or begin with {fhir_url}"
        raise _refuse(said, place, RequestProblem.ADDRESS_UNKNOWN)
    path = parts.path.strip("/")
    if entry.method == "POST" and path in ("", "Bundle"):
        said = "leads to a batch: a batch in a batch is not supported, send its entries here"
        raise _refuse(said, place, RequestProblem.BATCH_UNSUPPORTED)
    if entry.method == "POST" and path.endswith("/_search"):
        said = "is a search by form: use GET with the parameters in the url"
        raise _refuse(said, place, RequestProblem.BODY_TYPE_UNSUPPORTED)
    named = {name for name, _value in parse_qsl(parts.query, keep_blank_values=True)}
    if named.intersection(_OF_ANSWER):
        said = "must not have _format or _pretty: the answer has the format of the batch"
        raise _refuse(said, place, RequestProblem.FORMAT_UNSUPPORTED)
    target = f"{_BASE}/{relative.removeprefix('/')}"
    return target.encode().decode("latin-1")  # as Tornado has the bytes of a request line


def _split(url: str) -> SplitResult | None:
    """Return the parts of an address; None for one that cannot be relative."""
    if "://" in url.partition("?")[0]:
        return None
    try:
        return urlsplit(url)
    except ValueError:  # behind two slashes there is no host
        return None


def request_of(
    entry: EntryRequest,
    target: str,
    body: Body,
    sent: HTTPHeaders,
    exchange: EntryExchange,
    proxied: str = "",
) -> Request:
    """Return the request of an entry; ``sent`` are the headers of the batch.

    That of a proxy with a certificate, if ``proxied`` names it, is passed on as well.
    """
    headers = HTTPHeaders({"Accept": FHIR_JSON})
    for name in ("Authorization", "Prefer", "X-Forwarded-For", *([proxied] if proxied else ())):
        for value in sent.get_list(name):
            headers.add(name, value)
    if body.data:
        headers["Content-Type"] = body.media_type
        headers["Content-Length"] = str(len(body.data))
    for name, value in entry.conditions.items():
        headers[CONDITIONS[name]] = value
    method = "GET" if entry.method == "HEAD" else entry.method  # a refusal of HEAD has no body
    return Request(RequestStartLine(method, target, "HTTP/1.1"), headers, exchange)


def check_conditions(entry: EntryRequest, handler: BaseHandler, at: str) -> None:
    """Raise InvalidContent for conditions that the interaction does not evaluate."""
    issues = [
        Issue.error(
            BatchProblem.CONDITION_UNSUPPORTED,
            "is not evaluated by this interaction: leave it out",
            f"{at}.request.{name}",
        )
        for name in entry.conditions
        if CONDITIONS[name] not in handler.conditions
    ]
    if issues:
        raise InvalidContent(issues)


def with_http_dates(entry: EntryRequest, at: str) -> EntryRequest:
    """Return an entry whose instant is a date of HTTP. Raises InvalidContent."""
    since = entry.conditions.get("ifModifiedSince")
    if since is None:
        return entry
    moment = parse_instant(since)
    if moment is None:
        said = "must be an instant such as 2026-11-20T10:00:00Z"
        place = f"{at}.request.ifModifiedSince"
        raise _refuse(said, place, ContentProblem.VALUE_INVALID)
    conditions = {**entry.conditions, "ifModifiedSince": http_date(moment)}
    return EntryRequest(entry.method, entry.url, conditions, entry.resource, entry.full_url)


def body_of_patch(_context: Any, resource: bytes, *, at: str) -> Body:
    """Return the body of a PATCH: the resource, or the data of a Binary that holds a patch.

    Raises InvalidContent.
    """
    content = loads(resource)
    if not isinstance(content, dict) or content.get("resourceType") != "Binary":
        return Body(resource)
    media_type, data = content.get("contentType"), content.get("data")
    if media_type not in FORMS:
        said = f"must be one of {', '.join(FORMS)}"
        place = f"{at}.resource.contentType"
        raise _refuse(said, place, RequestProblem.BODY_TYPE_UNSUPPORTED)
    try:
        decoded = pybase64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except (ValueError, binascii.Error):
        decoded = b""
    if not decoded:
        said = "must be the patch in base64"
        raise _refuse(said, f"{at}.resource.data", ContentProblem.BASE64_INVALID)
    return Body(decoded, str(media_type), is_resource=False)


def _refuse(said: str, at: str, details: ContentProblem | RequestProblem) -> InvalidContent:
    return InvalidContent([Issue.error(details, said, at)])
