"""Visits of a page in a context of its own, which notice all that goes wrong on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Download,
    Page,
    Request,
    Response,
    WebError,
)

from fhirpub.config.loader import variable

HEIGHTS = {360: 740, 1440: 900}
_DOWNLOAD_BEGINS_MS = 250
# What a page makes of what it has, and parts of the browser such as a viewer of PDF.
_LOCAL_SCHEMES = ("data", "blob", "about", "chrome", "chrome-extension")
_EXCESS = "document.scrollingElement.scrollWidth - window.innerWidth"


@dataclass(frozen=True, slots=True)
class View:
    """How a page is looked at."""

    width: int = 1440
    theme: Literal["light", "dark"] = "light"
    javascript: bool = True

    def __str__(self) -> str:
        return f"{self.width}-{self.theme}" + ("" if self.javascript else "-noscript")


VIEWS = tuple(
    View(width, theme, javascript)
    for width in HEIGHTS
    for theme in ("light", "dark")
    for javascript in (True, False)
)


class Visit:
    """A page of a service, and what went wrong on it and on those that it opened.

    Attributes:
        view: How it is looked at.
        context: The context, which has cookies and a cache of its own.
        page: The page.
        problems: What has gone wrong and was not expected: errors in the console, among them
            violations of the Content-Security-Policy, exceptions that no script has caught, failed
            requests, and requests to other origins.
    """

    def __init__(self, browser: Browser, origin: str, view: View) -> None:
        self.view = view
        self.problems: list[str] = []
        self._origin = origin
        self._downloads: list[str] = []
        self._failed: list[Request] = []
        self.context: BrowserContext = browser.new_context(
            base_url=origin,
            viewport={"width": view.width, "height": HEIGHTS[view.width]},
            color_scheme=view.theme,
            java_script_enabled=view.javascript,
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
        )
        self.context.on("console", self._notice_message)
        self.context.on("weberror", self._notice_exception)
        self.context.on("request", self._notice_request)
        self.context.on("requestfailed", self._notice_failure)
        self.context.on("page", self._watch_downloads)
        self.page: Page = self.context.new_page()

    def use(self, cookie: str) -> None:
        """Keep a cookie, which is written as browsers send it."""
        name, _, value = cookie.partition("=")
        self.context.add_cookies([{"name": name, "value": value, "url": self._origin}])

    def open(self, path: str) -> Response:
        """Open a path of the service in the page, and return the response."""
        response = self.page.goto(path)
        assert response is not None
        return response

    def expect(self, pattern: str) -> None:
        """Forgive the problems in which the pattern is found; fail if there is none."""
        self._settle()
        found = [each for each in self.problems if re.search(pattern, each)]
        assert found, f"no problem is like {pattern!r}: {self.problems}"
        self.problems = [each for each in self.problems if each not in found]

    def check(self) -> None:
        """Fail if anything has gone wrong, or if a page scrolls sideways."""
        self._settle()
        assert not self.problems, "\n".join([f"{self.page.url} ({self.view}):", *self.problems])
        for page in self.context.pages:
            excess = page.evaluate(_EXCESS)
            assert excess <= 0, f"{page.url} ({self.view}) scrolls sideways by {excess} pixels"

    def capture(self, name: str) -> Path:
        """Do as ``check``, and write build/screenshots/NAME-WIDTH-THEME.png of the whole page."""
        target = screenshots() / f"{name}-{self.view}.png"
        self.page.screenshot(path=target, full_page=True)
        self.check()
        return target

    def add_authenticator(self) -> str:
        """Give the page a virtual authenticator that verifies its user, and return its id."""
        session = self.context.new_cdp_session(self.page)
        session.send("WebAuthn.enable")
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
        }
        added = session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        return str(added["authenticatorId"])

    def _settle(self) -> None:
        """Have all events that the browser has sent so far."""
        for page in self.context.pages:
            page.evaluate("0")
        if any(request.url not in self._downloads for request in self._failed):
            # What is saved instead of shown is given up as a request just before.
            self.page.wait_for_timeout(_DOWNLOAD_BEGINS_MS)
        self.problems += [
            f"request failed: {request.url} {request.failure}"
            for request in self._failed
            if request.url not in self._downloads
        ]
        self._failed.clear()

    def _notice_message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.problems.append(f"console: {message.text} ({message.location['url']})")

    def _notice_exception(self, error: WebError) -> None:
        self.problems.append(f"exception: {error.error}")

    def _notice_request(self, request: Request) -> None:
        scheme, place, *_ = urlsplit(request.url)
        if scheme not in _LOCAL_SCHEMES and f"{scheme}://{place}" != self._origin:
            self.problems.append(f"request to another origin: {request.url}")

    def _notice_failure(self, request: Request) -> None:
        self._failed.append(request)

    def _watch_downloads(self, page: Page) -> None:
        page.on("download", self._notice_download)

    def _notice_download(self, download: Download) -> None:
        self._downloads.append(download.url)


Visiting = Callable[..., Visit]


@contextmanager
def visiting(browser: Browser) -> Iterator[Visiting]:
    """Yield a function that begins a visit; all are checked and ended at the end."""
    visits: list[Visit] = []

    def visit(origin: str, view: View = View()) -> Visit:
        visits.append(Visit(browser, origin, view))
        return visits[-1]

    try:
        yield visit
        for each in visits:
            each.check()
    finally:
        for each in visits:
            each.context.close()


def screenshots() -> Path:
    """Return the folder of screenshots in the repository, which Git ignores."""
    root = Path(variable("FHIRPUB_TEST_REPOSITORY") or Path(__file__).parents[2])
    folder = root / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
