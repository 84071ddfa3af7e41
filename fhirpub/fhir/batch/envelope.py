"""What surrounds the resources of a batch: the Bundle, and the request of each entry."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.batch.splitter import Span, Split, split
from fhirpub.fhir.explanation.envelope import refuse_kind
from fhirpub.fhir.explanation.unknown_names import describe_unknown_names
from fhirpub.fhir.strict_json import JsonObject, dumps, loads
from fhirpub.fhir.xml.tables import tables
from fhirpub.problems import ContentProblem, Problem, RequestProblem
from fhirpub.runtime.stages import Stages

_BOM = b"\xef\xbb\xbf"
_CUT = b"0"
"""What stands for a resource, or for all entries, in the text around it."""
_LINES = re.compile(r" \(line [^)]*\)")
_MAX_SHELL = 64 * 1024
_OF_BUNDLE = frozenset(
    {
        *("resourceType", "id", "meta", "language", "identifier", "type", "timestamp", "link"),
        *("entry", "signature"),
    }
)
_OF_ENTRY = frozenset({"id", "extension", "link", "fullUrl", "resource", "request"})
CONDITIONS = {
    "ifMatch": "If-Match",
    "ifNoneMatch": "If-None-Match",
    "ifModifiedSince": "If-Modified-Since",
    "ifNoneExist": "If-None-Exist",
}
"""The header that each condition of an entry stands for (R4 http, batch)."""
_OF_REQUEST = frozenset({"id", "extension", "method", "url", *CONDITIONS})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_WITH_RESOURCE = frozenset({"POST", "PUT", "PATCH"})
_URL = re.compile(r"[^\x00-\x20\x7f-\xa0#]+")
_MAX_URL = 8_192
_REFERENCE = re.compile(rb'"reference"\s*:\s*"(urn:(?:uuid|oid):[^"\\]{1,80})"')


@dataclass(frozen=True, slots=True)
class EntryRequest:
    """The request that an entry stands for."""

    method: str
    url: str
    conditions: Mapping[str, str]
    """The values of conditions by the names of their elements."""
    resource: bytes
    full_url: str


Entry = EntryRequest | InvalidContent
"""The request of an entry, or why it cannot be read."""


def read_batch(context: object, body: bytes, *, most: int, window: int = 0) -> Stages[list[Entry]]:
    """Return the entries of a batch; pure, for any thread or process.

    Raises what :func:`split` raises, and InvalidContent for a Bundle that is no batch.
    """
    body = body.removeprefix(_BOM)
    found = yield from split(context, body, most=most, window=window)
    _check_bundle(body, found)
    entries: list[Entry] = []
    for place, (span, resource) in enumerate(found.entries):
        try:
            entries.append(_read_entry(body, span, resource, place))
        except InvalidContent as problem:
            entries.append(problem.with_traceback(None))
        yield
    return entries


def _check_bundle(body: bytes, found: Split) -> None:
    """Check what surrounds the entries of a Bundle. Raises InvalidContent with all problems."""
    start, end = found.array or (len(body), len(body))
    bundle = _shell(body, (0, len(body)), (start, end) if found.array else None, "Bundle")
    if not isinstance(bundle, dict) or bundle.get("resourceType") != "Bundle":
        advice = {"Parameters": "send it to the operation itself, such as $register"}
        raise refuse_kind(bundle, tables().resources, "a Bundle", advice=advice)
    issues = [*_wrong_type(bundle.get("type")), *_unknown(bundle, _OF_BUNDLE, "Bundle")]
    if found.array is None and "entry" in bundle:
        issues.append(_malformed("must be an array of entries", "Bundle.entry"))
    if issues:
        raise InvalidContent(issues)


def _wrong_type(kind: Any) -> list[Issue]:
    if kind == "batch":
        return []
    at = "Bundle.type"
    if kind is None:
        return [Issue.error(ContentProblem.ELEMENT_REQUIRED, "is required: batch", at)]
    if kind == "transaction":
        said = (
            "transactions are not supported: send the type batch, whose entries succeed or fail "
            "one by one, or register resources that belong together by one $register"
        )
        return [Issue.error(RequestProblem.BATCH_UNSUPPORTED, said, at)]
    return [Issue.error(RequestProblem.BATCH_UNSUPPORTED, "must be batch", at)]


def _read_entry(body: bytes, span: Span, resource: Span | None, place: int) -> EntryRequest:
    """Return the request of the entry at a place. Raises InvalidContent with all problems.

    An entry does not hold up the event loop: all but its resource is at most 64 KiB long.
    """
    at = f"Bundle.entry[{place}]"
    entry = _shell(body, span, resource, at)
    if not isinstance(entry, dict):
        raise InvalidContent([_malformed("must be an object with a request", at)])
    issues = _unknown(entry, _OF_ENTRY, at)
    sent = _resource_of(body, entry, resource, at, issues)
    request = entry.get("request")
    if not isinstance(request, dict):
        said = "is required: the method and the url of the request"
        issues.append(Issue.error(ContentProblem.ELEMENT_REQUIRED, said, f"{at}.request"))
        raise InvalidContent(issues)
    issues += _unknown(request, _OF_REQUEST, f"{at}.request")
    issues += _wrong_texts(entry, request, at)
    issues += _wrong_request(request, sent, at)
    if issues:
        raise InvalidContent(issues)
    return EntryRequest(
        method=request["method"],
        url=request["url"],
        conditions={name: request[name] for name in CONDITIONS if name in request},
        resource=sent,
        full_url=entry.get("fullUrl", ""),
    )


def _shell(body: bytes, span: Span, inner: Span | None, at: str) -> Any:
    """Return what surrounds the inner part, with a number in its place."""
    pieces = _pieces_around(body, span, inner)
    if pieces is None:
        said = f"has more than {_MAX_SHELL} bytes outside of its resources"
        raise InvalidContent.because(
            said, expression=at, details=ContentProblem.BODY_TOO_LARGE, code="too-costly"
        )
    try:
        return loads(b"".join(pieces))
    except InvalidContent as problem:
        raise InvalidContent(_at_shell(issue, at) for issue in problem.issues) from None


def _pieces_around(body: bytes, span: Span, inner: Span | None) -> list[bytes] | None:
    """Return the pieces of what surrounds the inner part, None if they are too long."""
    start, end = span
    if inner is None:
        return [body[start:end]] if end - start <= _MAX_SHELL else None
    before, behind = inner[0] - start, end - inner[1]
    is_short = before + behind <= _MAX_SHELL
    return [body[start : inner[0]], _CUT, body[inner[1] : end]] if is_short else None


def _at_shell(issue: Issue, at: str) -> Issue:
    """Return an issue without lines and columns, which are those of what is parsed alone."""
    return replace(issue.at(at), diagnostics=_LINES.sub("", issue.diagnostics))


def _resource_of(
    body: bytes, entry: JsonObject, span: Span | None, at: str, issues: list[Issue]
) -> bytes:
    """Return the bytes of a resource, as they were sent."""
    if span is not None:
        return body[span[0] : span[1]]
    resource = entry.get("resource")
    if resource is not None and not isinstance(resource, dict):
        issues.append(_malformed("must be a resource", f"{at}.resource"))
    return dumps(resource) if isinstance(resource, dict) else b""


def _unknown(value: JsonObject, known: Collection[str], at: str) -> list[Issue]:
    names = [name for name in value if name.removeprefix("_") not in known]
    if not names:
        return []
    said = describe_unknown_names("properties", names)
    return [Issue.error(ContentProblem.ELEMENT_UNKNOWN, said, at)]


def _wrong_texts(entry: JsonObject, request: JsonObject, at: str) -> list[Issue]:
    values = {f"{at}.fullUrl": entry.get("fullUrl", "")}
    values |= {f"{at}.request.{name}": request.get(name, "") for name in CONDITIONS}
    return [
        _malformed("must be a text of visible ASCII characters", place)
        for place, value in values.items()
        if not isinstance(value, str) or not value.isascii() or not value.isprintable()
    ]


def _wrong_request(request: JsonObject, resource: bytes, at: str) -> list[Issue]:
    return [*_wrong_method(request, resource, at), *_wrong_url(request, f"{at}.request.url")]


def _wrong_method(request: JsonObject, resource: bytes, at: str) -> Iterator[Issue]:
    """Yield the issue of a method that is wrong, or has no resource where it needs one."""
    method = request.get("method")
    if not isinstance(method, str) or method not in _METHODS:
        said = "must be GET, HEAD, POST or PATCH"
        yield _malformed(said, f"{at}.request.method", RequestProblem.METHOD_UNSUPPORTED)
    elif method in _WITH_RESOURCE and not resource:
        said = f"is required for {method}"
        yield Issue.error(ContentProblem.ELEMENT_REQUIRED, said, f"{at}.resource")
    elif method not in _WITH_RESOURCE and resource:
        yield _malformed(f"must be absent for {method}", f"{at}.resource")


def _wrong_url(request: JsonObject, at: str) -> Iterator[Issue]:
    url = request.get("url")
    if not isinstance(url, str) or not _URL.fullmatch(url):
        said = "is required: the address below the FHIR base, without blanks"
        yield Issue.error(ContentProblem.ELEMENT_REQUIRED, said, at)
    elif len(url) > _MAX_URL:
        said = f"has more than {_MAX_URL} characters"
        yield _malformed(said, at, RequestProblem.ADDRESS_TOO_LONG)


def urns_in(resource: bytes) -> list[str]:
    """Return the references of a resource that are a UUID or an OID, as fullUrls are."""
    if b'"urn:' not in resource:
        return []
    return sorted({match[1].decode("latin-1") for match in _REFERENCE.finditer(resource)})


def _malformed(said: str, at: str, details: Problem = ContentProblem.ELEMENT_MALFORMED) -> Issue:
    return Issue.error(details, said, at)
