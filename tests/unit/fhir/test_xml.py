"""Resources in XML: there and back, validated by HL7's own schema, and refusals."""

from __future__ import annotations

import gzip
import itertools
import json
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lxml import etree

from fhirpub.config.loader import variable
from fhirpub.errors import InvalidContent
from fhirpub.fhir.narrative import narrative_problem, parse
from fhirpub.fhir.schema import own_schemas
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.fhir.xml.reader import read_xml
from fhirpub.fhir.xml.tables import tables
from fhirpub.fhir.xml.writer import write_xml
from tests.bodies import register_body
from tests.r4_xml_schema import faults
from tests.strategies import RESOURCE_TYPES, resource_of
from tests.unit.fhir.xml.reading import words, xml

XHTML = "http://www.w3.org/1999/xhtml"
REPORTS = Path(__file__).parents[2] / "corpus" / "reports.jsonl.gz"
LONG = variable("HYPOTHESIS") == "long"
some = settings(
    max_examples=5000 if LONG else 100,
    derandomize=not LONG,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
anything = st.sampled_from(RESOURCE_TYPES).flatmap(resource_of)


def comparable(value: Any) -> Any:
    """Return JSON in which numbers are compared by digits, and narratives by their XHTML."""
    if isinstance(value, (float, Decimal)):
        return dumps(value)
    if isinstance(value, dict):
        items = ((key, comparable(item)) for key, item in value.items())
        return {key: _canonical(item) if key == "div" else item for key, item in items}
    return list(map(comparable, value)) if isinstance(value, list) else value


def _canonical(div: str) -> bytes:
    written: bytes = etree.tostring(parse(div), method="c14n")
    return written


def narratives(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["div"]] if isinstance(value.get("div"), str) else []
        return own + [name for member in value.values() for name in narratives(member)]
    return [name for member in value for name in narratives(member)] if type(value) is list else []


@some
@given(anything)
def test_any_resource_comes_back_from_xml_unchanged_to_the_digit(resource: Any) -> None:
    assume(not any(map(narrative_problem, narratives(resource))))

    back = read_xml(write_xml(resource))

    assert comparable(back) == comparable(resource)


@some
@given(anything, st.booleans())
def test_what_is_written_is_valid_by_the_schema_of_hl7(resource: Any, pretty: bool) -> None:  # noqa: FBT001
    assume(not any(map(narrative_problem, narratives(resource))))

    assert faults(write_xml(resource, pretty=pretty)) == []


def test_the_reports_of_others_come_back_unchanged_and_are_valid() -> None:
    schemas = own_schemas()
    with gzip.open(REPORTS) as lines:
        reports = [loads(line)["report"] for line in lines]
    accepted = [item for item in reports if schemas.accepts("DiagnosticReport", item)]

    for report in accepted:
        written = write_xml(report)
        assert comparable(read_xml(written)) == comparable(report)
        assert [fault for fault in faults(written) if "xhtml" not in fault] == []
    assert len(accepted) > 250


def test_indented_xml_says_the_same() -> None:
    body = register_body("A-1")

    assert read_xml(write_xml(body, pretty=True)) == read_xml(write_xml(body)) == body


def test_every_type_of_r4_has_its_table() -> None:
    known = tables()

    assert len(known.resources) == 146
    kinds = {member.type for members in known.objects.values() for member in members.values()}
    undefined = {kind for kind in kinds - known.objects.keys() if kind[0].isupper()}
    assert undefined == {"Resource"}


def test_white_space_in_a_text_survives() -> None:
    resource = {"resourceType": "Patient", "language": " \ta\r\nb & <c> \"d\" 'e' \u2028 "}

    assert read_xml(write_xml(resource)) == resource


@pytest.mark.parametrize(
    "text", ["1.50", "0.10", "-0.0", "1E-7", "100000000000000000000.0", "1e16", "5", "1.0E+2"]
)
def test_a_number_keeps_its_digits(text: str) -> None:
    raw = f'{{"resourceType":"Observation","valueQuantity":{{"value":{text}}}}}'.encode()
    resource = loads(raw)

    back = read_xml(write_xml(resource))

    assert dumps(back) == dumps(resource)
    assert Decimal(text) == Decimal(str(back["valueQuantity"]["value"]))


def test_an_integer_may_have_a_sign_in_xml() -> None:
    body = xml('<multipleBirthInteger value="+2"/>')

    assert read_xml(body) == {"resourceType": "Patient", "multipleBirthInteger": 2}


def test_gaps_between_values_and_their_extensions_come_back() -> None:
    why = {"extension": [{"url": "u:why", "valueCode": "masked"}]}
    name = {"given": ["A", None, "B"], "_given": [None, why, {"id": "b"}], "_family": why}
    resource = {"resourceType": "Patient", "name": [name]}

    assert read_xml(write_xml(resource)) == resource


@pytest.mark.parametrize(
    "text",
    [
        '<div xmlns="http://www.w3.org/1999/xhtml">a<b xmlns="http://www.w3.org/1999/xhtml">b</b></div>',
        '<div xmlns="http://www.w3.org/1999/xhtml" title="&lt;&amp;&#xA0;">a<br/>&#169;</div>',
        '<div xmlns="http://www.w3.org/1999/xhtml">a<!-- note --> b\n</div>',
    ],
)
def test_a_narrative_alone_is_read_as_it_stands(text: str) -> None:
    xsi = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    body = xml(f'<text {xsi}><status value="generated"/>{text}</text>')

    div = read_xml(body)["text"]["div"]

    assert _canonical(div) == _canonical(text)
    assert narrative_problem(div) == ""
    assert "hl7.org" not in div
    assert "xsi" not in div


def _written(tree: Any, prefixes: Iterator[str]) -> str:
    """Return XHTML of nested tuples (name, text, children), each element with the next prefix."""
    name, text, children = tree
    prefix = next(prefixes)
    tag = f"{prefix}:{name}" if prefix else name
    declared = f'xmlns:{prefix}="{XHTML}"' if prefix else f'xmlns="{XHTML}"'
    inside = "".join(_written(child, prefixes) for child in children)
    return f"<{tag} {declared} title='{name}'>{text}{inside}</{tag}>{text}"


TREES = st.recursive(
    st.tuples(st.sampled_from(["b", "i"]), st.sampled_from(["", "a", " "]), st.just(())),
    lambda below: st.tuples(st.just("span"), st.just("t"), st.lists(below, max_size=3)),
    max_leaves=6,
)


@some
@given(TREES, st.lists(st.sampled_from(["", "h", "x"]), min_size=1, max_size=5))
def test_a_narrative_is_the_same_whatever_prefixes_it_is_sent_with(
    tree: Any, prefixes: list[str]
) -> None:
    def read(chosen: list[str]) -> Any:
        div = _written(("div", "a", [tree]), itertools.cycle(chosen)).removesuffix("a")
        return read_xml(xml(f'<text><status value="generated"/>{div}</text>'))

    resource = read(prefixes)

    assert resource == read([""])
    assert resource["text"]["div"].startswith(f'<div xmlns="{XHTML}" title="div">a<')
    assert ":" not in resource["text"]["div"].replace(XHTML, "")
    assert faults(write_xml(resource)) == []


def test_the_namespace_of_a_narrative_may_be_declared_on_an_outer_element() -> None:
    body = (
        f'<f:Patient xmlns:f="http://hl7.org/fhir" xmlns:h="{XHTML}"><f:text>'
        '<f:status value="generated"/><h:div>a<h:b>b</h:b></h:div></f:text></f:Patient>'
    )

    assert read_xml(body.encode())["text"]["div"] == f'<div xmlns="{XHTML}">a<b>b</b></div>'


def test_entities_of_html_become_characters() -> None:
    div = '<div xmlns="http://www.w3.org/1999/xhtml">a&nbsp;b</div>'
    resource = {"resourceType": "Patient", "text": {"status": "generated", "div": div}}

    written = write_xml(resource)

    assert faults(written) == []
    assert read_xml(written)["text"]["div"] == div.replace("&nbsp;", "\u00a0")


def test_comments_and_where_schemas_are_say_nothing() -> None:
    where = (
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        ' xsi:schemaLocation="http://hl7.org/fhir ../patient.xsd"'
    )
    body = (
        f'<?xml version="1.0" encoding="utf-8"?><!-- a --><Patient xmlns="http://hl7.org/fhir"'
        f' {where}><!-- b --><?c d?>\n<active value="true"/></Patient>'
    ).encode()

    assert read_xml(body) == {"resourceType": "Patient", "active": True}


@pytest.mark.parametrize("head", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("<!-- <!DOCTYPE a> - -->\n<?a <!DOCTYPE b> ? ?>", ""),
        ("", "<!-- <!DOCTYPE a> -->"),
        ("<!-- -->", '<language value="es"/><?a <!DOCTYPE b>?>'),
    ],
)
def test_words_about_a_document_type_are_none(head: str, before: str, inside: str) -> None:
    body = read_xml(xml(inside, head=f'{head}<?xml version="1.0"?>{before}'))

    assert body["resourceType"] == "Patient"


@pytest.mark.parametrize("head", ["", "\ufeff"])
def test_a_byte_order_mark_is_skipped(head: str) -> None:
    assert read_xml(xml("", head=head)) == {"resourceType": "Patient"}


def test_a_wrong_value_is_left_to_the_schema() -> None:
    body = xml('<active value="yes"/><multipleBirthInteger value="1.0"/><photo/>')

    problems = own_schemas().problems("Patient", read_xml(body))

    places = {"active", "multipleBirth", "photo[0]"}
    assert {problem.expression for problem in problems} == places


SEED = write_xml(register_body("A-1"))
PIECES = b"""< > = " / \0 \xff /> </ <?a <!-- ]]> &amp; &#0;""".split(b" ")


@some
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SEED)), st.integers(0, 40), st.sampled_from(PIECES) | st.binary()
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_comes_is_read_or_refused(changes: list[tuple[int, int, bytes]]) -> None:
    raw = SEED
    for start, length, piece in changes:
        raw = raw[:start] + piece + raw[start + length :]

    try:
        read = read_xml(raw)
    except InvalidContent as refusal:
        assert refusal.issues  # noqa: PT017 - either is right
        return
    if b"{}" not in dumps(read):  # an empty element has no other form; the schema refuses it
        assert comparable(read_xml(write_xml(read))) == comparable(read)


def nested(levels: int) -> bytes:
    head, tail = '<extension url="u:a">' * levels, "</extension>" * levels
    return xml(f"{head}{tail}")


def narrative(inside: str) -> bytes:
    div = f'<div xmlns="http://www.w3.org/1999/xhtml">{inside}</div>'
    return xml(f'<text><status value="generated"/>{div}</text><a/>')


HOSTILE = {
    "deep": nested(40),
    "deeper than a stack": nested(90_000),
    "a deep narrative": narrative("<b>" * 90_000 + "</b>" * 90_000),
    "a narrative with many attributes": narrative(
        "<b " + " ".join(f'a{number}="a"' for number in range(100_000)) + "/>"
    ),
    "a narrative that has many attributes": xml(
        f'<text><status value="generated"/><div xmlns="{XHTML}" '
        + " ".join(f'a{number}="a"' for number in range(100_000))
        + "/></text>"
    ),
    "a narrative with many namespaces": narrative(
        "<b " + " ".join(f'xmlns:a{number}="u:a"' for number in range(100_000)) + "/>"
    ),
    "a narrative with namespaces in namespaces": narrative(
        "".join(f'<a{number}:b xmlns:a{number}="u:{number}">' for number in range(60))
        + "".join(f'<c xmlns:d{number}="u:d"/>' for number in range(40_000))
        + "".join(f"</a{59 - number}:b>" for number in range(60))
    ),
    "many elements": xml('<active value="1"/>' * 250_000),
    "many values": xml('<communication><a value="a"/></communication>' * 60_000),
    "many attributes": xml(
        "<name " + " ".join(f'a{number}="a"' for number in range(100_000)) + "/>"
    ),
    "many namespaces": xml(
        "<name " + " ".join(f'xmlns:a{number}="u:a"' for number in range(100_000)) + "/>a"
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_body_is_refused_at_once(case: str) -> None:
    began = time.process_time()

    words(HOSTILE[case])

    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    "raw",
    [
        xml("<a/>" * 250_000),
        xml("<name " + " ".join(f"a{number} = ''" for number in range(250_000)) + "/>"),
    ],
    ids=["elements", "attributes"],
)
def test_too_much_is_refused_before_it_is_parsed(raw: bytes) -> None:
    assert words(raw) == [("", "the body holds too many values")]


def test_signs_of_attributes_in_a_text_are_none() -> None:
    drawn = "= " * 250_000

    read = read_xml(xml(f'<conclusion value="{drawn}"/>', name="DiagnosticReport"))

    assert read["conclusion"] == drawn


@pytest.mark.parametrize(("levels", "expected"), [(240, ""), (260, "must not be nested")])
def test_a_narrative_may_be_nested_as_deep_as_in_json(levels: int, expected: str) -> None:
    raw = narrative("<b>" * levels + "a" + "</b>" * levels).replace(b"<a/>", b"")

    if expected:
        assert expected in words(raw)[0][1]
    else:
        assert narrative_problem(read_xml(raw)["text"]["div"]) == ""


def test_xml_may_be_nested_as_deep_as_json() -> None:
    deepest = read_xml(nested(31))

    assert loads(dumps(deepest)) == deepest
    [(_place, message)] = words(nested(32))
    assert message == "the body is nested deeper than 64 levels"


def test_a_document_of_five_megabytes_passes_within_a_second() -> None:
    data = "QUJD" * (5 * 1024 * 1024 // 3)
    body = register_body("A-1", presentedForm=[{"contentType": "application/pdf", "data": data}])
    began = time.process_time()

    back = read_xml(write_xml(body))

    assert time.process_time() - began < 1
    assert back == body


def test_a_document_may_be_larger_than_the_parser_likes() -> None:
    resource = {"resourceType": "Binary", "contentType": "a/b", "data": "QUJD" * 3_000_000}

    assert read_xml(write_xml(resource)) == resource


def test_what_is_written_is_utf8_and_says_so() -> None:
    resource = {"resourceType": "Patient", "language": "ñ💉"}

    written = write_xml(resource)

    assert written.startswith(b'<?xml version="1.0" encoding="UTF-8"?><Patient ')
    assert "ñ💉".encode() in written
    assert json.loads(dumps(read_xml(written))) == resource


def test_the_schema_of_hl7_is_not_blind() -> None:
    assert faults(xml('<gender value="x"/>'))
    assert faults(xml('<gender value="male"/><active value="true"/>'))
