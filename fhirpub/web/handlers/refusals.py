"""Handlers of requests that no route takes: an unknown path, another method, broken HTTP, /."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Awaitable
from functools import lru_cache
from html import escape
from http import HTTPStatus
from importlib import resources

from fhirpub.config.console import console_base_url
from fhirpub.errors import FhirpubError
from fhirpub.web.addresses import Addresses
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.token import write_oauth

_ESCAPE = re.compile("%(2[4DE]|3[0-9A]|[46][1-9A-F]|5[0-9AF]|7[0-9AE])", re.IGNORECASE)
"""Escapes of characters that need none (RFC 3986, 2.3), and of dollar sign and colon (D-15)."""


_HTML = "text/html"
_MARK = "<!-- documentation -->"
_LINK = '<dt><a href="{}">Documentation</a></dt><dd>how to work with this service</dd>'


class NotFoundHandler(BaseHandler):
    """Answer a path that does not exist."""

    requires_token = False
    addresses: Addresses

    def ready(self) -> Awaitable[None] | None:
        """Refuse, whatever the method and the format, and name the address that was meant."""
        raise self.addresses.refuse(self.request.method, normalize(self.request.path))


class RootHandler(NotFoundHandler):
    """Show a person what this is, or lead to the console where that is served."""

    def ready(self) -> Awaitable[None] | None:
        """Refuse all but a browser, which names HTML among what it accepts."""
        accepted = ",".join(self.request.headers.get_list("Accept")).lower()
        if self.request.method not in ("GET", "HEAD") or _HTML not in accepted:
            return super().ready()
        return None

    def get(self) -> None:
        """Return the page."""
        self.headers["Cache-Control"] = "no-store"
        self.headers["Vary"] = "Accept"
        console = self.services.config.console
        if console.enabled:
            url = console_base_url(console, self.services.config.base_url)
            self.headers["Location"] = f"{url}/console/"
            self.respond_empty(status=303)
            return
        page, style = _page(console.documentation_url)
        self.headers["Content-Type"] = "text/html; charset=utf-8"
        self.headers["Content-Security-Policy"] = (
            f"default-src 'none'; style-src 'sha256-{style}'; frame-ancestors 'none'"
        )
        self.finish(page)


class MethodNotAllowedHandler(NotFoundHandler):
    """Refuse a method that a path does not support, and list those it does (D-16, D-148)."""

    allow = ""
    forms = ""

    def ready(self) -> Awaitable[None] | None:
        """Refuse any method but the one that asks for the methods."""
        if self.request.method != "OPTIONS":
            path, methods = normalize(self.request.path), self.allow.split(", ")
            raise self.addresses.refuse_method(self.request.method, path, methods)
        return None

    def dispatch(self) -> Awaitable[None] | None:
        """Respond to OPTIONS with the methods."""
        self.headers["Allow"] = self.allow
        if self.forms:
            self.headers["Accept-Patch"] = self.forms
        self.respond_empty()
        return None

    def write_refusal(self, problem: Exception) -> None:
        """Add the methods to the refusal."""
        self.headers["Allow"] = self.allow
        super().write_refusal(problem)


class TokenMethodNotAllowedHandler(MethodNotAllowedHandler):
    """Answer a method that the token endpoint does not have (D-142)."""

    def write_refusal(self, problem: Exception) -> None:  # noqa: ARG002 - there is but one
        """Add the methods to a refusal in OAuth's format."""
        self.headers["Allow"] = self.allow
        self.headers |= {"Cache-Control": "no-store", "Pragma": "no-cache"}
        self.status = HTTPStatus.METHOD_NOT_ALLOWED
        write_oauth(self, {"error": "invalid_request", "error_description": "use POST here"})


class RefusingHandler(NotFoundHandler):
    """Answer at once what is no request, with what is wrong; the connection ends with it."""

    refusal: FhirpubError

    def begin(self) -> Awaitable[None] | None:
        """Refuse, and read no body."""
        self.fail(self.refusal)
        return None


def normalize(path: str) -> str:
    """Return a path in its normal form (RFC 3986, 6.2.2.2)."""
    if "%" not in path:
        return path
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), path)


@lru_cache(maxsize=1)
def _page(documentation: str) -> tuple[bytes, str]:
    """Return the page, and the digest by which its policy permits its one style."""
    text = resources.files("fhirpub.web").joinpath("root.html").read_text(encoding="utf-8")
    style = text.partition("<style>")[2].partition("</style>")[0]
    link = _LINK.format(escape(documentation)) if documentation else ""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return text.replace(_MARK, link).encode(), digest
