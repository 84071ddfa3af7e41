"""A message, split into segments, fields, repetitions, components and parts of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import hl7

from fhirpub_hl7v2.problems import Code, Problem, Unusable
from fhirpub_hl7v2.text import Delimiters, decode

MAX_DELIMITERS = 200_000
"""Each part becomes an object of some hundred bytes."""

NULL = '""'
_HEADER = re.compile(r"MSH([^\w\s])([^\w\s])([^\w\s])([^\w\s])([^\w\s])[^\w\s]?\1")
_NAME = re.compile(r"[A-Z][A-Z0-9]{2}")
_SEPARATORS = re.compile(rb"\r\n?|\n")
_FRAMES = b"\x0b\x1c"
_ENVELOPE = (b"FHS", b"BHS", b"BTS", b"FTS")


@dataclass(frozen=True, slots=True)
class Value:
    """One repetition of a field."""

    components: tuple[tuple[str, ...], ...]
    delimiters: Delimiters

    def text(self, component: int = 1, part: int = 1) -> str:
        """Return a part of a component, both counted from 1; "" if it is not there, or null."""
        if component > len(self.components) or part > len(self.components[component - 1]):
            return ""
        raw = self.components[component - 1][part - 1]
        return "" if raw == NULL else self.delimiters.unescape(raw).strip()

    def whole(self, component: int) -> str:
        """Return a component with all of its parts: a sender of a text may not escape ``&``."""
        return self._joined(self.components[component - 1 : component])

    def __str__(self) -> str:
        """Return all components: a sender of a text may not escape ``^`` either."""
        return self._joined(self.components)

    def _joined(self, components: Sequence[tuple[str, ...]]) -> str:
        part, component = self.delimiters.part, self.delimiters.component
        raw = component.join(part.join(each).rstrip(part) for each in components).rstrip(component)
        return "" if raw == NULL else self.delimiters.unescape(raw).strip()

    def parts(self, component: int) -> Value:
        """Return a component as a value, whose components are its parts."""
        if component > len(self.components):
            return Value((), self.delimiters)
        return Value(tuple((part,) for part in self.components[component - 1]), self.delimiters)

    def __bool__(self) -> bool:
        """Whether there is any text."""
        return any(part not in ("", NULL) for each in self.components for part in each)


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment; ``number`` counts those of the same name from 1."""

    name: str
    number: int
    fields: hl7.Segment
    delimiters: Delimiters

    def values(self, field: int) -> list[Value]:
        """Return the repetitions of a field that have a text."""
        if field >= len(self.fields):
            return []
        found = [Value(_components(each), self.delimiters) for each in self.fields[field]]
        return [value for value in found if value]

    def value(self, field: int) -> Value:
        """Return the first repetition of a field; an empty value if there is none."""
        return next(iter(self.values(field)), Value((), self.delimiters))

    def text(self, field: int, component: int = 1, part: int = 1) -> str:
        """Return a text of the first repetition of a field."""
        return self.value(field).text(component, part)

    def problem(self, text: str, field: int = 0, code: Code = Code.DATA_TYPE) -> Problem:
        """Return a problem with a field, or with the whole segment."""
        return Problem(text, self.name, self.number, field, code)


@dataclass(frozen=True, slots=True)
class Message:
    """The segments of a message; the first is the header."""

    segments: tuple[Segment, ...]

    @property
    def header(self) -> Segment:
        """The segment MSH."""
        return self.segments[0]


def split_messages(raw: bytes) -> list[bytes]:
    """Return the messages in the bytes of a file, without a batch around them. Raises Unusable."""
    messages: list[list[bytes]] = []
    for line in _SEPARATORS.split(raw.removeprefix(b"\xef\xbb\xbf")):
        text = line.strip(_FRAMES)
        if not text.strip() or text.startswith(_ENVELOPE):
            continue
        if text.startswith(b"MSH"):
            messages.append([])
        if not messages:
            raise Unusable([Problem("a message must begin with MSH", code=Code.SEQUENCE)])
        messages[-1].append(text)
    if not messages:
        raise Unusable([Problem("there is no message", code=Code.REQUIRED)])
    return [b"\r".join(lines) + b"\r" for lines in messages]


def parse(raw: bytes, character_set: str) -> Message:
    """Split a message.

    ``character_set`` is that of messages without MSH-18, as HL7 names it. Raises Unusable.
    """
    (single, *others) = split_messages(raw)
    if others:
        raise Unusable([Problem("has more than one MSH", "MSH", 2, code=Code.SEQUENCE)])
    head = single.split(b"\r", 1)[0].decode("latin-1")
    begin = _HEADER.match(head)
    if begin is None or len(set(begin.groups())) < len(begin.groups()):
        text = "must begin with five different delimiters, such as MSH|^~\\&|"
        raise Unusable([Problem(text, "MSH", 1, 2)])
    named = _declared(head, begin) or character_set
    lines = _whole_lines(decode(single, named).rstrip("\r").split("\r"), begin[1])
    field, component, repetition, escape, part = begin.groups()
    delimiters = Delimiters(field, component, repetition, escape, part, named.upper())
    _check_size(lines, delimiters)
    return Message(tuple(_segments(lines, delimiters)))


def _declared(head: str, begin: re.Match[str]) -> str:
    """Return the first character set that a header declares."""
    fields = head.split(begin[1])
    return fields[17].split(begin[3])[0].strip() if len(fields) > 17 else ""


def _check_size(lines: list[str], delimiters: Delimiters) -> None:
    marks = (delimiters.field, delimiters.component, delimiters.repetition, delimiters.part)
    if len(lines) + sum(line.count(mark) for line in lines for mark in marks) > MAX_DELIMITERS:
        raise Unusable([Problem(f"has more than {MAX_DELIMITERS} fields and components")])


def _whole_lines(lines: list[str], field: str) -> list[str]:
    """Return the segments: a line that begins none is a line of the text before it."""
    whole: list[str] = []
    for line in lines:
        if not whole or (_NAME.match(line) and line[3:4] in ("", field)):
            whole.append(line)
        else:
            whole[-1] += f"\n{line}"
    return whole


def _segments(lines: list[str], delimiters: Delimiters) -> Iterator[Segment]:
    numbers: Counter[str] = Counter()
    for line, fields in zip(lines, hl7.parse("\r".join(lines)), strict=True):
        name = line[:3]
        numbers[name] += 1
        yield Segment(name, numbers[name], fields, delimiters)


def _components(repetition: object) -> tuple[tuple[str, ...], ...]:
    """Return what the parser made of a repetition, which is a text if it has one component."""
    if isinstance(repetition, str):
        return ((repetition,),)
    assert isinstance(repetition, hl7.Repetition)  # noqa: S101  # what hl7 makes of a field
    return tuple((each,) if isinstance(each, str) else tuple(each) for each in repetition)
