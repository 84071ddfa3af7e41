"""Finds the entries of a Bundle and their resources in its bytes, without reading them as JSON.

The resource of an entry is then read by the same strict parser as the body of a single request,
and on its own: a mistake in it, or a duplicate name, is that entry's alone (ADR 27).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from fhirpub.errors import InvalidContent, TooLarge
from fhirpub.fhir.strict_json import MAX_DEPTH, loads
from fhirpub.problems import ContentProblem
from fhirpub.runtime.stages import Stages

_FLAT = rb'[^"{}\[\]]*+(?:"[^"]*+"[^"{}\[\]]*+)*+'
_LEVELS = MAX_DEPTH + 4
"""One that is nested a little too deep is still found, so that it is refused alone."""
_BLANK = rb"[ \t\r\n]*+"
_EXPLAINED_BYTES = 1_048_576
"""A longer body is not parsed as a whole only to explain what is wrong with it."""


def _nested(levels: int) -> bytes:
    pattern = _FLAT
    for _ in range(levels):
        pattern = _FLAT + rb"(?:[{\[]" + pattern + rb"[}\]]" + _FLAT + rb")*+"
    return pattern


# Every repetition is possessive: the time is proportional to the length, also of what is no JSON.
_VALUE = re.compile(rb"[{\[]" + _nested(_LEVELS) + rb'[}\]]|"[^"]*+"|[^\s,:"{}\[\]]++')
_NAME = re.compile(_BLANK + rb'"([^"]*+)"' + _BLANK + rb":" + _BLANK)
_OPENING = re.compile(_BLANK + rb"([{\[])" + _BLANK)
_AFTER_VALUE = re.compile(_BLANK + rb"([,}\]])" + _BLANK)
_CLOSING = re.compile(rb"[}\]]" + _BLANK)

Span = tuple[int, int]
"""Where something begins and ends in the body."""


_Matcher = Callable[[bytes, int], re.Match[bytes] | None]
"""The match of a pattern, which alone takes proportional time: a search may not."""


class PieceTooLarge(Exception):
    """A piece is larger than the window: it is to be searched where that holds up no one."""


@dataclass(slots=True)
class Split:
    """Where the entries of a Bundle are, and the resource of each if it is an object."""

    entries: list[tuple[Span, Span | None]] = field(default_factory=list)
    array: Span | None = None
    """Where the array of the entries is."""


class _NoJson(Exception):
    """At ``place`` there is not what JSON has there."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


class _Scanner:
    """Matches patterns in a body, of which it sees a window without escapes in its strings."""

    def __init__(self, body: bytes, window: int) -> None:
        self._body = body
        self._size = window or len(body)
        self._start = 0
        self._text = b""
        self.place = 0
        self._move()

    def take(self, pattern: _Matcher) -> re.Match[bytes] | None:
        """Match a pattern at the current place and go behind it, if it matches."""
        match = self._match(pattern)
        if match is not None:
            self.place = self._start + match.end()
        return match

    def demand(self, pattern: _Matcher) -> re.Match[bytes]:
        """Match a pattern at the current place; raises _NoJson if it does not match."""
        match = self.take(pattern)
        if match is None:
            raise _NoJson(self.place)
        return match

    def value(self) -> Span:
        """Go behind a value and return where it is."""
        start = self.place
        self.demand(_VALUE.match)
        return start, self.place

    def takes_comma(self) -> bool:
        """Go behind a comma and return True, if the next byte is one.

        Where it is another one, no larger window could have a match.
        """
        return self.is_at(b",") and self.take(_COMMA.match) is not None

    def is_at(self, byte: bytes) -> bool:
        """Return whether a byte is the next one."""
        return self._body.startswith(byte, self.place)

    def _match(self, pattern: _Matcher) -> re.Match[bytes] | None:
        match = pattern(self._text, self.place - self._start)
        if not self._is_cut(match):
            return match
        if self.place > self._start:
            self._move()
            match = pattern(self._text, 0)
        if self._is_cut(match):
            raise PieceTooLarge
        return match

    def _is_cut(self, match: re.Match[bytes] | None) -> bool:
        """Return whether more of the body could change a match."""
        end = self._start + len(self._text)
        return end < len(self._body) and (match is None or self._start + match.end() == end)

    def _move(self) -> None:
        """Let the window begin here. No place outside of a string is behind a backslash."""
        self._start = self.place
        text = self._body[self.place : self.place + self._size]
        if b"\\" in text:
            text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        self._text = text


def split(_context: object, body: bytes, *, most: int, window: int = 0) -> Stages[Split]:
    """Find the entries of a Bundle, and pause after each; pure.

    Raises InvalidContent for what cannot be JSON outside of the resources, TooLarge for more
    than ``most`` entries, and PieceTooLarge if a value has more bytes than ``window``, if that
    is given: so long at most is searched without a pause.
    """
    scanner = _Scanner(body, window)
    found = Split()
    try:
        yield from _bundle(scanner, found, most)
    except _NoJson as problem:
        raise _refusal(body, problem.place) from None
    return found


def _bundle(scanner: _Scanner, found: Split, most: int) -> Stages[None]:
    scanner.demand(_OPENING.match)
    while (name := scanner.take(_NAME.match)) is not None:
        if name[1] == b"entry" and found.array is None and scanner.is_at(b"["):
            start = scanner.place
            yield from _entries(scanner, found, most)
            found.array = (start, scanner.place)
        else:
            scanner.value()
        if scanner.demand(_AFTER_VALUE.match)[1] != b",":
            return
    scanner.demand(_CLOSING.match)


def _entries(scanner: _Scanner, found: Split, most: int) -> Stages[None]:
    """Go behind the array of entries and note each."""
    scanner.demand(_OPENING.match)
    is_more = not scanner.is_at(b"]")
    while is_more:
        if len(found.entries) == most:
            raise _too_many(most)
        start = scanner.place
        resource = _members(scanner) if scanner.is_at(b"{") else None
        if scanner.place == start:
            scanner.value()
        found.entries.append(((start, scanner.place), resource))
        scanner.take(_BLANKS.match)
        is_more = scanner.takes_comma()
        yield
    if not scanner.is_at(b"]"):
        raise _NoJson(scanner.place)
    scanner.place += 1


_BLANKS = re.compile(_BLANK)
_COMMA = re.compile(rb"," + _BLANK)


def _members(scanner: _Scanner) -> Span | None:
    """Go behind an entry and return where its resource is, if that is an object."""
    resource: Span | None = None
    scanner.demand(_OPENING.match)
    while (name := scanner.take(_NAME.match)) is not None:
        is_resource = name[1] == b"resource" and resource is None and scanner.is_at(b"{")
        span = scanner.value()
        resource = span if is_resource else resource
        scanner.take(_BLANKS.match)
        if not scanner.takes_comma():
            break
    if not scanner.is_at(b"}"):
        raise _NoJson(scanner.place)
    scanner.place += 1
    return resource


def _too_many(most: int) -> TooLarge:
    return TooLarge.because(
        f"a batch has at most {most} entries: send the rest in another one",
        expression="Bundle.entry",
        details=ContentProblem.ENTRIES_TOO_MANY,
    )


def _refusal(body: bytes, place: int) -> InvalidContent:
    """Return what is wrong: in the words of the strict parser, or with the nearest place."""
    if len(body) <= _EXPLAINED_BYTES:
        try:
            loads(body)
        except InvalidContent as refusal:
            return refusal
    line, column = body.count(b"\n", 0, place) + 1, place - body.rfind(b"\n", 0, place)
    said = f"the body is not valid JSON behind line {line}, byte {column} of it"
    return InvalidContent.because(said, details=ContentProblem.JSON_MALFORMED)
