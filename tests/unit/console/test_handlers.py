"""Cookies, forms and what leads elsewhere, before a page runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.console.handlers import PageHandler, _cookie, _fields, cookie_name
from fhirpub.console.sessions import Session
from fhirpub.console.visit import Html, Page, PageRefused, Redirect, Visit
from fhirpub.http.exchange import Headers
from tests.unit.console.test_visit import CALLER, a_session

ORIGIN = "https://console.example.org"


async def nothing(_visit: Visit) -> Redirect:
    return Redirect(path="/")


def a_handler(
    *, method: str = "GET", audience: Any = "signed-in", secure: bool = True, **request: Any
) -> Any:
    """Return a handler of a page with only what is looked at before the page runs."""
    handler = cast("Any", PageHandler.__new__(PageHandler))
    handler.page = Page(method=cast("Any", method), path="/x", run=nothing, audience=audience)
    usual = {"method": method, "path": "/console/x", "query": "", "headers": {"Origin": ORIGIN}}
    handler.request = SimpleNamespace(**usual | request)
    handler.console = SimpleNamespace(origin=ORIGIN, is_secure=secure)
    handler.headers = Headers({})
    return handler


@pytest.mark.parametrize(
    ("headers", "value"),
    [
        ([], ""),
        (["a=1"], "1"),
        (["b=2; a=1; c=3"], "1"),
        (["b=2", "a=1"], "1"),
        (["a=1; a=2"], "1"),
        (["aa=1; a"], ""),
        (["a=x=y"], "x=y"),
        ([" a=1 "], "1"),
        (["A=1"], ""),
    ],
)
def test_the_first_cookie_of_the_name_is_read(headers: list[str], value: str) -> None:
    assert _cookie(headers, "a") == value


def test_a_cookie_of_https_is_bound_to_its_host() -> None:
    secure: Any = SimpleNamespace(is_secure=True)
    other: Any = SimpleNamespace(is_secure=False)

    assert cookie_name(secure) == "__Host-fhirpub"
    assert cookie_name(other) == "fhirpub_session"


@pytest.mark.parametrize(
    ("secure", "value", "cookie"),
    [
        (True, "x", "__Host-fhirpub=x; Path=/; HttpOnly; SameSite=Lax; Secure"),
        (False, "x", "fhirpub_session=x; Path=/; HttpOnly; SameSite=Lax"),
        (True, "", "__Host-fhirpub=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0"),
    ],
)
def test_a_cookie_is_kept_from_scripts_and_other_sites(
    value: str, cookie: str, *, secure: bool
) -> None:
    handler = a_handler(secure=secure)

    handler._set_cookie(value)

    assert handler.headers["Set-Cookie"] == cookie


def test_the_fields_of_a_form_are_read_with_those_that_are_empty() -> None:
    assert _fields(b"a=1&a=2&b=&c=%C3%BC+x") == {"a": ["1", "2"], "b": [""], "c": ["ü x"]}
    assert _fields(b"") == {}


@pytest.mark.parametrize("body", [b"\xff", b"a=%FF", b"&".join([b"a=1"] * 101)])
def test_what_is_no_form_of_ours_is_refused(body: bytes) -> None:
    with pytest.raises(PageRefused) as refused:
        _fields(body)

    assert refused.value.status == 400


def test_a_form_has_up_to_a_hundred_fields() -> None:
    assert len(_fields(b"&".join([b"a=1"] * 100))["a"]) == 100


@pytest.mark.parametrize("session", [None, a_session(), a_session(caller=None)])
def test_a_page_for_anyone_leads_nowhere_else(session: Session | None) -> None:
    assert a_handler(audience="anyone")._lead_elsewhere(session) is None


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ({}, "/console/sign-in?next=%2Fconsole%2Fx"),
        ({"query": "a=1&b=2"}, "/console/sign-in?next=%2Fconsole%2Fx%3Fa%3D1%26b%3D2"),
        ({"method": "POST"}, "/console/sign-in?next=%2Fconsole%2F"),
    ],
)
def test_without_a_session_a_page_leads_to_the_sign_in_and_back(
    request_: dict[str, Any], path: str
) -> None:
    assert a_handler(**request_)._lead_elsewhere(None) == Redirect(path=path)


@pytest.mark.parametrize(
    ("audience", "caller", "is_shown"),
    [
        ("signed-in", CALLER, True),
        ("signed-in", None, True),
        ("integrator", CALLER, True),
        ("integrator", None, False),
        ("operator", CALLER, False),
        ("operator", None, True),
    ],
)
def test_a_page_is_for_its_audience(audience: Any, caller: Any, *, is_shown: bool) -> None:
    handler, session = a_handler(audience=audience), a_session(caller)

    if is_shown:
        assert handler._lead_elsewhere(session) is None
    else:
        whom = "operators" if audience == "operator" else "the people of a client"
        with pytest.raises(PageRefused, match=f"This page is for {whom}"):
            handler._lead_elsewhere(session)


@pytest.mark.parametrize(
    "origin", ["", "null", "https://evil.example", "http://console.example.org", f"{ORIGIN}:444",
               f"{ORIGIN}/"]
)  # fmt: skip
def test_a_form_of_another_origin_is_refused(origin: str) -> None:
    handler = a_handler(method="POST", headers={"Origin": origin})

    with pytest.raises(PageRefused, match="was not sent by a page at"):
        handler._check_origin(a_session(), {"proof": ["p"]})


def test_a_page_that_is_read_needs_no_origin() -> None:
    a_handler(headers={})._check_origin(a_session(), {})


def test_a_form_has_the_proof_of_its_session() -> None:
    handler = a_handler(method="POST")

    handler._check_origin(a_session(), {"proof": ["p", "x"]})
    forms: list[dict[str, list[str]]] = [
        {},
        {"proof": [""]},
        {"proof": ["x", "p"]},
        {"proof": []},
    ]
    for form in forms:
        with pytest.raises(PageRefused, match="of another session"):
            handler._check_origin(a_session(), form)


def test_a_form_for_anyone_needs_an_origin_and_no_proof() -> None:
    handler = a_handler(method="POST", audience="anyone")

    handler._check_origin(a_session(), {})
    handler._check_origin(None, {})
    with pytest.raises(PageRefused):
        a_handler(method="POST", audience="anyone", headers={})._check_origin(None, {})


@pytest.mark.parametrize(("headers", "is_renewed"), [({}, True), ({"X-Live": "1"}, False)])
async def test_a_page_renews_its_session_unless_it_asks_on_its_own(
    headers: dict[str, str], *, is_renewed: bool
) -> None:
    async def renew(_session: Session) -> str:
        return "new"

    async def compute(_work: object) -> bytes:
        return b"page"

    handler = a_handler(headers=headers)
    handler._session = a_session()
    handler._visit = SimpleNamespace(compute=compute)
    handler.console.sessions = SimpleNamespace(renew=renew)
    handler._shown = lambda _result: {}
    written: list[tuple[int, bytes]] = []
    handler._write_page = lambda status, page: written.append((status, page))

    await handler._write(Html(template="x", title="x"))

    assert written == [(200, b"page")]
    assert ("Set-Cookie" in handler.headers) is is_renewed


def test_a_form_has_at_most_64_kib() -> None:
    assert a_handler(method="POST").max_bytes() == 65_536
