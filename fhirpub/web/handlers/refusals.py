"""Handlers of requests that no route takes: an unknown path, another method, broken HTTP."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from http import HTTPStatus

from fhirpub.errors import FhirpubError
from fhirpub.web.addresses import Addresses
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.token import write_oauth

_ESCAPE = re.compile("%(2[4DE]|3[0-9A]|[46][1-9A-F]|5[0-9AF]|7[0-9AE])", re.IGNORECASE)
"""Escapes of characters that need none (RFC 3986, 2.3), and of dollar sign and colon (D-15)."""


class NotFoundHandler(BaseHandler):
    """Answer a path that does not exist."""

    requires_token = False
    addresses: Addresses

    def ready(self) -> Awaitable[None] | None:
        """Refuse, whatever the method and the format, and name the address that was meant."""
        raise self.addresses.refuse(self.request.method, normalize(self.request.path))


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
