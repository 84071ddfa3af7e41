"""Acknowledgements in original mode: MSH, MSA and ERR (HL7 v2.5.1, 2.9.2 and 2.15.5)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fhirpub_hl7v2.problems import Problem

AckCode = Literal["AA", "AE", "AR"]

MAX_ERRORS = 20
_LONGEST_TEXT = 250
_DEFAULT = ("|", "^", "~", "\\", "&")
_HEADER = re.compile(r"MSH([^\w\s])([^\w\s])([^\w\s])([^\w\s])([^\w\s])[^\w\s]?\1")
_FIRST_VERSION_OF_ERR_2 = (2, 5)
_MEANINGS = {
    "0": "Message accepted",
    "100": "Segment sequence error",
    "101": "Required field missing",
    "102": "Data type error",
    "103": "Table value not found",
    "200": "Unsupported message type",
    "201": "Unsupported event code",
    "202": "Unsupported processing id",
    "203": "Unsupported version id",
    "205": "Duplicate key identifier",
    "207": "Application internal error",
}


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The answer to a message. ``text`` has no value of the message."""

    code: AckCode
    text: str = ""
    problems: Sequence[Problem] = ()
    warnings: Sequence[Problem] = ()


@dataclass(frozen=True, slots=True)
class Sender:
    """What an acknowledgement repeats of the header that it answers, byte by byte."""

    delimiters: tuple[str, ...]
    fields: tuple[str, ...]

    @classmethod
    def of(cls, raw: bytes) -> Sender:
        """Read the header of a message, however wrong the message is."""
        head = re.split(rb"[\r\n]", raw[:4096], maxsplit=1)[0].decode("latin-1")
        begin = _HEADER.match(head)
        if begin is None or len(set(begin.groups())) < len(begin.groups()):
            return cls(_DEFAULT, ())
        return cls(begin.groups(), tuple(head.split(begin[1])))

    def field(self, number: int) -> str:
        """Return a field of MSH; "" if it is missing."""
        return self.fields[number - 1] if number <= len(self.fields) else ""

    @property
    def version(self) -> tuple[int, ...]:
        """The version as numbers; that of the latest supported one if it cannot be read."""
        text = self.field(12).split(self.delimiters[1])[0]
        known = re.fullmatch(r"\d(?:\.\d){0,2}", text)
        return tuple(map(int, text.split("."))) if known else _FIRST_VERSION_OF_ERR_2


def to_bytes(answer: Acknowledgement, sender: Sender, control_id: str, time: str) -> bytes:
    """Return the message ACK for the sender of a message.

    ``control_id`` is the number of the acknowledgement, and ``time`` that of its creation.
    """
    field, component, *_ = sender.delimiters
    header = [
        "MSH",
        "".join(sender.delimiters[1:]),
        sender.field(5),
        sender.field(6),
        sender.field(3),
        sender.field(4),
        time,
        "",
        f"ACK{component}R01",
        control_id,
        sender.field(11) or "P",
        sender.field(12) or "2.5.1",
    ]
    message = ["MSA", answer.code, sender.field(10), _escaped(answer.text, sender)]
    errors = [_error(problem, sender) for problem in answer.problems[:MAX_ERRORS]]
    if sender.version >= _FIRST_VERSION_OF_ERR_2:  # before, there was no severity
        warnings = answer.warnings[: MAX_ERRORS - len(errors)]
        errors += [_error(warning, sender, severity="W") for warning in warnings]
    lines = [field.join(each).rstrip(field) for each in (header, message, *errors)]
    return ("\r".join(lines) + "\r").encode("latin-1", errors="replace")


def _error(problem: Problem, sender: Sender, *, severity: str = "E") -> list[str]:
    component, part = sender.delimiters[1], sender.delimiters[4]
    meaning = _MEANINGS[problem.code]
    text = _escaped(problem.text, sender)
    place = [problem.segment, str(problem.number), str(problem.field or "")]
    where = component.join(place).rstrip(component) if problem.segment else ""
    if sender.version < _FIRST_VERSION_OF_ERR_2:
        code = part.join([problem.code, meaning, "HL70357"])
        return [
            "ERR",
            component.join([*place, code]) if problem.segment else f"{component * 3}{code}",
        ]
    code = component.join([problem.code, meaning, "HL70357"])
    return ["ERR", "", where, code, severity, "", "", "", text]


def _escaped(text: str, sender: Sender) -> str:
    """Return a text of one line with the sender's delimiters escaped."""
    field, component, repetition, escape, part = sender.delimiters
    names = {field: "F", component: "S", repetition: "R", escape: "E", part: "T"}
    short = " ".join(text.split())[:_LONGEST_TEXT]
    return "".join(f"{escape}{names[c]}{escape}" if c in names else c for c in short)
