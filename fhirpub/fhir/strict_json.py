"""JSON in, so strictly that no two parsers can disagree about it, and JSON out (D-70, ADR 4).

What is accepted keeps every character of a number: one whose text Python's float would change is
read as :class:`decimal.Decimal`, or :class:`SentDecimal`, and written back as it came.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from operator import is_
from typing import Any, Self

import orjson

from fhirpub.errors import InvalidContent
from fhirpub.fhir.explanation.unreadable import RepeatedName, place_in, refusal_of_json
from fhirpub.problems import ContentProblem

JsonObject = dict[str, Any]

MAX_DEPTH = 64
MAX_NODES = 100_000

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\n\r"
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)")
_MAX_ESCAPES = 500
"""With more, the strict reader is faster."""
_MAYBE_UNSPEAKABLE = re.compile(rb"\\(?:u00[01]|[bf]|u[fF]{3}[eEfF])")
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_NONCHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")
_MAX_INT_DIGITS = 18
_MAX_QUOTES = 4 * MAX_NODES
"""Around the name and the text of each value."""
_INDENTED_BYTES = 262_144
"""A longer body is not copied to see how deep it is."""
_DEEPEST = b"\n" + b"  " * MAX_DEPTH
_COUNTED_BYTES = 4_096
"""So many bytes are searched byte by byte, from each one that is found."""


class SentDecimal(Decimal):
    """A number that Decimal would write otherwise than it was sent: ``1e+2``, ``0.0000001``."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Read a number of JSON."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        """Return what to make it of again, in another process."""
        return type(self), (self.text,)


NUMBERS = frozenset({int, float, Decimal, SentDecimal})
"""The classes of numbers that are read; bool is none."""


def loads(raw: bytes) -> Any:
    """Parse one JSON text from an untrusted sender.

    Raises InvalidContent for anything that RFC 8259 forbids or that readers treat differently:
    duplicate names, NaN, numbers beyond 1.7e308, lone surrogates, another encoding than UTF-8,
    control characters in strings other than tab, CR and LF, U+FFFE and U+FFFF (which XML cannot
    express), nesting deeper than 64, more than 100,000 values.
    """
    raw = raw.removeprefix(_BOM)
    counted = _count_structures(raw)
    if max(counted) > MAX_NODES and max(_count_structures(_outside_strings(raw))) > MAX_NODES:
        raise _too_complex(_TOO_MANY)  # before they are made: they take memory
    value = loads_stored(raw)
    if not (_are_few(counted) or _is_flat(value, raw, counted)):
        refuse_excess(value)
    # One byte is looked for first: that takes no time, even in a large body.
    escaped = b"\\" in raw and _MAYBE_UNSPEAKABLE.search(raw)
    if escaped or (b"\xef" in raw and any(noncharacter in raw for noncharacter in _NONCHARACTERS)):
        _refuse_unspeakable(value)
    return value


def loads_stored(raw: bytes) -> Any:
    """Read JSON that was written by :func:`dumps`, whatever the limits of today are.

    Raises InvalidContent for what is no JSON, and for duplicate names.
    """
    try:
        value = orjson.loads(raw)
        written = _encode(value)
        if written != raw and not _differ_in_notation_only(raw, written):
            # Written otherwise than we would: look again, for what the fast reader overlooks.
            value = _DECODER.decode(raw.decode())
    except (ValueError, RecursionError, InvalidOperation) as problem:
        if isinstance(problem, RecursionError) or str(problem) == TOO_DEEP:
            raise _too_complex(TOO_DEEP) from None
        raise refusal_of_json(raw, problem) from None
    return value


def dumps(value: Any) -> bytes:
    """Write compact UTF-8 JSON, names in the order given, numbers as they were read."""
    return orjson.dumps(value, default=_decimal)


def in_decimals(value: Any) -> Any:
    """Return a copy in which equal numbers compare so: 13.2 may have been read as a float."""
    return _DECODER.decode(dumps(value).decode())


def in_plain_decimals(value: Any) -> Any:
    """Return a copy without :class:`SentDecimal`, or the value itself if it has none."""
    kind = type(value)
    if kind is dict:
        copy = {name: in_plain_decimals(member) for name, member in value.items()}
        return value if all(map(is_, value.values(), copy.values())) else copy
    if kind is list:
        items = [in_plain_decimals(member) for member in value]
        return value if all(map(is_, value, items)) else items
    return Decimal(value) if kind is SentDecimal else value


def pretty(value: Any) -> bytes:
    """Write UTF-8 JSON for people: two blanks an indent."""
    return orjson.dumps(value, default=_decimal, option=orjson.OPT_INDENT_2)


def _count_structures(raw: bytes) -> tuple[int, int]:
    """Return how many bytes open an object or a list, and how many values have one behind them."""
    return count(raw, b"{") + count(raw, b"["), count(raw, b",")


def count(raw: bytes, mark: bytes) -> int:
    """Return how often a mark occurs, in a tenth of the time of ``raw.count`` if it is rare.

    The data of a document has none of the bytes that JSON is made of.
    """
    if len(raw) <= _COUNTED_BYTES:
        return raw.count(mark)
    total, at = 0, raw.find(mark)
    while at >= 0:
        end = at + _COUNTED_BYTES
        total += raw.count(mark, at, end + len(mark) - 1)  # with one that ends behind it
        at = raw.find(mark, end)
    return total


def _are_few(counted: tuple[int, int]) -> bool:
    """Return whether neither the depth nor the number of values can be too large."""
    opened, followed = counted
    return opened <= MAX_DEPTH and followed <= MAX_NODES - MAX_DEPTH


def _is_flat(value: Any, raw: bytes, counted: tuple[int, int]) -> bool:
    """Return whether the encoder shows, sooner than a look at each value, that there is no excess.

    With indents, what stands in a value at the deepest level begins a line with as many blanks:
    a string has no line break. False means that a look is needed.
    """
    if len(raw) > _INDENTED_BYTES or sum(counted) > MAX_NODES:
        return False
    try:
        return _DEEPEST not in pretty(value)
    except TypeError:  # nested deeper than the encoder goes
        return False


def _outside_strings(raw: bytes) -> bytes:
    """Return a JSON text without its strings, in time and memory that grow with it alone.

    Raises InvalidContent for more strings than there may be values and names.
    """
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > _MAX_QUOTES:
        raise _too_complex(_TOO_MANY)
    return b"".join(unescaped.split(b'"')[::2])


def _encode(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # nested deeper than the encoder goes
        raise ValueError(TOO_DEEP) from None


def _differ_in_notation_only(raw: bytes, written: bytes) -> bool:
    """Return whether a JSON text is what its value was written as, but for blanks and escapes.

    Blanks are left out in strings, too: the fast reader changes no string. A name that it drops,
    or digits of a number, would be missing in what was written.
    """
    sent, ours = raw.translate(None, _BLANKS), written.translate(None, _BLANKS)
    if sent == ours:
        return True
    return 0 < sent.count(b"\\") <= _MAX_ESCAPES and _ESCAPE.sub(_plain, sent) == ours


def _plain(escape: re.Match[bytes]) -> bytes:
    """Return what an escape stands for, if that may stand in a string without one."""
    code = int(escape[1] or b"0", 16)
    if code >= 0x80 and not 0xD800 <= code <= 0xDFFF:
        return chr(code).encode()
    return b"/" if escape[0] == b"\\/" else escape[0]


def _decimal(value: Any) -> orjson.Fragment:
    if isinstance(value, Decimal):
        return orjson.Fragment(value.text if type(value) is SentDecimal else str(value))
    raise TypeError(type(value).__name__)


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise RepeatedName
    return value


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= _MAX_INT_DIGITS and text != "-0" else Decimal(text)


def _number(text: str) -> Decimal:
    value = Decimal(text)
    return value if str(value) == text else SentDecimal(text)


_TOO_MANY = "the body holds too many values"
TOO_DEEP = f"the body is nested deeper than {MAX_DEPTH} levels"
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_int=_whole)


def _too_complex(said: str) -> InvalidContent:
    return InvalidContent.because(said, details=ContentProblem.BODY_TOO_COMPLEX)


def refuse_excess(value: Any, *, written: bytes | None = None) -> None:
    """Raise InvalidContent for what is nested deeper than 64 or holds more than 100,000 values.

    ``written`` is the value as JSON, if that is at hand: it shows of most that they are small.
    """
    if written is not None and _are_few(_count_structures(written)):
        return
    # A level at a time: it may be nested deeper than Python's functions can be.
    level, depth, nodes = [value], 0, 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise _too_complex(TOO_DEEP)
        below = []
        for item in level:
            members = item.values() if type(item) is dict else item
            if type(item) is dict or type(item) is list:
                nodes += len(members)
                below += [one for one in members if type(one) is dict or type(one) is list]
        if nodes > MAX_NODES:
            raise _too_complex(_TOO_MANY)
        level = below


def _refuse_unspeakable(value: Any) -> None:
    """Refuse what XML has no way to write: control characters, U+FFFE, U+FFFF."""
    rest = [value]
    for item in rest:  # grows while it is read
        if _is_unspeakable(item):
            raise InvalidContent.because(
                "a string holds a control character, U+FFFE or U+FFFF",
                expression=place_in(value, _holds_unspeakable) or "",
                details=ContentProblem.CHARACTER_FORBIDDEN,
            )
        if isinstance(item, dict):
            rest += item
            rest += item.values()
        elif isinstance(item, list):
            rest += item


def _is_unspeakable(item: Any) -> bool:
    return isinstance(item, str) and _UNSPEAKABLE.search(item) is not None


def _holds_unspeakable(item: Any) -> bool:
    return _is_unspeakable(item) or (isinstance(item, dict) and any(map(_is_unspeakable, item)))
