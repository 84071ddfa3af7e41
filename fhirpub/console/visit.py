"""What a page works with: the session, the request, and how it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import quote, urlencode

from fhirpub.auth.caller import Caller
from fhirpub.console.internal import Answer, ServiceClient
from fhirpub.console.sessions import Session

if TYPE_CHECKING:
    from fhirpub.console.console import Console

BASE = "/console"
T = TypeVar("T")
_LARGE = 16 * 1024
"""Of more bytes that the service answered, a page is made in a thread: it takes milliseconds."""
_NOT_YOURS = "this page is for the people of a client"
Audience = Literal["anyone", "integrator", "operator", "signed-in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Html:
    """A page: a template, and what it shows.

    Attributes:
        template: The file of the template.
        title: The title of the page.
        values: What the template shows.
        status: The HTTP status.
        section: The entry of the navigation to which the page belongs.
    """

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    section: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """An answer that leads to another page.

    Attributes:
        path: The path of the page.
        cookie: The cookie of a session that begins; empty: it stays as it is.
        ends: Whether the session ends.
    """

    path: str
    cookie: str = field(default="", repr=False)
    ends: bool = False


Result = Html | Redirect


class ServiceRefused(Exception):
    """The service refused a request that a page made."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("the service refused a request of a page")
        self.answer = answer


class PageRefused(Exception):
    """A page is refused, for a reason that may be shown."""

    def __init__(self, reason: str, *, status: HTTPStatus = HTTPStatus.FORBIDDEN) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(slots=True, kw_only=True)
class Visit:
    """One request of a browser.

    Attributes:
        console: The console.
        session: The session; None on pages that need none.
        blanks: What fills the blanks of the path, decoded.
        query: The parameters of the query, the last of each name.
        form: The fields of the form that was sent, all of each name.
        client: What asks the service.
        address: The address of the browser.
        request_id: The id by which the log knows the request.
        cookie: The cookie as it was sent, also if it is that of no session.
    """

    console: Console
    session: Session | None
    blanks: Sequence[str]
    query: Mapping[str, str]
    form: Mapping[str, Sequence[str]] = field(repr=False)
    client: ServiceClient
    address: str
    request_id: str
    cookie: str = field(default="", repr=False)

    @property
    def signed_in(self) -> Session:
        """The session of a page that needs one."""
        if self.session is None:
            raise PageRefused(_NOT_YOURS)
        return self.session

    @property
    def caller(self) -> Caller:
        """The client for which the person acts. Raises PageRefused for an operator."""
        caller = self.signed_in.caller
        if caller is None:
            raise PageRefused(_NOT_YOURS)
        return caller

    async def compute(self, work: Callable[[], T]) -> T:
        """Return what a pure function makes of what the service answered, beside others."""
        if self.client.received <= _LARGE:
            return work()
        return await self.console.services.threads.run(self.caller.tenant.id, work)

    def field(self, name: str) -> str:
        """Return a field of the form, without blanks around it; empty if it is not there."""
        return next(iter(self.form.get(name, ())), "").strip()

    async def get(self, path: str, query: Sequence[tuple[str, str]] = ()) -> Any:
        """Return what the service has at a path. Raises ServiceRefused."""
        answer = await self.client.get(self.caller, path, query)
        if answer.is_refusal:
            raise ServiceRefused(answer)
        return answer.json

    async def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return what the service answers to a change. Raises ServiceRefused."""
        answer = await self.client.ask(self.caller, method, path, body)
        if answer.is_refusal:
            raise ServiceRefused(answer)
        return answer.json


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page, or what a form of one does.

    Attributes:
        method: The HTTP method.
        path: The path below the base of the console, with ``{}`` for blanks.
        run: Returns the answer.
        audience: Who may have it.
    """

    method: Literal["GET", "POST"]
    path: str
    run: Callable[[Visit], Awaitable[Result]]
    audience: Audience


def address(*segments: str, **query: str) -> str:
    """Return the path of a page, with its segments and its query encoded."""
    path = "/".join([BASE, *(quote(one, safe="") for one in segments)])
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def moment_in_utc(text: str) -> str:
    """Return what a field for a date and a time has as a moment: without a zone, in UTC."""
    day, mark, time = text.partition("T")
    if not text or text.endswith("Z") or "+" in time or "-" in time:
        return text
    if not mark:
        return f"{day}T00:00:00Z"
    return f"{text}Z" if time.count(":") > 1 else f"{text}:00Z"
