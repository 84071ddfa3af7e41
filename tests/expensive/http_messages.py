"""Strategies of heads and of queries."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from hypothesis import strategies as st

from tests.expensive.json_bodies import Shape
from tests.expensive.texts import filled, texts

_FIELDS = (
    *("Accept", "Authorization", "Connection", "Content-Length", "Content-Type", "Cookie"),
    *("Expect", "Host", "If-Match", "If-Modified-Since", "If-None-Match", "Prefer", "Range"),
    *("X-A", "A" * 99),
    *("Transfer-Encoding", "X-Forwarded-For", "X-Request-Id", "a-" * 99 + "a", ""),
)
_UNITS = (
    *(",", ", ", "a,", "a=b; ", "a/b,", "*/*;q=0,", ";", ";q=1", ";a=b", "=", " ", "\t", "a"),
    *('"', '"1",', 'W/"1",', "W/", "bytes=0-0,", "127.0.0.1,", "::1,", "10.0.0.1, "),
    *("return=a,", "Digest "),
    *("Mon, ", "01 Jan 2026 ", ":", "+", "-", "0", "9", "é", "eyJh.", ".", "%41", "\r\n\t"),
    *("\r\n ", "\r\nX-A: ", "\r\nX-A:", "\r\n:", "\r\nA", "\n", "\r", "Bearer "),
)
_METHODS = ("GET", "POST", "PATCH", "OPTIONS", "X" * 99)


@st.composite
def heads(draw: st.DrawFn) -> Shape:
    """Return heads with a long target, a long field or many fields."""
    method = draw(st.sampled_from(_METHODS))
    name = draw(st.sampled_from(_FIELDS))
    text = draw(texts(_UNITS))
    target = draw(texts(("a", "/", "%41", "%2F", "?", "&", "a=b&", "=", ";", "+", "..", "//")))
    where = draw(st.sampled_from(["target", "field", "field", "both"]))
    lines = draw(st.integers(1, 99))

    def shape(size: int) -> bytes:
        size = min(size, 16_000)
        long_target = quote(target(size // 2), safe="/%?&=;+.") if where != "field" else "/"
        value = text(size // lines if where == "field" else size // 3)
        fields = f"{name}: {value}\r\n" * (lines if where != "target" else 1)
        start = f"{method} /{long_target} HTTP/1.1\r\nHost: a\r\n"
        return f"{start}{fields}\r\n".encode("latin-1", "replace")

    return shape


_NAMES = (
    *("_id", "identifier", "identifier:of-type", "identifier:not", "code", "code:not", "category"),
    *("code:missing", "date", "issued", "_lastUpdated", "patient", "patient.identifier"),
    *("subject:Patient.identifier", "subject", "performer", "_sort", "_include", "_count"),
    *("_total", "_summary", "_cursor", "unknown", "a.b.c", ":", "date:missing"),
    *("_elements", "value-quantity", "value-string", "value-string:exact", "combo-code"),
    *("value-string:contains", "code-value-quantity", "combo-code-value-quantity"),
    *("component-value-quantity", "component-code-value-concept", "code-value-string"),
)
_VALUES = (
    *("a", "a|b", "|a", "a|", "a|b|c", "\\,", "\\|", "\\\\", "\\", "|", "$", "date", "_id"),
    *("-date", "2026", "ne2026-01-01", "ap2026-01-01T00:00:00.123Z", "ge9999-12-31", "Patient/1"),
    *("true", "DiagnosticReport:patient", "*", "http://a/Patient/1", "%00", "é"),
    *("%C3%A9", "+", "9", "1", "a$b", "a$1", "s|a$ge1.5e9", "$", "%CC%81", "1||g"),
    *("a$1|http://unitsofmeasure.org|mg/dL", "1|http://unitsofmeasure.org|m.m.m.m.m.m.m.m"),
)


@st.composite
def queries(draw: st.DrawFn) -> Callable[[int], str]:
    """Return queries of some parameters, each with many values, again and again."""
    parts = draw(
        st.lists(
            st.tuples(
                st.sampled_from(_NAMES),
                st.sampled_from(_VALUES),
                st.sampled_from(_VALUES),
                st.sampled_from([",", "", "\\,", "|"]),
                st.sampled_from([1, 1, 2, 30, 950, 100_000]),
            ),
            min_size=1,
            max_size=4,
        )
    )
    times = draw(st.sampled_from([1, 2, 10, 100, 1_000]))

    def query(size: int) -> str:
        share = max(1, size // len(parts) // times)

        def of(name: str, first: str, second: str, between: str, most: int) -> str:
            unit = first + between + second + between
            count = min(most, max(1, (share - len(name) - 2) // len(unit)))
            return f"{name}={unit * count}"

        once = "&".join(of(*part) for part in parts)
        return filled(f"{once}&", size) if times > 1 else once

    return query
