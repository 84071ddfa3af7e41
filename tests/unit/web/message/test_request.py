"""The line, the query and the headers of a request, as handlers read them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tornado.httputil import HTTPHeaders, RequestStartLine

from fhirpub.errors import InvalidSearch
from fhirpub.web.message.preconditions import NONE, Preconditions
from fhirpub.web.message.request import Request, parameters_of

PROXIES = ("10.0.0.0/8", "192.0.2.7/32")


def request(target: str = "/", *headers: tuple[str, str], peer: str = "203.0.113.9") -> Request:
    given = HTTPHeaders()
    for name, value in headers:
        given.add(name, value)
    connection = SimpleNamespace(context=SimpleNamespace(remote_ip=peer))
    return Request(RequestStartLine("GET", target, "HTTP/1.1"), given, connection)


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/fhir/r4/Patient?a=1&b=2", "/fhir/r4/Patient", "a=1&b=2"),
        ("/a?b?c", "/a", "b?c"),
        ("/a", "/a", ""),
        ("http://host:80/a?b=1", "/a", "b=1"),
        ("HTTPS://host/a", "/a", ""),
        ("https://host?a=1", "", "a=1"),
        ("/http://host/a", "/http://host/a", ""),
        ("ftp://host/a", "ftp://host/a", ""),
    ],
)
def test_the_target_has_a_path_and_a_query(target: str, path: str, query: str) -> None:
    made = request(target)

    assert (made.path, made.query) == (path, query)


def test_parameters_keep_their_order_and_empty_values() -> None:
    assert request("/?a=1&b=&a=%C3%BC&c").parameters == [
        ("a", "1"),
        ("b", ""),
        ("a", "ü"),
        ("c", ""),
    ]


def test_of_a_repeated_parameter_the_last_counts() -> None:
    made = request("/?a=1&a=2")

    assert (made.parameter("a"), made.parameter("b"), request().parameter("a")) == ("2", "", "")


def test_a_query_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(InvalidSearch, match="must be UTF-8"):
        parameters_of("name=%FC")


def test_bytes_that_stand_in_a_query_unescaped_are_utf_8() -> None:
    assert parameters_of("name=\xc3\xbc") == [("name", "ü")]


def test_a_query_has_at_most_a_thousand_parameters() -> None:
    assert len(parameters_of("&".join(["a=1"] * 1_000))) == 1_000
    with pytest.raises(InvalidSearch, match="at most 1000 parameters"):
        parameters_of("&".join(["a=1"] * 1_001))


def test_a_form_stands_behind_the_query() -> None:
    made = request("/?a=1")
    made.add_form([("a", "2"), ("b", "3")])

    assert made.parameters == [("a", "1"), ("a", "2"), ("b", "3")]
    assert made.form == [("a", "2"), ("b", "3")]
    assert made.parameter("a") == "2"


def test_a_form_alone_is_asked_as_a_query() -> None:
    made = request("/")
    made.add_form([("a", "2")])

    assert made.parameter("a") == "2"


def test_conditions_are_those_of_all_headers_of_a_name() -> None:
    made = request(
        "/",
        ("If-Match", '"1"'),
        ("If-Match", '"2"'),
        ("If-Unmodified-Since", "x"),
        ("If-None-Match", '"3"'),
    )

    assert made.preconditions() == Preconditions(['"1"', '"2"'], "x")
    assert made.preconditions_of_update() == Preconditions(['"1"', '"2"'], "x", ['"3"'])


def test_a_tag_alone_is_a_condition() -> None:
    assert request("/", ("If-Match", '"1"')).preconditions().if_match == ['"1"']


def test_a_date_alone_is_a_condition() -> None:
    assert request("/", ("If-Unmodified-Since", "x")).preconditions().unmodified_since == "x"


def test_without_such_headers_there_are_no_conditions() -> None:
    assert request("/", ("If-None-Match", '"1"')).preconditions() is NONE


@pytest.mark.parametrize(
    ("headers", "body", "content"),
    [
        ([], False, False),
        ([("Content-Length", "0")], True, False),
        ([("Content-Length", "1")], True, True),
        ([("Transfer-Encoding", "chunked")], True, True),
    ],
)
def test_a_body_is_announced_by_headers(
    headers: list[tuple[str, str]], *, body: bool, content: bool
) -> None:
    made = request("/", *headers)

    assert (made.has_body(), made.has_content()) == (body, content)


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.1.1.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.1.1.1", ["198.51.100.1, 203.0.113.5"], "203.0.113.5"),
        ("10.1.1.1", ["203.0.113.5, 10.2.2.2, 192.0.2.7"], "203.0.113.5"),
        ("10.1.1.1", ["203.0.113.5", "10.2.2.2"], "203.0.113.5"),
        ("10.1.1.1", ["10.3.3.3, 10.2.2.2"], "10.1.1.1"),
        ("10.1.1.1", ["198.51.100.1, unknown"], "10.1.1.1"),
        ("10.1.1.1", [",,"], "10.1.1.1"),
        ("10.1.1.1", [], "10.1.1.1"),
        ("10.1.1.1", ["2001:db8::1"], "2001:db8::1"),
    ],
)
def test_the_client_is_the_nearest_address_that_no_proxy_has(
    peer: str, forwarded: list[str], address: str
) -> None:
    made = request("/", *(("X-Forwarded-For", value) for value in forwarded), peer=peer)

    assert made.client_address(PROXIES) == address


def test_without_trusted_proxies_no_header_names_a_client() -> None:
    made = request("/", ("X-Forwarded-For", "198.51.100.1"), peer="10.1.1.1")

    assert made.client_address(()) == "10.1.1.1"


CERTIFICATE = ("Client-Cert", ":YWJj:")


@pytest.mark.parametrize(
    ("peer", "header", "is_read"),
    [
        ("10.1.1.1", "Client-Cert", True),
        ("203.0.113.9", "Client-Cert", False),
        ("10.1.1.1", "", False),
    ],
)
def test_a_certificate_is_that_of_a_trusted_proxy_alone(
    peer: str, header: str, *, is_read: bool
) -> None:
    digest = request("/", CERTIFICATE, peer=peer).client_certificate(header, PROXIES)

    assert digest == ("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0" if is_read else "")


def test_a_certificate_twice_cannot_be_read() -> None:
    made = request("/", CERTIFICATE, CERTIFICATE, peer="10.1.1.1")

    assert made.client_certificate("Client-Cert", PROXIES) is None


def test_the_time_of_a_request_goes_on() -> None:
    made = request()

    assert 0 <= made.milliseconds() <= made.milliseconds()


def test_the_time_of_a_request_is_in_milliseconds() -> None:
    made = request()
    made._began -= 100_000

    assert 100_000_000 <= made.milliseconds() < 100_060_000
