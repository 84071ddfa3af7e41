"""The request that an entry stands for: its address, its headers, its conditions, its body."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import cast

import pytest
from tornado.httputil import HTTPHeaders

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.batch.envelope import EntryRequest
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.batch.exchange import EntryExchange
from fhirpub.web.handlers.batch.requests import (
    Body,
    body_of_patch,
    check_conditions,
    request_of,
    target_of,
    with_http_dates,
)
from fhirpub.web.message.request import Request

URL = "https://api.example/fhir/r4"
AT = "Bundle.entry[2]"


def entry(method: str = "GET", url: str = "Patient", **conditions: str) -> EntryRequest:
    return EntryRequest(method, url, conditions, b"", "")


def problem(refused: pytest.ExceptionInfo[InvalidContent]) -> tuple[str, str]:
    issue: Issue = refused.value.issues[0]
    return str(issue.details), issue.expression


def asked(made: EntryRequest, sent: HTTPHeaders, body: bytes = b"", proxied: str = "") -> Request:
    exchange = cast("EntryExchange", SimpleNamespace())
    return request_of(made, "/fhir/r4/Patient", Body(body), sent, exchange, proxied)


# The address.


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("Patient/1", "/fhir/r4/Patient/1"),
        ("/Patient/1", "/fhir/r4/Patient/1"),
        (f"{URL}/Patient/1", "/fhir/r4/Patient/1"),
        ("Patient?name=a&birthdate=b", "/fhir/r4/Patient?name=a&birthdate=b"),
        ("Patient?identifier=https://lab.example/a|1", None),
    ],
)
def test_a_target_is_below_the_base(url: str, target: str | None) -> None:
    assert target_of(entry(url=url), URL, AT) == (target or f"/fhir/r4/{url}")


def test_a_target_has_the_bytes_of_a_request_line() -> None:
    assert target_of(entry(url="Patient?name=ü"), URL, AT) == "/fhir/r4/Patient?name=Ã¼"


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example/fhir/r4/Patient",
        f"{URL}evil/Patient",
        "//other.example/Patient",
        "urn:uuid:1",
        "//[",
    ],
)
def test_an_address_elsewhere_is_refused(url: str) -> None:
    with pytest.raises(InvalidContent) as refused:
        target_of(entry(url=url), URL, AT)

    assert problem(refused) == ("address-unknown", f"{AT}.request.url")


@pytest.mark.parametrize("url", ["/", "Bundle", "/Bundle/", f"{URL}/", "Bundle?_pretty=true"])
def test_a_batch_in_a_batch_is_refused(url: str) -> None:
    with pytest.raises(InvalidContent) as refused:
        target_of(entry("POST", url), URL, AT)

    assert problem(refused) == ("batch-unsupported", f"{AT}.request.url")


def test_a_bundle_can_be_asked_for() -> None:
    assert target_of(entry("GET", "Bundle"), URL, AT) == "/fhir/r4/Bundle"


def test_a_search_by_form_is_refused() -> None:
    with pytest.raises(InvalidContent) as refused:
        target_of(entry("POST", "Patient/_search"), URL, AT)

    assert problem(refused) == ("body-type-unsupported", f"{AT}.request.url")


@pytest.mark.parametrize("query", ["_format=xml", "_pretty=true", "a=1&_format=", "_pretty"])
def test_an_entry_has_no_format_of_its_own(query: str) -> None:
    with pytest.raises(InvalidContent) as refused:
        target_of(entry(url=f"Patient?{query}"), URL, AT)

    assert problem(refused) == ("format-unsupported", f"{AT}.request.url")


# The headers.


def test_an_entry_is_sent_with_the_token_and_the_preference_of_the_batch() -> None:
    sent = HTTPHeaders({"Authorization": "Bearer t", "Prefer": "return=minimal"})
    sent.add("X-Forwarded-For", "192.0.2.1")

    headers = asked(entry(), sent).headers

    assert [*headers.get_all()] == [
        ("Accept", "application/fhir+json"),
        ("Authorization", "Bearer t"),
        ("Prefer", "return=minimal"),
        ("X-Forwarded-For", "192.0.2.1"),
    ]


def test_an_entry_has_every_token_that_the_batch_had() -> None:
    sent = HTTPHeaders()
    sent.add("Authorization", "Bearer a")
    sent.add("Authorization", "Bearer b")

    assert asked(entry(), sent).headers.get_list("Authorization") == ["Bearer a", "Bearer b"]


def test_conditions_of_the_batch_are_not_those_of_an_entry() -> None:
    sent = HTTPHeaders({"If-Match": "*", "Content-Encoding": "gzip", "Content-Length": "9"})

    assert [*asked(entry(), sent).headers] == ["Accept"]


def test_the_header_of_a_certificate_is_passed_on_if_it_is_named() -> None:
    sent = HTTPHeaders({"X-Client-Cert": "pem"})

    assert "X-Client-Cert" not in asked(entry(), sent).headers
    assert asked(entry(), sent, proxied="X-Client-Cert").headers["X-Client-Cert"] == "pem"


def test_each_condition_is_its_header() -> None:
    made = entry(ifMatch="a", ifNoneMatch="b", ifModifiedSince="c", ifNoneExist="d")

    headers = asked(made, HTTPHeaders()).headers

    names = ("If-Match", "If-None-Match", "If-Modified-Since", "If-None-Exist")
    assert [headers[name] for name in names] == ["a", "b", "c", "d"]


def test_a_body_is_announced_with_its_type_and_length() -> None:
    headers = asked(entry("POST"), HTTPHeaders(), b"{}").headers

    assert (headers["Content-Type"], headers["Content-Length"]) == ("application/fhir+json", "2")


def test_a_patch_is_announced_with_the_type_of_its_form() -> None:
    exchange = cast("EntryExchange", SimpleNamespace())
    body = Body(b"[]", "application/json-patch+json", is_resource=False)

    made = request_of(entry("PATCH"), "/fhir/r4/Patient", body, HTTPHeaders(), exchange)

    assert made.headers["Content-Type"] == "application/json-patch+json"


def test_a_head_is_asked_as_a_get() -> None:
    assert [asked(entry(name), HTTPHeaders()).method for name in ("HEAD", "PATCH")] == [
        "GET",
        "PATCH",
    ]


# Conditions.


def test_a_condition_that_is_not_evaluated_is_refused_at_its_place() -> None:
    handler = cast("BaseHandler", SimpleNamespace(conditions=frozenset({"If-Match"})))

    check_conditions(entry(ifMatch="a"), handler, AT)
    with pytest.raises(InvalidContent) as refused:
        check_conditions(entry(ifMatch="a", ifNoneExist="b"), handler, AT)

    assert [one.expression for one in refused.value.issues] == [f"{AT}.request.ifNoneExist"]
    assert problem(refused)[0] == "condition-unsupported"


def test_all_conditions_that_are_not_evaluated_are_refused_together() -> None:
    handler = cast("BaseHandler", SimpleNamespace(conditions=frozenset({"If-Match"})))

    with pytest.raises(InvalidContent) as refused:
        check_conditions(entry(ifNoneMatch="a", ifMatch="b", ifNoneExist="c"), handler, AT)

    places = [one.expression.rpartition(".")[2] for one in refused.value.issues]
    assert places == ["ifNoneMatch", "ifNoneExist"]


def test_an_instant_becomes_a_date_of_http() -> None:
    made = EntryRequest("GET", "u", {"ifModifiedSince": "2026-11-20T11:00:00+01:00"}, b"r", "f")

    dated = with_http_dates(made, AT)

    expected = {"ifModifiedSince": "Fri, 20 Nov 2026 10:00:00 GMT"}
    assert dated == EntryRequest("GET", "u", expected, b"r", "f")


def test_what_is_no_instant_is_refused() -> None:
    with pytest.raises(InvalidContent) as refused:
        with_http_dates(entry(ifModifiedSince="Fri, 20 Nov 2026 10:00:00 GMT"), AT)

    assert problem(refused) == ("value-invalid", f"{AT}.request.ifModifiedSince")


# The body of a patch.


def binary(**changes: object) -> bytes:
    return json.dumps({"resourceType": "Binary", **changes}).encode()


def test_a_resource_is_the_body_of_its_patch() -> None:
    body = body_of_patch(None, b'{"resourceType":"Patient","data":"e30="}', at=AT)

    assert (body.data[:16], body.media_type, body.is_resource) == (
        b'{"resourceType":',
        "application/fhir+json",
        True,
    )


def test_a_binary_holds_the_patch() -> None:
    data = base64.b64encode(b"[{}]").decode()
    made = binary(contentType="application/json-patch+json", data=data)

    assert body_of_patch(None, made, at=AT) == Body(
        b"[{}]", "application/json-patch+json", is_resource=False
    )


def test_a_binary_of_another_type_is_no_patch() -> None:
    with pytest.raises(InvalidContent) as refused:
        body_of_patch(None, binary(contentType="text/plain", data="e30="), at=AT)

    assert problem(refused) == ("body-type-unsupported", f"{AT}.resource.contentType")


@pytest.mark.parametrize("data", ["", "e30", "e3 0=", 5, None])
def test_a_patch_must_be_in_base64(data: object) -> None:
    made = binary(contentType="application/json-patch+json", data=data)

    with pytest.raises(InvalidContent) as refused:
        body_of_patch(None, made, at=AT)

    assert problem(refused) == ("base64-invalid", f"{AT}.resource.data")


@pytest.mark.parametrize("url", ["https://other.example/Patient", "a://b", "1://b"])
def test_an_address_of_another_scheme_is_not_relative(url: str) -> None:
    with pytest.raises(InvalidContent):
        target_of(entry(url=url), URL, AT)


def test_a_scheme_in_the_query_of_an_address_is_none() -> None:
    target = target_of(entry(url="Patient?identifier=https://a.example|1"), URL, AT)

    assert target.endswith("/Patient?identifier=https://a.example|1")
