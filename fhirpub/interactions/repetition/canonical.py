"""One spelling for each JSON value: what is the same content has the same bytes.

The order of names, white space, the spelling of numbers, the offset of times and the markup of
narratives do not count. The digest and the names of differing elements both follow from these
bytes, so that they agree.
"""

from __future__ import annotations

import re
from datetime import UTC
from decimal import Decimal
from typing import Any

import orjson

from fhirpub.fhir.narrative import canonical_narrative
from fhirpub.fhir.times import UnstorableTime, to_utc

_WRITES_PLUS = orjson.dumps(1e16) == b"1e+16"
"""Whether the encoder writes a large number as it was written before: 3.11 writes 1e16."""
_LARGE = re.compile(rb"(?<=[0-9])e(?=[0-9])")
_MAX_DIGITS = 16
"""Longer integers are written with an exponent by the encoder, if they come as a float."""
_CLOCK = rb"T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?[+-][0-9]{2}:[0-9]{2}"
_WITH_OFFSET = re.compile(_CLOCK + rb'"')
"""Begins with a letter that is rare, so that a text without any is passed over quickly."""
_DATE_LENGTH = len('"2026-11-20')
_TIME = re.compile(rb'"([0-9]{4}-[0-9]{2}-[0-9]{2}' + _CLOCK + rb')"')

_DIV = re.compile(rb'"div":("[^"\\]*+(?:\\.[^"\\]*+)*+")')


def canonical(value: Any) -> bytes:
    """Return a JSON value as bytes that are equal for equal content.

    A time with an offset is the same moment in any offset; one without is as it was sent, since
    its zone is a setting.
    """
    text = _encode(value)
    if b".0" in text or _may_lack_plus(text):  # maybe 1.0, which the encoder does not write as 1
        text = _encode(_with_integers(value))
    if b'"div":"' in text:
        text = _DIV.sub(_in_canonical_xml, text)
    return _with_times_in_utc(text)


def _with_times_in_utc(text: bytes) -> bytes:
    """Return a text with each time in it that has an offset as the same moment in UTC."""
    parts: list[bytes] = []
    at = 0
    for clock in _WITH_OFFSET.finditer(text):
        time = _TIME.match(text, max(clock.start() - _DATE_LENGTH, at))
        if time is not None:
            parts += text[at : time.start()], _in_utc(time)
            at = time.end()
    return b"".join([*parts, text[at:]]) if parts else text


def _encode(value: Any) -> bytes:
    return orjson.dumps(value, default=_decimal, option=orjson.OPT_SORT_KEYS)


def _with_integers(value: Any) -> Any:
    """Return a copy in which a float that is an integer is one; nested no deeper than a body.

    A large one stays a float, in its one spelling.
    """
    kind = type(value)
    if kind is dict:
        return {name: _with_integers(member) for name, member in value.items()}
    if kind is list:
        return [_with_integers(member) for member in value]
    if kind is float and value.is_integer():
        return int(value) if abs(value) < 10**_MAX_DIGITS else _float(value)
    return value


def _may_lack_plus(text: bytes) -> bool:
    return not _WRITES_PLUS and _LARGE.search(text) is not None


def _float(value: float) -> orjson.Fragment:
    """Write 1e16 as 1e+16 by each version of the encoder: digests are compared with older ones."""
    return orjson.Fragment(_LARGE.sub(b"e+", orjson.dumps(value)))


def _decimal(value: Any) -> orjson.Fragment:
    """Write a number as the encoder writes an equal integer or float, if there is one."""
    if not isinstance(value, Decimal):
        raise TypeError(type(value).__name__)
    sign, digits, exponent = value.as_tuple()
    if not value:
        return orjson.Fragment(b"0")
    if exponent == 0:  # more digits than the reader makes an integer of
        return orjson.Fragment(str(value))
    if abs(value) < 10**_MAX_DIGITS and value == int(value):
        return orjson.Fragment(str(int(value)))
    if Decimal(repr(nearest := float(value))) == value:
        return _float(nearest)
    written = "".join(map(str, digits))
    plain = written.rstrip("0")
    power = int(exponent) + len(written) - len(plain)
    return orjson.Fragment(f"{'-' * sign}{plain}e{power}")


def _in_utc(found: re.Match[bytes]) -> bytes:
    try:
        time = to_utc(found[1].decode(), default_zone=UTC)
    except UnstorableTime:
        return found[0]
    return found[0] if time is None else b'"%b"' % time.text.encode()


def _in_canonical_xml(found: re.Match[bytes]) -> bytes:
    return b'"div":' + orjson.dumps(canonical_narrative(orjson.loads(found[1])))
