"""Why a body cannot be read at all: what is wrong with its bytes or its JSON, and where."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fhirpub.errors import InvalidContent
from fhirpub.fhir.explanation.unknown_names import PLAIN_NAME
from fhirpub.problems import ContentProblem

JsonObject = dict[str, Any]
_BLANK = b" \t\r\n"
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"\x00")
_OTHER_FORMATS = {
    b"\x1f\x8b": "gzip: send it with Content-Encoding: gzip",
    b"%PDF": "a PDF: send it in base64 as the data of an attachment",
    b"PK\x03\x04": "a ZIP archive: send what is in it",
}
"""What a body may be in place of a text, by its first bytes."""
_LONGEST_PLACE = 300
_NEAR = 64
"""So many characters on each side of a mistake are looked at."""
_WORD = re.compile("[A-Za-z]+")
_NO_NUMBERS = frozenset({"NaN", "Infinity", "inf", "nan"})
_COMMENTS = "there are no comments in JSON"
_QUOTED = "names and strings have double quotation marks"
_FIRST = {
    "<": "this is XML, whose Content-Type is application/fhir+xml",
    "@": "this is the name of a file: with curl, send it by --data-binary @name",
}
"""What a body begins with that is no JSON."""
_QUOTES = "'`\u2018\u2019\u201c\u201d\u201e"


class RepeatedName(ValueError):
    """An object of the JSON has the same name twice."""


def refuse_bytes(raw: bytes) -> None:
    """Raise InvalidContent for what is empty or not UTF-8, with the place of the first byte."""
    if not raw.strip(_BLANK):
        raise InvalidContent.because("the body is empty", details=ContentProblem.BODY_EMPTY)
    if raw.startswith(_UTF16) or raw[1:2] == b"\x00":
        raise InvalidContent.because(
            "the body is UTF-16: it must be UTF-8", details=ContentProblem.BODY_NOT_UTF8
        )
    for first_bytes, what in _OTHER_FORMATS.items():
        if raw.startswith(first_bytes):
            raise InvalidContent.because(
                f"the body is {what}", details=ContentProblem.BODY_NOT_UTF8
            )
    try:
        raw.decode()
    except UnicodeDecodeError as problem:
        at = problem.start
        line, column = raw.count(b"\n", 0, at) + 1, at - raw.rfind(b"\n", 0, at)
        raise InvalidContent.because(
            f"the body is not UTF-8: byte {at + 1} (line {line}, byte {column} of it) "
            "is of another encoding",
            details=ContentProblem.BODY_NOT_UTF8,
        ) from None


def refusal_of_json(raw: bytes, problem: Exception) -> InvalidContent:
    """Return the refusal of a text that a parser of JSON has refused."""
    try:
        refuse_bytes(raw)
    except InvalidContent as refusal:
        return refusal
    if isinstance(problem, RepeatedName):
        return _refuse_repeated_name(raw.decode())
    reason = place = ""
    if isinstance(problem, json.JSONDecodeError):
        reason = _reason(problem.doc, problem.pos, problem.msg)
        place = f" (line {problem.lineno}, column {problem.colno})"
    return InvalidContent.because(
        f"the body is not valid JSON{reason and ': '}{reason}{place}",
        details=ContentProblem.JSON_MALFORMED,
    )


def place_in(value: Any, is_wanted: Callable[[Any], bool]) -> str | None:
    """Return the FHIRPath of the first part of a JSON value that is wanted, in no given order."""
    kind = value.get("resourceType") if type(value) is dict else None
    root = kind if isinstance(kind, str) and PLAIN_NAME.fullmatch(kind) else ""
    waiting = [(root, value)]
    while waiting:
        at, one = waiting.pop()
        if is_wanted(one):
            return at if len(at) <= _LONGEST_PLACE else ""
        waiting += _members(at, one)
    return None


def _members(at: str, value: Any) -> Iterator[tuple[str, Any]]:
    if type(value) is dict:
        for name, member in value.items():
            shown = name if PLAIN_NAME.fullmatch(name) else ""
            yield ".".join(filter(None, (at, shown))), member
    elif type(value) is list:
        for index, member in enumerate(value):
            yield f"{at}[{index}]", member


_MARK = object()
"""A member of the object that has a name twice."""


def _refuse_repeated_name(text: str) -> InvalidContent:
    """Name the property and its object: read the text once more, and look for the object."""
    found: list[str] = []

    def mark(pairs: list[tuple[str, Any]]) -> JsonObject:
        value = dict(pairs)
        if found or len(value) == len(pairs):
            return value
        found.append(_first_repeated(name for name, _ in pairs))
        return value | {"": _MARK}  # the object keeps its type, with which the place may begin

    try:
        at = place_in(json.loads(text, object_pairs_hook=mark), lambda one: one is _MARK)
    except (ValueError, RecursionError):  # what follows is no JSON either
        at = None
    name = f": {found[0]}" if found and PLAIN_NAME.fullmatch(found[0]) else ""
    return InvalidContent.because(
        f"the body is not valid JSON: an object has the same name twice{name}",
        expression=at or "",
        details=ContentProblem.JSON_NAME_REPEATED,
    )


def _first_repeated(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _reason(text: str, at: int, message: str) -> str:
    """Return what is wrong at a place, as far as the characters around it show."""
    here, behind = text[at : at + 1], text[at : at + _NEAR].lstrip(" \t\r\n,")
    before = text[max(0, at - _NEAR) : at].rstrip()
    if not here:
        return "it ends before it is complete"
    if here == "," and behind[:1] in ("}", "]", ""):
        return "there is a comma before } or ]"
    if "after document" in message or "Extra data" in message:
        return "there is more after its end"
    if "infinity" in message:
        return "a number is too large"
    if not before:
        return _FIRST.get(here, "it must begin with { or [") if here not in "/#" else _COMMENTS
    return _reason_of_character(here, behind) or _reason_between(behind, before[-1])


def _reason_of_character(here: str, behind: str) -> str:
    if here in _QUOTES:
        return _QUOTED
    if here in "/#":
        return _COMMENTS
    if here < " ":
        return r"a line break or a tab in a string is written as \n or \t"
    if behind.startswith("\\u"):
        return r"an escape \u stands for half a character"
    return r"a backslash in a string is written as \\" if here == "\\" else ""


def _reason_between(behind: str, before: str) -> str:
    """Return what is wrong with what follows a character."""
    word = _WORD.match(behind)
    if word and word[0] in _NO_NUMBERS:
        return "NaN and Infinity are no numbers of JSON"
    if before == "{" or (before == "," and word):
        return _QUOTED
    if before in (":", "[") and word:
        return "a string has double quotation marks; the words are true, false and null"
    if before in ".eE+-" or (before in ":[," and behind[:1] in "0123456789.+-"):
        return "a number has no plus sign or leading zero, and digits on both sides of a point"
    if before in ":[,":
        return "a value is missing before this place"
    return "a comma, a colon or a bracket is missing before this place"
