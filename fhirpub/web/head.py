"""The head of a request in HTTP/1.1: its line, and what its fields say of the connection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from tornado.httputil import (
    HTTPHeaders,
    HTTPInputError,
    RequestStartLine,
    parse_request_start_line,
)

_LENGTH = re.compile(r"[0-9]{1,18}")
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+;=%:\[\]-]*")
_REMEMBERED_BYTES = 2_048


class HeadTooLong(HTTPInputError):
    """A head is longer than it may be; ``in_line`` if the first line is."""

    def __init__(self, *, in_line: bool) -> None:
        super().__init__("the head is too long")
        self.in_line = in_line


@dataclass(frozen=True, slots=True)
class Fields:
    """What the fields of a head say."""

    headers: HTTPHeaders
    problem: str
    """What leaves unclear where the body ends or who is asked, or nothing."""
    length: int
    is_chunked: bool
    wishes: frozenset[str]
    """The options of Connection (RFC 9110, 7.6.1)."""
    expects_100: bool


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a request."""

    line: RequestStartLine
    fields: Fields

    @property
    def problem(self) -> str:
        """What is wrong with it (RFC 9112), or nothing."""
        if self.fields.problem:
            return self.fields.problem
        if self.line.version == "HTTP/1.0":
            # Who handed it on may not know of chunks, and end it elsewhere (RFC 9112, 6.1).
            return "Transfer-Encoding needs HTTP/1.1" if self.fields.is_chunked else ""
        return "" if "Host" in self.fields.headers else "a Host is needed"

    @property
    def has_body(self) -> bool:
        """Whether something follows, or should."""
        return bool(self.fields.length or self.fields.is_chunked)

    @property
    def keeps_open(self) -> bool:
        """Whether the client leaves the connection open (RFC 9112, 9.3)."""
        if "close" in self.fields.wishes:
            return False
        return self.line.version == "HTTP/1.1" or "keep-alive" in self.fields.wishes

    @property
    def expects_100(self) -> bool:
        """Whether the client waits for a word before it sends the body (RFC 9110, 10.1.1)."""
        return self.fields.expects_100 and self.line.version != "HTTP/1.0"


def read_head(data: bytes) -> Head:
    """Read a head, with the empty line that ends it."""
    data = data.lstrip(b"\r\n")
    start, _, fields = data.partition(b"\r\n")
    if not data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r"):
        return UNREAD  # others may see another end of a line (RFC 9112, 2.2)
    try:
        return Head(parse_request_start_line(start.decode("latin-1")), _fields(fields))
    except HTTPInputError:
        return UNREAD


def _fields(data: bytes) -> Fields:
    """Read fields, or remember them: a client sends much the same again and again.

    Many are not remembered: they take thirty times the bytes that were sent.
    """
    return _remembered(data) if len(data) <= _REMEMBERED_BYTES else _parsed(data)


def _parsed(data: bytes) -> Fields:
    headers = HTTPHeaders.parse(data.decode("latin-1"))
    problem = _framing_problem(headers) or _host_problem(headers)
    return Fields(
        headers=headers,
        problem=problem,
        length=0 if problem else int(headers.get("Content-Length", "0")),
        is_chunked="Transfer-Encoding" in headers,
        wishes=frozenset(map(str.strip, headers.get("Connection", "").lower().split(","))),
        expects_100=headers.get("Expect", "").lower() == "100-continue",
    )


_remembered = lru_cache(maxsize=256)(_parsed)


def _framing_problem(headers: HTTPHeaders) -> str:
    """Return what leaves the length of the body unclear (RFC 9112 section 6), or nothing."""
    length = headers.get("Content-Length")
    if "Transfer-Encoding" in headers:
        if length is not None:
            return "Content-Length and Transfer-Encoding must not be sent together"
        if headers["Transfer-Encoding"].lower() != "chunked":
            return "Transfer-Encoding must be chunked"
    elif length is not None and not _LENGTH.fullmatch(length):
        return "Content-Length must be one whole number"  # once, even if both say the same
    return ""


def _host_problem(headers: HTTPHeaders) -> str:
    """Return nothing if one host is named, or none on purpose (RFC 9112 section 3.2)."""
    return "" if _HOST.fullmatch(headers.get("Host", "")) else "one Host is needed"


UNREAD = Head(
    RequestStartLine("GET", "/", "HTTP/1.1"),
    Fields(
        headers=HTTPHeaders(),
        problem="this is not HTTP/1.1",
        length=0,
        is_chunked=False,
        wishes=frozenset(),
        expects_100=False,
    ),
)
"""Stands for what could not be read, or was not for its length: the line of a plain GET."""
