"""Long texts on which a regular expression or a library may take long."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

Text = Callable[[int], str]
"""Returns a text that has about so many bytes as UTF-8."""

XHTML = "http://www.w3.org/1999/xhtml"
BEGINNINGS = (
    *("", "http://", "https://a/?", "mailto:", "urn:oid:1", "urn:uuid:", "Patient/", "#", "data:"),
    *("2026-01-01T00:00:00.", "2026-01-01T00:00:00+", "2026", "0.", "-", "\\", "%", "%PDF-"),
    *(f'<div xmlns="{XHTML}">', f'<div xmlns="{XHTML}" ', "<", "&", '"', "<!--", "image/png;"),
)
UNITS = (
    *("a", "A", "0", "9", ".", ".1", "-", "/", ":", "@", "#", "?", "=", "|", "\\", "%", "%41"),
    *("+", " ", "  ", " a", "\t", "\n", ",", ";", '"', "'", "<", ">", "&", "&amp;", "&nbsp;"),
    *("&ngE;", "QUJD", "QUI=", "Q ", "<b>", "<b/>", '<a x=""', ' x=""', " x", "x = ", "/*", "*/"),
    *("url(", "position:", "https://a/", "urn:", "é", "ñ", "\u00a0", "\u2028", "\ufdfa"),
    *("\\,", "\\|", "-->", "--", "]]>", "0x", "e1", "E-9", "[0]", "$", "(", "()"),
    "\u0315",
    "\u0334",
    "\u0f71",
    "\u1e9b\u0323",
)
ENDS = (*("", "\n", " ", "x", "!", "=", "Z", ">", '"', "/>", "</div>", "\\", ";", "*/", "\u00e9"),)


@st.composite
def texts(draw: st.DrawFn, units: Sequence[str] = UNITS) -> Text:
    """Return a beginning, one or two units that repeat, and an end."""
    begin = draw(st.sampled_from(BEGINNINGS))
    first, second = draw(st.sampled_from(units)), draw(st.sampled_from(units))
    mode = draw(st.sampled_from(["first", "halves", "turns"]))
    end = draw(st.sampled_from(ENDS))

    def text(size: int) -> str:
        if mode == "halves":
            return begin + filled(first, size // 2) + filled(second, size // 2) + end
        return begin + filled(first + second if mode == "turns" else first, size) + end

    return text


def filled(unit: str, size: int) -> str:
    """Return a unit as often as it has room."""
    return unit * (size // max(1, len(unit.encode())))
