"""A received request: its request line, headers and query."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

from tornado.httputil import HTTPHeaders, RequestStartLine

from fhirpub.auth.networks import is_within, parse_address, parse_networks
from fhirpub.errors import InvalidSearch
from fhirpub.problems import OperationProblem
from fhirpub.web.message.certificate import thumbprint_of
from fhirpub.web.message.preconditions import NONE, Preconditions

_MAX_PARAMETERS = 1_000
_ORIGIN = re.compile(r"\Ahttps?://[^/?#]*", re.IGNORECASE)


class Request:
    """A request; its body is passed to the handler as it arrives."""

    def __init__(
        self, start_line: RequestStartLine, headers: HTTPHeaders, connection: Any
    ) -> None:
        """Take the head of a request; ``connection`` is the Exchange in which it is answered."""
        self.method, target, self.version = start_line
        if not target.startswith("/"):  # the absolute form: RFC 9112, 3.2.2
            target = _ORIGIN.sub("", target)
        self.path, _, self.query = target.partition("?")
        self.headers = headers
        self.connection = connection
        self.form: Sequence[tuple[str, str]] = ()
        self._asks_nothing = not self.query
        self._began = time.monotonic()

    @cached_property
    def parameters(self) -> list[tuple[str, str]]:
        """The parameters of the query, in their order.

        Raises InvalidSearch as :func:`parameters_of` does.
        """
        return parameters_of(self.query)

    def parameter(self, name: str) -> str:
        """Return a parameter of the query, the last if it repeats, or nothing."""
        if self._asks_nothing:
            return ""
        return next((value for item, value in reversed(self.parameters) if item == name), "")

    def add_form(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Add the parameters of a form to those of the query (R4, search by POST)."""
        self.parameters = [*self.parameters, *pairs]
        self.form = pairs
        self._asks_nothing = not self.parameters

    def preconditions(self) -> Preconditions:
        """Return the conditions on a version of If-Match and If-Unmodified-Since (D-267).

        If-None-Match is left out: in a read it names the version that the client has.
        """
        headers = self.headers
        if "If-Match" not in headers and "If-Unmodified-Since" not in headers:
            return NONE
        return Preconditions(headers.get_list("If-Match"), headers.get("If-Unmodified-Since", ""))

    def preconditions_of_update(self) -> Preconditions:
        """Return the conditions on the version that an update replaces, of all three headers."""
        if_none_match = self.headers.get_list("If-None-Match")
        return replace(self.preconditions(), if_none_match=if_none_match)

    def has_body(self) -> bool:
        """Return whether a body follows, or should."""
        return "Content-Length" in self.headers or "Transfer-Encoding" in self.headers

    def has_content(self) -> bool:
        """Return whether a body follows that is not empty, according to the headers."""
        return self.has_body() and self.headers.get("Content-Length") != "0"

    def milliseconds(self) -> float:
        """Return the milliseconds since it arrived."""
        return (time.monotonic() - self._began) * 1000

    def client_address(self, trusted: Sequence[str]) -> str:
        """Return the client's address: X-Forwarded-For counts only from trusted proxies."""
        peer: str = self.connection.context.remote_ip
        networks = parse_networks(tuple(trusted))
        if not self._is_from(trusted):
            return peer
        addresses = ",".join(self.headers.get_list("X-Forwarded-For")).split(",")
        for name in reversed([one.strip() for one in addresses if one.strip()]):
            if not is_within(name, networks):
                return peer if parse_address(name) is None else name
        return peer

    def client_certificate(self, header: str, trusted: Sequence[str]) -> str | None:
        """Return the digest of the client's certificate, which only trusted proxies can name.

        It is empty if there is none, and None if the header cannot be read.
        """
        if not header or not self._is_from(trusted):
            return ""
        return thumbprint_of(self.headers.get_list(header))

    def _is_from(self, trusted: Sequence[str]) -> bool:
        peer = self.connection.context.remote_ip
        return bool(trusted) and is_within(peer, parse_networks(tuple(trusted)))


def parameters_of(query: str) -> list[tuple[str, str]]:
    """Return the parameters of a query, or of a header that holds one, as Tornado gives it.

    Raises InvalidSearch for too many, and for what is not UTF-8: a value that was guessed would
    match something else, or nothing.
    """
    try:
        pairs = parse_qsl(
            query,
            keep_blank_values=True,
            encoding="latin-1",  # as Tornado decodes what stands there unescaped
            max_num_fields=_MAX_PARAMETERS,
        )
        return [(_as_utf8(name), _as_utf8(value)) for name, value in pairs]
    except UnicodeDecodeError:
        raise InvalidSearch.because(
            "the query must be UTF-8", details=OperationProblem.PARAMETER_INVALID
        ) from None
    except ValueError:
        rule = f"the query must have at most {_MAX_PARAMETERS} parameters"
        raise InvalidSearch.because(rule, details=OperationProblem.SEARCH_TOO_COSTLY) from None


def _as_utf8(text: str) -> str:
    return text.encode("latin-1").decode()
