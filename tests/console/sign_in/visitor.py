"""A browser of a person: it keeps cookies, follows nothing, and reads the forms of pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

from fhirpub.testing.service import Answer, RunningService
from tests.console.sign_in.passkey import Passkey

FORM = "application/x-www-form-urlencoded"
_addresses = (f"198.51.{high}.{low}" for high in range(100, 256) for low in range(1, 255))


@dataclass
class Form:
    """A form of a page."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    options: str = ""


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(Form(given["action"], options=given.get("data-options", "")))
        elif tag == "input" and self.found:
            self.found[-1].fields[given["name"]] = given.get("value", "")


@dataclass
class Visitor:
    """A browser, which calls from an address of its own.

    Attributes:
        service: The service whose console it visits.
        cookies: What it has kept.
        set_cookie: The last header by which the console set a cookie.
    """

    service: RunningService
    cookies: dict[str, str] = field(default_factory=dict)
    set_cookie: str = ""
    address: str = field(default_factory=lambda: next(_addresses))

    @property
    def origin(self) -> str:
        return self.service.config.console.base_url

    def get(self, path: str, **headers: str) -> Answer:
        """Open a page."""
        return self._send("GET", path, None, headers)

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        """Send a form."""
        sent = {"Content-Type": FORM, "Origin": self.origin, **headers}
        body = urlencode(fields).encode()
        return self._send("POST", path, body, sent)

    def form(self, path: str, action: str) -> Form:
        """Open a page and return its form with an action."""
        page = self.get(path)
        assert page.status == 200, page.body.decode()
        return form_in(page, action)

    def accept(self, url: str, passkey: Passkey) -> Answer:
        """Make a passkey on the page of an invitation."""
        form = self.form(path_of(url), "/console/invitation")
        return self.post(form.action, {**form.fields, "credential": passkey.create(form.options)})

    def sign_in(self, passkey: Passkey, **changes: bytes) -> Answer:
        """Sign in with a passkey."""
        form = self.form("/console/sign-in", "/console/sign-in/passkey")
        credential = passkey.sign_in(form.options, **changes)
        return self.post(form.action, {**form.fields, "credential": credential})

    def sign_out(self) -> Answer:
        """Sign out on the start page."""
        form = self.form("/console/", "/console/sign-out")
        return self.post(form.action, form.fields)

    def is_signed_in(self) -> bool:
        """Return whether pages are shown: else they lead to the sign-in."""
        answer = self.get("/console/")
        if answer.status == 303:
            assert answer.headers["location"].startswith("/console/sign-in?next=")
        return answer.status == 200

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"X-Forwarded-For": self.address, "Cookie": cookie, **headers}
        port = self.service.config.console.port or self.service.port
        if path.startswith("/oauth/"):
            port = self.service.port
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            read = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, read, response.read())
        finally:
            connection.close()
        self.set_cookie = answer.headers.get("set-cookie", "")
        if self.set_cookie:
            name, _, value = self.set_cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
            if not value:
                del self.cookies[name]
        return answer


def form_in(page: Answer, action: str) -> Form:
    """Return the form of a page with an action."""
    forms = _Forms()
    forms.feed(page.body.decode())
    return next(form for form in forms.found if form.action == action)


def path_of(url: str) -> str:
    """Return the path of a link, with the query."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"
