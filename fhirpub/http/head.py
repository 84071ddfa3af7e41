"""The head of an HTTP/1.1 request: its request line and its fields (RFC 9112, 3 and 5)."""

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
MAX_FIELDS = 100


class HeadTooLong(HTTPInputError):
    """A head is longer than it may be: its first line, or the number of its fields, or all."""

    def __init__(self, *, in_line: bool = False, in_fields: bool = False) -> None:
        super().__init__("the head is too long")
        self.in_line = in_line
        self.in_fields = in_fields


class HeadTooSlow(HTTPInputError):
    """The rest of a head did not arrive in time."""

    def __init__(self) -> None:
        super().__init__("the head was not complete in time")


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a head, and their meaning for the message and the connection."""

    headers: HTTPHeaders
    problem: str
    """What is wrong with them (RFC 9112), or nothing."""
    length: int
    is_chunked: bool
    has_body: bool
    expects_100: bool
    """Whether the client waits for a word before it sends the body (RFC 9110, 10.1.1)."""
    keeps_open: bool
    """Whether the client leaves the connection open (RFC 9112, 9.3)."""


def read_head(data: bytes) -> tuple[RequestStartLine, Fields]:
    """Read a head, with the empty line that ends it.

    One that cannot be read has the line of a plain GET, and fields with a problem. Raises
    HeadTooLong for more than ``MAX_FIELDS`` fields: each takes time, however short.
    """
    # One empty line may stand before a request (RFC 9112, 2.2), and no other end of a line.
    start, _, fields = data.removeprefix(b"\r\n").partition(b"\r\n")
    if fields.count(b"\n") > MAX_FIELDS + 1:  # the last line is empty
        raise HeadTooLong(in_fields=True)
    if not start.isascii():  # RFC 9112, 3.2: other bytes are percent-encoded
        return UNREAD
    try:
        line = parse_request_start_line(start.decode("ascii"))
        return line, _fields(fields, line.version)
    except HTTPInputError:
        return UNREAD


def _fields(data: bytes, version: str) -> Fields:
    """Read fields, or remember them: a client sends much the same again and again.

    Many are not remembered: they take thirty times the bytes that were sent.
    """
    if len(data) > _REMEMBERED_BYTES:
        return _read_fields(data, version)
    return _remembered(data, version)


def _read_fields(data: bytes, version: str) -> Fields:
    if not data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r"):
        raise HTTPInputError  # others may see another end of a line (RFC 9112, 2.2)
    headers = HTTPHeaders.parse(data.decode("latin-1"))
    problem = _framing_problem(headers, version) or _host_problem(headers, version)
    length = 0 if problem else int(headers.get("Content-Length", "0"))
    is_chunked = "Transfer-Encoding" in headers
    wishes = {part.strip() for part in headers.get("Connection", "").lower().split(",")}
    expects_100 = headers.get("Expect", "").lower() == "100-continue"
    return Fields(
        headers=headers,
        problem=problem,
        length=length,
        is_chunked=is_chunked,
        has_body=bool(length or is_chunked),
        expects_100=expects_100 and version != "HTTP/1.0",
        keeps_open="close" not in wishes and (version == "HTTP/1.1" or "keep-alive" in wishes),
    )


_remembered = lru_cache(maxsize=256)(_read_fields)


def _framing_problem(headers: HTTPHeaders, version: str) -> str:
    """Return what leaves the length of the body unclear (RFC 9112 section 6), or nothing."""
    length = headers.get("Content-Length")
    if "Transfer-Encoding" in headers:
        if length is not None:
            return "Content-Length and Transfer-Encoding must not be sent together"
        if headers["Transfer-Encoding"].lower() != "chunked":
            return "Transfer-Encoding must be chunked"
        # A proxy that forwarded such a request of HTTP/1.0 may delimit it differently.
        return "Transfer-Encoding needs HTTP/1.1" if version == "HTTP/1.0" else ""
    if length is not None and not _LENGTH.fullmatch(length):
        return "Content-Length must be one whole number"  # once, even if both are equal
    return ""


def _host_problem(headers: HTTPHeaders, version: str) -> str:
    """Return nothing if one host is named, or none on purpose (RFC 9112 section 3.2)."""
    if "Host" not in headers and version == "HTTP/1.0":
        return ""
    return "" if _HOST.fullmatch(headers.get("Host", ",")) else "one Host is needed"


UNREAD = (
    RequestStartLine("GET", "/", "HTTP/1.1"),
    Fields(
        headers=HTTPHeaders(),
        problem="this is not HTTP/1.1",
        length=0,
        is_chunked=False,
        has_body=False,
        expects_100=False,
        keeps_open=False,
    ),
)
"""Stands for a head that could not be read, or was not for its length."""
