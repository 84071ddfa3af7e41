"""Strategies of XML bodies that the writer of the service would not make."""

from __future__ import annotations

from collections.abc import Callable
from xml.sax.saxutils import quoteattr

from hypothesis import strategies as st

from fhirpub.fhir.xml.writer import write_xml
from tests.bodies import organization, parameters, patient, report
from tests.expensive.json_bodies import Shape
from tests.expensive.texts import XHTML, filled, texts

_UNITS = (
    *("<a/>", "<extension/>", '<extension url="a:b"/>', '<status value="final"/>', "<contained/>"),
    *('<extension url="a:b"><valueCode value="a"/></extension>', "<!---->", "<?a?>", "&#65;", " "),
    *("<![CDATA[a]]>", '<conclusion value="a"/><id value="a"/>', "<text/>", "<b>a</b>", "a", "="),
    *("<contained><Basic><code/></Basic></contained>", '<category id="a"/>', "<identifier/>"),
    *('<x:a xmlns:x="a"/>', '<performer><reference value="#a"/></performer>', "&amp;", "<q:a/>"),
)
_MAX_LEVELS = 300
_OPEN = ("<extension>", "<contained><Basic>", "<b>", "<a>", "<text><div>", "<q:a>")


@st.composite
def xml_bodies(draw: st.DrawFn) -> Shape:
    """Return registrations in XML whose report is mostly one thing, many times or very long."""
    inner = draw(st.one_of(_repeated(), _nested(), _long(), _narratives(), _declared()))

    def shape(size: int) -> bytes:
        return registration_of(inner(size - 2_500))

    return shape


def registration_of(inner: str) -> bytes:
    """Return a registration in XML; the report has this content and is otherwise empty."""
    whole = write_xml(parameters(patient=patient(), organization=organization())).decode()
    entry = (
        '<parameter><name value="diagnosticReport"/><resource>'
        f"<DiagnosticReport>{inner}</DiagnosticReport></resource></parameter>"
    )
    return whole.replace("</Parameters>", f"{entry}</Parameters>").encode()


def report_with(narrative: str) -> bytes:
    """Return a valid registration in XML, but for what its narrative holds."""
    mark = f'<div xmlns="{XHTML}">@</div>'
    made = parameters(
        patient=patient(),
        organization=organization(),
        diagnosticReport=report("A-1", text={"status": "additional", "div": mark}),
    )
    return write_xml(made).replace(b"@", narrative.encode())


Inner = Callable[[int], str]


@st.composite
def _repeated(draw: st.DrawFn) -> Inner:
    first, second = draw(st.sampled_from(_UNITS)), draw(st.sampled_from(_UNITS))
    return lambda size: filled(first, size // 2) + filled(second, size // 2)


@st.composite
def _nested(draw: st.DrawFn) -> Inner:
    opening, levels = draw(st.sampled_from(_OPEN)), draw(st.integers(1, _MAX_LEVELS))
    unit = draw(st.sampled_from(_UNITS))
    closing = "".join(f"</{name}" for name in reversed(opening.replace(">", ">,").split(",")[:-1]))
    closing = closing.replace("</<", "</")
    return lambda size: opening * levels + filled(unit, size // 2) + closing * levels


@st.composite
def _long(draw: st.DrawFn) -> Inner:
    text, name = draw(texts()), draw(st.sampled_from(["conclusion", "issued", "status", "id"]))
    return lambda size: f"<{name} value={quoteattr(text(size)[:size])}/>"


@st.composite
def _narratives(draw: st.DrawFn) -> Inner:
    text, prefix = draw(texts()), draw(st.sampled_from(["", "h:"]))
    levels, count = draw(st.integers(0, 255)), draw(st.integers(0, 60))
    opening = f"<{prefix}b>" * levels
    closing = f"</{prefix}b>" * levels
    attributes = " ".join(f'class{number}="a"' for number in range(count))

    def inner(size: int) -> str:
        return (
            f'<text><status value="additional"/><{prefix}div xmlns="{XHTML}" xmlns:h="{XHTML}"'
            f" {attributes}>{opening}{text(size)}{closing}</{prefix}div></text>"
        )

    return inner


@st.composite
def _declared(draw: st.DrawFn) -> Inner:
    """Return elements below one that declares many namespaces, or one with a long name."""
    unit, count = draw(st.sampled_from(_UNITS)), draw(st.integers(1, 2_000))
    is_long = draw(st.booleans())

    def inner(size: int) -> str:
        declared = "".join(f' xmlns:n{number}="a{number}"' for number in range(count))
        name = "u" * (size // 2) if is_long else "u"
        rest = filled(unit, size - size // 2 if is_long else size - len(declared))
        return f'<text xmlns:q="{name}"{"" if is_long else declared[:size]}>{rest}</text>'

    return inner
