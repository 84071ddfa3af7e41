"""Sessions by cookies, and what a page is shown with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tornado.httputil import HTTPHeaders

from fhirpub.config.settings import Config
from fhirpub.console.handlers import _CODE, _PROTECTION, DocumentHandler, cookie_name
from fhirpub.console.internal import Answer, AnswerTooLarge
from fhirpub.console.visit import Html, Page, PageRefused, Redirect, ServiceRefused
from fhirpub.errors import NotAuthenticated, NotPermitted, StoreUnavailable
from tests.unit.console.test_handlers import a_handler
from tests.unit.console.test_visit import CALLER, a_session


class Sessions:
    """Knows the session of one cookie."""

    def __init__(self, session: Any) -> None:
        self.session, self.cookies = session, []  # type: tuple[Any, list[str]]

    async def read(self, cookie: str) -> Any:
        self.cookies.append(cookie)
        if cookie != "right":
            raise NotAuthenticated("ended", "ended", cast("Any", None), token_sent=True)
        return self.session


def with_cookie(cookie: str, session: Any, address: str = "192.0.2.1") -> Any:
    handler = a_handler()
    handler.console.sessions = Sessions(session)
    name = cookie_name(handler.console)
    handler.request.headers = HTTPHeaders({"Cookie": f"{name}={cookie}"} if cookie else {})
    handler._address = address
    handler.__class__ = type("AtAddress", (type(handler),), {"address": address})
    return handler


class Caller:
    """A caller that may call from one address."""

    def may_call_from(self, address: str) -> bool:
        return address == "192.0.2.1"


async def test_a_cookie_has_its_session() -> None:
    session = SimpleNamespace(caller=None)

    assert await with_cookie("right", session).session() is session


async def test_without_a_cookie_no_session_is_looked_for() -> None:
    handler = with_cookie("", None)

    assert await handler.session() is None
    assert handler.console.sessions.cookies == []


async def test_a_session_that_has_ended_is_none() -> None:
    assert await with_cookie("wrong", SimpleNamespace(caller=None)).session() is None


@pytest.mark.parametrize(("address", "is_let_in"), [("192.0.2.1", True), ("192.0.2.2", False)])
async def test_a_session_of_a_client_is_valid_in_its_networks(
    address: str, *, is_let_in: bool
) -> None:
    session = SimpleNamespace(caller=Caller())

    assert (await with_cookie("right", session, address).session() is session) == is_let_in


# What a page is shown with


def shown(**values: Any) -> dict[str, Any]:
    handler = a_handler()
    handler.console.config = Config()
    handler._session = None
    page = Html(template="x", title="Clients", values=values, section="clients")
    return cast("dict[str, Any]", handler._shown(page))


def test_a_page_has_its_title_section_path_and_values() -> None:
    found = shown(records=[1])

    assert (found["title"], found["section"], found["path"], found["session"]) == (
        "Clients",
        "clients",
        "/console/x",
        None,
    )
    assert (found["environment"], found["documentation"]) == (Config().auth.environment, "")
    assert found["records"] == [1]
    assert {"navigation", "asset"} <= found.keys()


def test_a_page_is_shown_with_the_session_that_it_has() -> None:
    handler = a_handler()
    handler.console.config = Config()
    handler._session = session = a_session(caller=None)

    assert handler._shown(Html(template="x", title="x"))["session"] is session


def test_a_value_of_a_page_comes_before_what_all_have() -> None:
    assert shown(title="Own")["title"] == "Own"


async def test_a_page_without_a_visit_is_rendered_at_once() -> None:
    """Such as that of a refusal before the page runs."""
    handler = a_handler()
    handler.console.config = Config()
    handler._session = handler._visit = None
    written: list[tuple[int, bytes]] = []
    handler._write_page = lambda status, page: written.append((status, page))
    refusal = Html(
        template="refusal.html",
        title="x",
        values={"problems": ["wrong"], "request_id": "r-1"},
        status=403,
    )

    await handler._write(refusal)

    ((status, page),) = written
    assert status == 403
    assert b"wrong" in page


def test_a_refusal_of_the_service_keeps_its_headers_and_has_no_session() -> None:
    handler = a_handler()
    handler.console.config = Config()
    handler._session = a_session()
    handler.__class__ = type("WithId", (type(handler),), {"request_id": "r-1"})
    noted: list[Any] = []
    handler.note_issues = noted.append
    written: list[tuple[int, bytes]] = []
    handler._write_page = lambda status, page: written.append((status, page))

    handler.write_refusal(StoreUnavailable("away"))

    ((status, _page),) = written
    assert status == 503
    assert handler.headers["Retry-After"].isdecimal()
    assert handler._session is None
    assert len(noted) == 1


# What a redirect sets


@pytest.mark.parametrize(
    ("result", "cookie"),
    [
        (Redirect(path="/a"), None),
        (Redirect(path="/a", cookie="new"), "new;"),
        (Redirect(path="/a", ends=True), ";"),
    ],
)
async def test_a_redirect_begins_or_ends_a_session_or_leaves_it(
    result: Redirect, cookie: str | None
) -> None:
    handler = a_handler()
    statuses: list[int] = []
    handler.respond_empty = lambda *, status: statuses.append(status)

    await handler._write(result)

    assert handler.headers["Location"] == "/a"
    assert statuses == [303]
    if cookie is None:
        assert "Set-Cookie" not in handler.headers
    else:
        text = handler.headers["Set-Cookie"]
        assert text.startswith(f"{cookie_name(handler.console)}={cookie}")
        assert ("Max-Age=0" in text) == result.ends


# Problems of a page


async def answered(problem: Exception) -> Html:
    async def run(_visit: Any) -> Any:
        raise problem

    handler = a_handler(method="GET", audience="anyone", parameters={})
    handler.page = Page(method="GET", path="/x", run=run, audience="anyone")
    handler._path_parameters = ["a%2Fb"]
    handler.console.client = lambda _handler: None
    kind = type("Known", (type(handler),), {"request_id": "r-1", "address": "a", "cookie": ""})
    handler.__class__ = kind
    found = await handler._result(None, {})
    assert list(handler._visit.blanks) == ["a/b"]
    return cast("Html", found)


async def test_an_answer_that_is_too_large_for_a_page_is_a_bad_gateway() -> None:
    found = await answered(AnswerTooLarge())

    assert found.status == 502
    assert "too large for a page" in str(found.values)


async def test_a_refusal_of_the_service_is_shown_with_its_status_and_reason() -> None:
    body = b'{"issue": [{"diagnostics": "no such report"}]}'

    found = await answered(ServiceRefused(Answer(410, {}, body)))

    assert (found.status, found.values["problems"]) == (410, ["no such report"])


async def test_of_a_parameter_that_repeats_the_last_counts() -> None:
    handler = a_handler(
        audience="anyone", parameters=[("page", "1"), ("find", "x"), ("page", "2")]
    )
    handler._path_parameters = []
    handler.console.client = lambda _handler: None
    kind = type("Known", (type(handler),), {"request_id": "r-1", "address": "a", "cookie": ""})
    handler.__class__ = kind

    await handler._result(None, {})

    assert handler._visit.query == {"page": "2", "find": "x"}


async def test_a_page_that_refuses_is_shown_as_such() -> None:
    with pytest.raises(PageRefused):
        await answered(PageRefused("no"))


# Documents


async def test_a_document_is_never_code_of_a_page() -> None:
    assert {"script", "style", "worker"} <= _CODE
    for destination in sorted(_CODE):
        handler = cast("Any", DocumentHandler.__new__(DocumentHandler))
        handler.console = SimpleNamespace(
            sessions=Sessions(SimpleNamespace(caller=CALLER)), is_secure=True
        )
        cookie = f"{cookie_name(handler.console)}=right"
        handler.request = SimpleNamespace(
            headers=HTTPHeaders({"Cookie": cookie, "Sec-Fetch-Dest": destination})
        )
        handler.__class__ = type("AtAddress", (DocumentHandler,), {"address": "192.0.2.1"})
        with pytest.raises(NotPermitted):
            await handler.prepare()


@pytest.mark.parametrize("session", [None, SimpleNamespace(caller=None)])
async def test_a_document_is_for_the_people_of_a_client(session: Any) -> None:
    handler = cast("Any", DocumentHandler.__new__(DocumentHandler))
    handler.request = SimpleNamespace(headers=HTTPHeaders({}))

    async def read() -> Any:
        return session

    handler.session = read
    with pytest.raises(NotPermitted):
        await handler.prepare()


def test_pages_are_kept_out_of_caches_and_frames_of_others() -> None:
    assert _PROTECTION["Cache-Control"] == "no-store"
    assert _PROTECTION["Referrer-Policy"] == "strict-origin"
    assert "frame-ancestors 'none'" in _PROTECTION["Content-Security-Policy"]
