"""Handlers of the console: of pages, of documents in them, and of its assets."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, quote, unquote

from fhirpub.console import assets
from fhirpub.console.console import Console
from fhirpub.console.internal import AnswerTooLarge
from fhirpub.console.navigation import navigation
from fhirpub.console.rendering import render
from fhirpub.console.sessions import Session
from fhirpub.console.visit import (
    BASE,
    Html,
    Page,
    PageRefused,
    Redirect,
    Result,
    ServiceRefused,
    Visit,
)
from fhirpub.errors import NotAuthenticated, NotPermitted
from fhirpub.http.exchange import Headers
from fhirpub.web.error_mapping import NoSuchAddress, headers_for, response_for
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.binary import BinaryHandler
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.message.content_negotiation import check_form
from fhirpub.web.message.response_body import ResponseBody

_MAX_BYTES = 64 * 1024
_MAX_FIELDS = 100
_LIVE = "X-Live"
"""The header of requests that a page makes on its own, which keep no session from ending."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_CODE = frozenset("script style worker sharedworker serviceworker audioworklet xslt".split())
"""What a browser would run or apply, by Sec-Fetch-Dest: a document is never code of a page."""
_POLICY_OF_DOCUMENTS = "sandbox; default-src 'none'; frame-ancestors 'self'"
_PROTECTION = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Never a path or a query, which may hold the code of a link; a form still names its origin.
    "Referrer-Policy": "strict-origin",
}


class _SessionReader(BaseHandler):
    """What pages and documents share: the console, and the session of the cookie."""

    requires_token = False

    def __init__(self, console: Console, *arguments: Any) -> None:
        self.console = console
        super().__init__(*arguments)

    def default_headers(self) -> Headers:
        """Keep pages out of caches, out of frames of others, and free of foreign code."""
        return Headers(super().default_headers(), **_PROTECTION)

    @property
    def cookie(self) -> str:
        """The cookie of the console, empty if there is none."""
        return _cookie(self.request.headers.get_list("Cookie"), cookie_name(self.console))

    async def session(self) -> Session | None:
        """Return the session of the request; None if there is none, or it has ended."""
        cookie = self.cookie
        if not cookie:
            return None
        try:
            session = await self.console.sessions.read(cookie)
        except NotAuthenticated:
            return None
        caller = session.caller
        if caller is not None and not caller.may_call_from(self.address):
            return None
        return session


class PageHandler(_SessionReader, BodyHandler):
    """Answer the request of a browser with a page."""

    def __init__(self, console: Console, page: Page, *arguments: Any) -> None:
        self.page = page
        self._session: Session | None = None
        self._visit: Visit | None = None
        super().__init__(console, *arguments)

    def check_format(self) -> None:
        """Answer in HTML whatever is accepted."""

    def check_content_type(self) -> None:
        """Take a form alone."""
        if self.request.method == "POST":
            check_form(self.request.headers.get("Content-Type", ""))

    def max_bytes(self) -> int:
        """Return how large a form may be."""
        return _MAX_BYTES

    def _resource_in_path(self) -> str:
        """Name nothing in the log: blanks of pages have ids of many kinds."""
        return ""

    async def get(self, *_blanks: str) -> None:
        """Show the page."""
        await self._answer(b"")

    async def post(self, *_blanks: str) -> None:
        """Do what a form of a page asks for."""
        await self._answer(self.take_body())

    async def _answer(self, body: bytes) -> None:
        self._session = session = await self.session()
        try:
            form = _fields(body)
            result: Result
            result = self._lead_elsewhere(session) or await self._result(session, form)
        except PageRefused as refusal:
            result = _refusal(refusal.status, [str(refusal)], self.request_id)
        await self._write(result)

    def _lead_elsewhere(self, session: Session | None) -> Redirect | None:
        """Return where to sign in, if the page needs that. Raises PageRefused."""
        audience = self.page.audience
        if audience == "anyone":
            return None
        if session is None:
            here = self.request.path if self.request.method == "GET" else f"{BASE}/"
            query = f"?{self.request.query}" if self.request.query else ""
            return Redirect(path=f"{BASE}/sign-in?next={quote(here + query, safe='')}")
        if audience != "signed-in" and session.person.is_operator != (audience == "operator"):
            whom = "operators" if audience == "operator" else "the people of a client"
            raise PageRefused(f"This page is for {whom}: you are signed in as another.")
        return None

    def _check_origin(self, session: Session | None, form: Mapping[str, list[str]]) -> None:
        """Refuse a form that another site sends. Raises PageRefused."""
        if self.request.method != "POST":
            return
        origin = self.request.headers.get("Origin", "")
        if origin != self.console.origin:
            raise PageRefused(
                f"The form was not sent by a page at {self.console.origin}, where the console is "
                "by the settings: open it there."
            )
        if session is None or self.page.audience == "anyone":
            return
        proof = next(iter(form.get("proof", ())), "")
        if not hmac.compare_digest(proof.encode(), session.proof.encode()):
            raise PageRefused("The form is of another session: load its page again.")

    async def _result(self, session: Session | None, form: Mapping[str, list[str]]) -> Result:
        self._check_origin(session, form)
        self._visit = visit = Visit(
            console=self.console,
            session=session,
            blanks=[unquote(one) for one in self._path_parameters],
            query=dict(self.request.parameters),
            form=form,
            client=self.console.client(self),
            address=self.address,
            request_id=self.request_id,
            cookie=self.cookie,
        )
        try:
            return await self.page.run(visit)
        except ServiceRefused as refusal:
            problems, status = refusal.answer.problems, refusal.answer.status
            return _refusal(HTTPStatus(status), problems, self.request_id)
        except AnswerTooLarge:
            said = "What was asked for is too large for a page: ask for it by the interface."
            return _refusal(HTTPStatus.BAD_GATEWAY, [said], self.request_id)

    async def _write(self, result: Result) -> None:
        if isinstance(result, Redirect):
            self._write_redirect(result)
            return
        if self._session is not None and _LIVE not in self.request.headers:
            renewed = await self.console.sessions.renew(self._session)
            if renewed:
                self._set_cookie(renewed)
        work = partial(render, result.template, self._shown(result))
        page = work() if self._visit is None else await self._visit.compute(work)
        self._write_page(result.status, page)

    def _write_redirect(self, result: Redirect) -> None:
        if result.cookie or result.ends:
            self._set_cookie(result.cookie)
        self.headers["Location"] = result.path
        self.respond_empty(status=HTTPStatus.SEE_OTHER)

    def _write_page(self, status: int, page: bytes) -> None:
        self.status = status
        self.headers["Content-Type"] = "text/html; charset=utf-8"
        self.finish(page)

    def _shown(self, result: Html) -> dict[str, Any]:
        return {
            "title": result.title,
            "section": result.section,
            "session": self._session,
            "navigation": navigation(self.console, self._session),
            "asset": assets.url_of,
            "path": self.request.path,
            "environment": self.console.config.auth.environment,
            "documentation": self.console.config.console.documentation_url,
            **result.values,
        }

    def _set_cookie(self, value: str) -> None:
        parts = [f"{cookie_name(self.console)}={value}", "Path=/", "HttpOnly", "SameSite=Lax"]
        if self.console.is_secure:
            parts.append("Secure")
        if not value:
            parts.append("Max-Age=0")
        self.headers["Set-Cookie"] = "; ".join(parts)

    def write_refusal(self, problem: Exception) -> None:
        """Show what is wrong as a page; without navigation, of which it may come."""
        answer = response_for(problem)
        self.headers.update(headers_for(problem))
        self.note_issues(answer.issues)
        self._session = None
        said = [issue.diagnostics for issue in answer.issues]
        refusal = _refusal(HTTPStatus(answer.status), said, self.request_id)
        self._write_page(answer.status, render(refusal.template, self._shown(refusal)))


class DocumentHandler(_SessionReader, BinaryHandler):
    """Send a document of a resource to the frame of a page."""

    requires_token = True

    async def prepare(self) -> None:
        """Let the session of the browser take the place of a token."""
        session = await self.session()
        code = self.request.headers.get("Sec-Fetch-Dest", "") in _CODE
        if session is None or session.caller is None or code:
            raise NotPermitted
        self.authenticated = session.caller
        later = super().prepare()
        if later is not None:
            await later

    def set_private_caching(self) -> None:
        """Keep documents out of caches as pages are: others may use the computer later."""

    def finish_with(self, body: ResponseBody) -> None:
        """Send the document under a policy by which pages of the console frame it."""
        self.headers["Content-Security-Policy"] = _POLICY_OF_DOCUMENTS
        super().finish_with(body)


class AssetHandler(BaseHandler):
    """Send a file that pages use."""

    requires_token = False

    def check_format(self) -> None:
        """Send it whatever is accepted."""

    def get(self, name: str) -> None:
        """Send the file."""
        asset = assets.ASSETS.get(name)
        if asset is None:
            raise NoSuchAddress("there is no such file")
        self.headers["Content-Type"] = asset.media_type
        self.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        self.finish(asset.content)


def cookie_name(console: Console) -> str:
    """Return the name of the cookie of sessions (RFC 6265bis, 4.1.3.2)."""
    return "__Host-fhirpub" if console.is_secure else "fhirpub_session"


def _cookie(headers: list[str], name: str) -> str:
    for pair in ";".join(headers).split(";"):
        found, _, value = pair.strip().partition("=")
        if found == name:
            return value
    return ""


def _fields(body: bytes) -> dict[str, list[str]]:
    """Return the fields of a form. Raises PageRefused for what no page of ours sends."""
    try:
        return parse_qs(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        raise PageRefused(
            "What was sent is no form of the console.", status=HTTPStatus.BAD_REQUEST
        ) from None


def _refusal(status: HTTPStatus, problems: list[str], request_id: str) -> Html:
    return Html(
        template="refusal.html",
        title=status.phrase.capitalize(),
        status=status,
        values={"problems": problems, "request_id": request_id},
    )
