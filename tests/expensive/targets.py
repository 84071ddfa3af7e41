"""What the service does with a body, a head or a query before it asks the store."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

from tornado.httputil import HTTPInputError

from fhirpub.app.context import create_context
from fhirpub.auth import jwt
from fhirpub.config.loader import load
from fhirpub.errors import FhirpubError
from fhirpub.fhir import date_value
from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.fhir.times import from_http
from fhirpub.fhir.units import ucum
from fhirpub.http import head as http_head
from fhirpub.interactions.context import Context
from fhirpub.interactions.execute import understood
from fhirpub.interactions.indexing import pairs, quantities
from fhirpub.interactions.patch_formats import Form
from fhirpub.interactions.register import Candidate, prepare_registration
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.summary import is_subset, subset
from fhirpub.interactions.update import prepare
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant
from fhirpub.web.error_mapping import HEAD_BYTES
from fhirpub.web.handlers.placement import DENSE, LARGE, count_values
from fhirpub.web.message import content_negotiation as media
from fhirpub.web.message.preconditions import check_if_match, includes_tag
from fhirpub.web.message.request import Request
from tests.bodies import register_body
from tests.expensive.measure import Work

LARGEST = LARGE
"""Larger bodies are not computed on the event loop."""
_TYPE = "DiagnosticReport"
_TENANT = Tenant(id="5e0b4f7a-8a38-4d07-9a6c-0d1e4c0f7a11", name="lab", salt=b"s" * 32, created=0)
_PAGE = 100
_MAX_PARAMETERS, _MAX_FORM_PARAMETERS = 1_000, 200


@cache
def _context() -> Context:
    return create_context(load(environment={}), clock=lambda: 1_800_000_000_000)


def is_dense(body: bytes) -> bool:
    """Return whether a body is computed in another process, however short it is."""
    return count_values(body) > DENSE


def registration(body: bytes, *, is_xml: bool = False) -> Work:
    """Return the computation of a ``$register``."""

    def work() -> Iterator[None]:
        _forget()
        return prepare_registration(
            _context(),
            body,
            is_xml=is_xml,
            read_body=from_parameters,
            type_name=_TYPE,
            tenant=_TENANT,
        )

    return work


@cache
def stored() -> Version:
    """Return a stored report, which updates change and searches find."""
    prepared = run_to_completion(
        prepare_registration(
            _context(),
            dumps(register_body("A-1")),
            is_xml=False,
            read_body=from_parameters,
            type_name=_TYPE,
            tenant=_TENANT,
        )
    )
    assert isinstance(prepared, Candidate)
    return prepared.version


def update(body: bytes, form: Form) -> Work:
    """Return the computation of a PATCH."""

    def work() -> Iterator[None]:
        _forget()
        return prepare(_context(), body, form=form, is_xml=False, latest=stored(), tenant=_TENANT)

    return work


def query(text: str, type_name: str = _TYPE) -> Work:
    """Return the computation of a search with a form that finds a page of a hundred reports."""

    def work() -> Iterator[None]:
        _forget()
        most = _MAX_FORM_PARAMETERS if len(text) > HEAD_BYTES else _MAX_PARAMETERS
        try:
            parameters = parse_qsl(text, keep_blank_values=True, max_num_fields=most)
        except ValueError:
            return
        yield
        context = _context()
        wanted = understood(
            parameters,
            resource_type=context.searched[type_name].type,
            tenant=_TENANT,
            context=context,
            strict=False,
        )
        yield
        if is_subset(wanted.summary, wanted.elements):
            for _ in range(_PAGE):
                subset(
                    loads_stored(stored().body),
                    context.schemas.document(_TYPE),
                    summary=wanted.summary,
                    elements=wanted.elements,
                )

    return work


def head(raw: bytes) -> Work:
    """Return what is computed from a head, by whichever handler."""

    def work() -> Iterator[None]:
        _forget()
        try:
            line, fields = http_head.read_head(raw[:HEAD_BYTES])
        except HTTPInputError:
            return
        yield
        request = Request(line, fields.headers, _PEER)
        for use in (_negotiate, _authenticate, _compare):
            with suppress(FhirpubError):
                use(request)
            yield
        request.parameter("_format")

    return work


_PEER: Any = SimpleNamespace(context=SimpleNamespace(remote_ip="127.0.0.1"))
_PROXIES = ("127.0.0.0/8", "10.0.0.0/8")


def _negotiate(request: Request) -> None:
    headers = request.headers
    media.prefers_fhir(headers.get("Accept", ""))
    for preferred in ("return", "handling"):
        media.preference(headers.get("Prefer", ""), preferred)
    with suppress(FhirpubError):
        media.answer_type(headers.get("Accept", ""), "")
    media.body_type(headers.get("Content-Type", ""))


def _authenticate(request: Request) -> None:
    request.client_address(_PROXIES)
    jwt.decode(request.headers.get("Authorization", "").removeprefix("Bearer "))


def _compare(request: Request) -> None:
    headers = request.headers
    from_http(headers.get("If-Modified-Since", ""))
    includes_tag(headers.get("If-None-Match", ""), "1")
    check_if_match(headers.get_list("If-Match"), 1)


def _forget() -> None:
    """Empty the caches whose keys are what a client sends: it would send another one each time."""
    urllib.parse.clear_cache()  # type: ignore[attr-defined]  # the stubs do not have it
    media.answer_type.cache_clear()
    media.body_type.cache_clear()
    http_head._remembered.cache_clear()
    date_value._cached.cache_clear()
    for cached in (ucum._unit_of, ucum._measure_of, quantities._cached_units, pairs._cached_name):
        cached.cache_clear()
    _context().schemas.fhirpath.cache_clear()
