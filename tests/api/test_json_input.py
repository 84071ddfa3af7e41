from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import time
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fhirpub
import fhirpub_diagnosticreport
from fhirpub.errors import InvalidContent
from fhirpub.fhir.narrative import narrative_problem
from fhirpub.fhir.search_value import token_of, values_of
from fhirpub.fhir.strict_json import MAX_DEPTH, MAX_NODES, dumps, loads, loads_stored
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.testing.service import Answer, Integrator
from fhirpub.web.routes import Router
from tests.bodies import register_body
from tests.collector import without_collector

REGISTER = "/fhir/r4/DiagnosticReport/$register"

# Texts that are valid by RFC 8259, and that every parser reads alike.

GOOD = [
    b"{}",
    b"[]",
    b'""',
    b"0",
    b"-0",
    b"1",
    b"-1",
    b"10",
    b"1.5",
    b"-1.5",
    b"0.1",
    b"0.10",
    b"1e5",
    b"1E5",
    b"1e+5",
    b"1e-5",
    b"1.50e10",
    b"1e0",
    b"1e00",
    b"0e1",
    b"0.0",
    b"-0.0",
    b"9007199254740993",
    b"0.30000000000000000000000000000004",
    b"true",
    b"false",
    b"null",
    b" {} ",
    b"\t[\r\n]\n",
    b"\xef\xbb\xbf{}",
    b'{"a":1}',
    b'{"a":1,"b":2}',
    b'{"a" : 1 , "b" : 2}',
    b'{"a":{"a":{"a":1}}}',
    b'{"":""}',
    b'{" a":1,"a":2}',
    b'{"a":1,"A":2}',
    b'{"\xc3\xa9":1,"e\xcc\x81":2}',
    b'{"__proto__":{}}',
    b'{"a.b":{"$where":1}}',
    b"[1,[2,[3]]]",
    b"[null,true,false]",
    b'[1,"1",1.0]',
    b'["a","a"]',
    b'[{"a":1},{"a":1}]',
    b'" "',
    b'"a\\"b"',
    b'"\\\\"',
    b'"\\/"',
    b'"/"',
    b'"\\n\\r\\t"',
    b'"\\u00e9"',
    b'"\\u00E9"',
    b'"\\u2028\\u2029"',
    b'"\\ud83d\\ude00"',
    b'"\xf0\x9f\x98\x80"',
    b'"\xc3\xa9"',
    b'"\xe2\x80\xa8"',
    b'"\xf4\x8f\xbf\xbf"',
    b'"\x7f"',
    b'"\\\\u0000"',
    b'"\\\\ud800"',
    b'"NaN"',
    b'"/* */ // #"',
]

# Texts that are invalid by RFC 8259, or that parsers read differently.

BAD = [
    b"",
    b'"\xef\xbf\xbf"',
    b'"\\uFFFE"',
    b" ",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[",
    b"]",
    b"[}",
    b"{]",
    b"[[]",
    b"[]]",
    b"{}{}",
    b"{} []",
    b"[],",
    b",",
    b":",
    b"[,]",
    b"[1,]",
    b"[,1]",
    b"[1,,2]",
    b"[1 2]",
    b"[1:2]",
    b"[1;2]",
    b"(1)",
    b"1 2",
    b"{,}",
    b'{"a"}',
    b'{"a":}',
    b'{"a":1,}',
    b'{,"a":1}',
    b'{"a":1,,"b":2}',
    b'{"a"::1}',
    b'{"a" 1}',
    b'{"a"=1}',
    b'{"a":1:2}',
    b'{"a":1 "b":2}',
    b"{a:1}",
    b"{'a':1}",
    b"{1:1}",
    b"{null:1}",
    b'{["a"]:1}',
    b'{"a":1}}',
    b'{"a":1}x',
    b'{"a":1}\0',
    b'{"a":1}#',
    b'{"a":1,"a":1}',
    b'{"a":1,"b":2,"a":3}',
    b'{"a":1,"\\u0061":2}',
    b'[[{"a":{"b":1,"b":1}}]]',
    b'{"":1,"":2}',
    b"/**/{}",
    b"{}//",
    b"#\n{}",
    b'{/**/"a":1}',
    b"True",
    b"TRUE",
    b"tru",
    b"truee",
    b"nul",
    b"None",
    b"undefined",
    b"NaN",
    b"-NaN",
    b"[NaN]",
    b"Infinity",
    b"-Infinity",
    b"+Infinity",
    b"inf",
    b"+1",
    b"01",
    b"-01",
    b"00",
    b".5",
    b"-.5",
    b"5.",
    b"1.e1",
    b"1e",
    b"1e+",
    b"1e1.5",
    b"1e999",
    b"-1e999",
    b"1e99999999999999999999",
    b"0x1",
    b"0b1",
    b"1_000",
    b"1,000",
    b"- 1",
    b"--1",
    b"1-1",
    b"1a",
    b"1.2.3",
    b"\xd9\xa1",
    b"\xef\xbc\x91",
    b'"',
    b'"a',
    b"'a'",
    b"a",
    b'"a""b"',
    b'"\n"',
    b'"\t"',
    b'"\r"',
    b'"\0"',
    b'"\x01"',
    b'"\x1f"',
    b'"\\"',
    b'"\\x41"',
    b'"\\a"',
    b'"\\\'"',
    b'"\\\n"',
    b'"\\u"',
    b'"\\u1"',
    b'"\\u123"',
    b'"\\u12g4"',
    b'"\\U00e9"',
    b'"\\u+123"',
    b'"\\u0000"',
    b'"\\u0001"',
    b'"\\u001F"',
    b'"\\u001b[31m"',
    b'"\\b"',
    b'"\\f"',
    b'"\\u000b"',
    b'{"\\u0000":1}',
    b'{"a":["\\u0000"]}',
    b'"\\ud800"',
    b'"\\udc00"',
    b'"\\ud800\\ud800"',
    b'"\\udc00\\ud800"',
    b'"\\ud800x"',
    b'"\\ud800\\n"',
    b'{"\\ud800":1}',
    b'"\xff"',
    b'"\x80"',
    b'"\xc3"',
    b'"\xc0\xaf"',
    b'"\xe0\x80\xaf"',
    b'"\xed\xa0\x80"',
    b'"\xed\xa0\xbd\xed\xb8\x80"',
    b'"\xf4\x90\x80\x80"',
    b'"\xf8\x88\x80\x80\x80"',
    b'"\xe9"',
    b"\xff{}",
    b"\xef\xbb{}",
    b"\xef\xbb\xbf\xef\xbb\xbf{}",
    b"{}\xef\xbb\xbf",
    b"\xc2\xa0{}",
    b"\xe2\x80\xa8{}",
    b"\x0b{}",
    b"\x0c{}",
    b"\0{}",
    "{}".encode("utf-16"),
    "{}".encode("utf-16-le"),
    "{}".encode("utf-16-be"),
    "{}".encode("utf-32"),
    "{}".encode("utf-32-le"),
    '{"a":"é"}'.encode("latin-1"),
    b"<a/>",
    b"resourceType: Patient",
]


def refusal_of(text: bytes) -> str:
    """Return the reason why a text is refused, or nothing."""
    try:
        loads(text)
    except InvalidContent as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("text", GOOD)
def test_a_good_text_means_what_python_reads_in_it(text: bytes) -> None:
    value = loads(text)

    plain = text.removeprefix(b"\xef\xbb\xbf").decode()
    assert json.loads(dumps(value), parse_float=Decimal) == json.loads(plain, parse_float=Decimal)


@pytest.mark.parametrize("text", BAD)
def test_a_bad_text_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidContent):
        loads(text)


@pytest.mark.parametrize(
    "number",
    [
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "123456789012345678901234567890",
        "0.1",
        "0.10",
        "1.000",
        "100.0",
        "-0.0",
        "-0",
        "0.0000001",
        "0.0000000",
        "1e2",
        "1E+2",
        "1e+23",
        "1.0e0",
        "1e00",
        "1.50e10",
        "100e-2",
        "1e-999",
        "2.50E-7",
        "0.1000000000000000055511151231257827",
        "12345678901234567.5",
        f"0.{'1' * 400}",
        f"1.{'0' * 400}",
        f"3.{'14159' * 80}",
    ],
)
def test_a_number_keeps_its_digits(number: str) -> None:
    assert dumps(loads(number.encode())) == number.encode()


@pytest.mark.parametrize("number", ["1e400", "-1e309", "9" * 310])
def test_a_number_that_is_infinite_to_many_is_refused(number: str) -> None:
    assert "JSON" in refusal_of(number.encode())


@pytest.mark.parametrize("digits", [310, 4299, 4300, 4301, 100_000])
def test_an_integer_beyond_all_measure_is_refused_or_kept(digits: int) -> None:
    text = b"7" * digits

    refusal = refusal_of(text)

    assert "JSON" in refusal if refusal else dumps(loads(text)) == text


@pytest.mark.parametrize(
    ("opening", "closing"), [(b"[[", b"]]"), (b'{"a":{"a":', b"}}"), (b'[{"a":', b"}]")]
)
def test_nesting_is_read_down_to_the_limit_and_no_deeper(opening: bytes, closing: bytes) -> None:
    pairs = MAX_DEPTH // 2

    assert loads(opening * pairs + b"1" + closing * pairs)
    with pytest.raises(InvalidContent, match="deeper than 64"):
        loads(opening * pairs + b"[]" + closing * pairs)


@pytest.mark.parametrize("levels", [65, 100, 254, 255, 1000, 1024, 1025, 20_000])
def test_nesting_of_any_depth_is_refused_in_the_same_words(levels: int) -> None:
    with pytest.raises(InvalidContent, match=r"deeper than 64|not valid JSON"):
        loads(b"[" * levels + b"]" * levels)


@pytest.mark.parametrize("value", [b"1", b"[]", b"{}", b'""', b"null"])
def test_a_hundred_thousand_values_are_read_and_no_more(value: bytes) -> None:
    within = b"[%b%b]" % (value, (b"," + value) * (MAX_NODES - 2))

    assert len(loads(within)) == MAX_NODES - 1
    with pytest.raises(InvalidContent, match="too many values"):
        loads(b"[%b%b]" % (value, (b"," + value) * MAX_NODES))


@pytest.mark.parametrize("text", ["{", "[", ",", '\\"[', "\\\\{"])
def test_what_stands_in_a_string_is_no_value(text: str) -> None:
    body = b'{"a":"%b","b":[]}' % (text.encode() * (MAX_NODES + 1))

    assert loads(body) == json.loads(body)


def test_what_is_stored_is_read_whatever_it_holds() -> None:
    values: list[list[int]] = [[]] * (MAX_NODES + 1)

    assert loads_stored(dumps(values)) == values


def test_a_report_whose_words_are_brackets_can_be_found_and_updated(lab: Integrator) -> None:
    registered = lab.register(register_body("J-1", conclusion="{" * (MAX_NODES + 1)))
    assert registered.status == 201
    path = registered.headers["location"].partition("/_history")[0]
    path = path.removeprefix(lab.service.base_url)

    found = lab.get("/fhir/r4/DiagnosticReport")
    updated = lab.request("PATCH", path, {"resourceType": "DiagnosticReport", "status": "amended"})

    assert (found.status, found.json["total"], updated.status) == (200, 1, 204)


def test_members_of_objects_count_as_values() -> None:
    with pytest.raises(InvalidContent, match="too many values"):
        loads(dumps({f"n{number}": number for number in range(MAX_NODES + 1)}))


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"{}," * 3_400_000 + b"{}]",
        b"[" * 10_000_000,
        b'{"a":' * 2_000_000,
        b"[" + b"7" * 10_000_000 + b"]",
        b"[" + b"7" * 4300 + (b"," + b"7" * 4300) * 2400 + b"]",
        b"[" + b"1.5," * 2_500_000 + b"1]",
        b'"' + b"\\u0041" * 1_600_000 + b'"',
        b'"' + b"\\" * 10_000_000 + b'"',
        b" " * 10_000_000,
    ],
    ids=[
        "objects",
        "open",
        "open objects",
        "digits",
        "integers",
        "decimals",
        "escapes",
        "\\",
        " ",
    ],
)
def test_ten_megabytes_of_malice_are_validated_quickly(text: bytes) -> None:
    started = time.process_time()

    refusal = refusal_of(text)

    assert time.process_time() - started < 4
    assert len(refusal) < 150


def test_a_refusal_names_the_place_and_nothing_of_the_text() -> None:
    with pytest.raises(InvalidContent) as refused:
        loads(b'{\n"name": "Canary", }')

    assert "line 2" in str(refused.value)
    assert "Canary" not in str(refused.value)


# The same over HTTP (D-70, D-140).


def sent(lab: Integrator, text: str | bytes) -> Answer:
    return lab.request("POST", REGISTER, text.encode() if isinstance(text, str) else text)


def with_text(value: str, **places: str) -> str:
    """Return a registration with marks replaced by pieces of JSON text."""
    text = json.dumps(register_body(value, conclusion="@conclusion@"))
    for mark, piece in places.items():
        assert f'"@{mark}@"' in text
        text = text.replace(f'"@{mark}@"', piece)
    return text


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"Parameters"',
        b"1",
        '{"resourceType":"Parameters"}'.encode("utf-16"),
        b'{"resourceType":"Parameters","resourceType":"Parameters"}',
        b'{"resourceType":"Parameters","a":NaN}',
        b'{"resourceType":"Parameters","a":1e999}',
        b'{"resourceType":"Parameters","a":"\\ud800"}',
        b'{"resourceType":"Parameters","a":"\xff"}',
        b"[" * 65 + b"]" * 65,
        b"[" + b"1," * MAX_NODES + b"1]",
        b"[" + b"{}," * 3_400_000 + b"{}]",
        b"[" + b"7" * 4300 + b"]",
        b"[" * 1_000_000,
    ],
    ids=lambda text: repr(text[:40]),
)
def test_a_body_that_no_two_readers_agree_on_is_a_400(lab: Integrator, text: bytes) -> None:
    answer = sent(lab, text)

    assert (answer.status, answer.issues[0]["code"]) == (400, "exception")


def test_a_byte_order_mark_is_ignored(lab: Integrator) -> None:
    assert sent(lab, b"\xef\xbb\xbf" + dumps(register_body("A"))).status == 201


@pytest.mark.parametrize(
    "piece",
    [
        r'"a\u0000b"',
        r'"a\u0007b"',
        r'"a\u001bb"',
        r'"\b"',
        r'"\ud800"',
        '"a\0b"',
        "null",
        "{}",
        "[]",
        '""',
        "1",
        "true",
        '["a"]',
        '{"$gt":""}',
    ],
)
def test_a_conclusion_that_is_no_text_is_a_400(lab: Integrator, piece: str) -> None:
    answer = sent(lab, with_text("A", conclusion=piece))

    assert (answer.status, answer.issues[0]["code"]) == (400, "exception")


@pytest.mark.parametrize(
    "key",
    [
        "$where",
        "$gt",
        "a.b",
        "__proto__",
        "constructor",
        "prototype",
        "toString",
        "",
        " ",
        "a",
        "conclusion ",
        "Conclusion",
        "_id",
        "_class",
        "fhir_comments",
        "@type",
        "#text",
        "constructor.prototype",
        "\N{ZERO WIDTH SPACE}conclusion",
        "x" * 10_000,
    ],
)
@pytest.mark.parametrize("place", ["entry", "report", "coding", "patient"])
def test_a_name_that_r4_does_not_have_is_a_400(lab: Integrator, place: str, key: str) -> None:
    body = register_body("A")
    patient, report = body["parameter"][0]["resource"], body["parameter"][2]["resource"]
    target: dict[str, Any] = {
        "entry": body["parameter"][0],
        "report": report,
        "coding": report["category"][0]["coding"][0],
        "patient": patient,
    }[place]
    target[key] = "x"

    answer = sent(lab, json.dumps(body))

    assert (answer.status, answer.issues[0]["code"]) == (400, "exception")
    assert len(answer.body) < 8192


@pytest.mark.parametrize("count", [str(2**31), str(2**63), "1" * 300, "1.5", "-1", "1e2", '"1"'])
def test_a_count_that_r4_does_not_have_is_a_400(lab: Integrator, count: str) -> None:
    body = register_body("A", extension=[{"url": "https://x.example", "valuePositiveInt": "@n@"}])

    assert sent(lab, json.dumps(body).replace('"@n@"', count)).status == 400


NUMBERS = ["1.10", f"1.{'0' * 400}", "-0.0", "12345678901234567.5"]
NUMBERS += ["0.0000001", "1.0e0", "1e+23", "1E5", "-0", "1e-999"]


def with_number(number: str, value: str) -> str:
    """Return a body with a number in the report, in a data type and in a contained resource."""
    quantity = {"url": "https://x.example", "valueQuantity": {"value": "@n@"}}
    place = {"resourceType": "Location", "id": "l", "position": dict.fromkeys(POSITION, "@n@")}
    extension = [
        {"url": "https://x.example", "valueDecimal": "@n@"},
        quantity,
        {"url": "https://x.example", "valueReference": {"reference": "#l"}},
    ]
    body = register_body(value, contained=[place], extension=extension)
    return json.dumps(body).replace('"@n@"', number)


POSITION = ("longitude", "latitude")


def counted(body: bytes, number: str) -> int:
    """Return how often a number stands in JSON or XML just as it was sent."""
    return len(re.findall(rf'[:"]{re.escape(number)}[,}}"]'.encode(), b"".join(body.split())))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_reads_back_character_by_character(lab: Integrator, number: str) -> None:
    created = sent(lab, with_number(number, "A"))
    assert created.status == 201, created.body
    path = created.headers["location"].removesuffix("/_history/1")

    for query in ("", "?_pretty=true", "?_format=xml", "?_summary=data", "/_history"):
        assert counted(lab.get(path + query).body, number) == 4, query
    found = lab.get("/fhir/r4/DiagnosticReport?identifier=A&_format=xml")
    assert counted(found.body, number) == 4


@pytest.mark.parametrize(
    ("form", "change"),
    [
        ("application/fhir+json", {"resourceType": "DiagnosticReport", "conclusion": "x"}),
        ("application/merge-patch+json", {"conclusion": "x"}),
        (
            "application/json-patch+json",
            [
                {"op": "test", "path": "/extension/0/valueDecimal", "value": 10},
                {"op": "add", "path": "/conclusion", "value": "x"},
            ],
        ),
    ],
)
@pytest.mark.parametrize("number", ["10.0e0", "1E+1", "0.00000100e7"])
def test_an_update_of_something_else_leaves_a_number_as_it_is(
    lab: Integrator, number: str, form: str, change: Any
) -> None:
    created = sent(lab, with_number(number, "A"))
    path = created.headers["location"].removesuffix("/_history/1")

    answer = lab.request("PATCH", path, change, {"Content-Type": form})

    assert answer.status == 204, answer.body
    assert counted(lab.get(path).body, number) == 4


@pytest.mark.parametrize("number", ["1.0e0", "1E+5", "0.0000001", "-0"])
def test_a_number_of_xml_reads_back_character_by_character(lab: Integrator, number: str) -> None:
    body = register_body("A", extension=[{"url": "https://x.example", "valueDecimal": 7.25}])
    xml = write_xml(body).replace(b'"7.25"', f'"{number}"'.encode())
    created = lab.request(
        "POST",
        "/fhir/r4/DiagnosticReport/$register",
        xml,
        {"Content-Type": "application/fhir+xml"},
    )
    assert created.status == 201, created.body

    for kind in ("application/fhir+json", "application/fhir+xml"):
        read = lab.get(created.headers["location"], Accept=kind)
        assert counted(read.body, number) == 1


def test_a_wrong_number_is_refused_in_whatever_form(lab: Integrator) -> None:
    timing = {"repeat": {"duration": "@n@", "durationUnit": "h"}}
    body = register_body("A", extension=[{"url": "https://x.example", "valueTiming": timing}])

    answer = sent(lab, json.dumps(body).replace('"@n@"', "-1.0e0"))

    assert answer.status == 400, answer.body
    assert answer.issue_expressions == {
        "Parameters.parameter[2].resource.extension[0].value.repeat.duration"
    }


# Narratives (txt-1, D-68).


def div(content: str) -> str:
    return f'<div xmlns="http://www.w3.org/1999/xhtml">{content}</div>'


HARMFUL = [
    "<script>alert(1)</script>",
    "<SCRIPT>alert(1)</SCRIPT>",
    '<s:script xmlns:s="http://www.w3.org/1999/xhtml">x</s:script>',
    '<x:script xmlns:x="urn:x">x</x:script>',
    '<svg xmlns="http://www.w3.org/2000/svg" onload="x">a</svg>',
    '<svg xmlns="http://www.w3.org/2000/svg"><script>x</script></svg>',
    '<math xmlns="http://www.w3.org/1998/Math/MathML"><mi>x</mi></math>',
    '<p xmlns="urn:x">a</p>',
    *(
        f"<{name}>a</{name}>"
        for name in (
            "iframe object embed applet form input button textarea select link meta base style"
            " title head body html video audio template noscript portal marquee slot x-y"
        ).split()
    ),
    *(
        f'<p {name}="x">a</p>'
        for name in (
            "onclick ONCLICK onload onerror onmouseover onfocus formaction action background"
            " srcdoc srcset poster ping target download is nonce"
        ).split()
    ),
    '<img src="https://x.example/a" onerror="x"/>',
    *(
        f'<a href="{link}">a</a>'
        for link in (
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            " javascript:alert(1)",
            "\tjavascript:alert(1)",
            "java\tscript:alert(1)",
            "java&#9;script:alert(1)",
            "java&#10;script:alert(1)",
            "java&#xD;script:alert(1)",
            "java&Tab;script:alert(1)",
            "java&NewLine;script:alert(1)",
            "javascript&colon;alert(1)",
            "javascript&#58;alert(1)",
            "javascript&#x3a;alert(1)",
            "&#106;avascript:alert(1)",
            "&#x6A;avascript:alert(1)",
            "&#0000106avascript:alert(1)",
            "&#1;javascript:alert(1)",
            "vbscript:x",
            "livescript:x",
            "data:text/html,x",
            "data:text/html;base64,PHNjcmlwdD4=",
            "data:image/svg+xml;base64,PHN2Zz4=",
            "data:,x",
            "file:///etc/passwd",
            "blob:https://x.example/a",
            "view-source:javascript:x",
            "feed:javascript:x",
            "jar:https://x.example!/",
            "filesystem:x",
            "ftp://x.example",
            "https:javascript:x",
        )
    ),
    '<img src="javascript:x" alt="x"/>',
    '<blockquote cite="javascript:x">a</blockquote>',
    '<img src="https://x.example/a" longdesc="javascript:x"/>',
    '<a xlink:href="javascript:x" xmlns:xlink="http://www.w3.org/1999/xlink">a</a>',
    '<a xml:base="javascript:" href="#x">a</a>',
    '<p style="width:expression(alert(1))">a</p>',
    '<p style="WIDTH:EXPRESSION (alert(1))">a</p>',
    '<p style="background:url(https://x.example/a)">a</p>',
    '<p style="background:&#117;rl(x)">a</p>',
    r'<p style="background:\75rl(x)">a</p>',
    '<p style="-moz-binding:url(x)">a</p>',
    "<p style=\"@IMPORT 'x'\">a</p>",
    "<![CDATA[<script>x</script>]]>",
    "<?php x ?>a",
    '<?xml-stylesheet href="x"?>a',
    "<!--[if IE]><script>x</script><![endif]-->a",
    '<!DOCTYPE x [<!ENTITY e "x">]>a',
    "<p>a",
    "<p>a</b>",
    "a & b",
    "a < b",
    "<p a=b>a</p>",
    '<p id="a" id="b">a</p>',
    "<p><",
    "a\0b",
    "a\x1bb",
    "a\ufffeb",
    " ",
    "<p> </p>",
    "<!-- only this -->",
]


@pytest.mark.parametrize("content", HARMFUL)
def test_a_narrative_that_could_do_something_is_refused(content: str) -> None:
    assert narrative_problem(div(content))


@pytest.mark.parametrize(
    "content",
    [
        "a",
        "<p>a <b>b</b> <i>c</i></p>",
        "<table><tbody><tr><td colspan='2'>a</td></tr></tbody></table>",
        "<ul><li>a</li></ul>",
        '<a href="https://x.example/a?b=c&amp;d=e">a</a>',
        '<a href="#here" name="here">a</a>',
        '<a href="Patient/1">a</a>',
        '<a href="mailto:a@x.example">a</a>',
        '<a href="tel:+34911">a</a>',
        '<img src="data:image/png;base64,iVBORw0KGgo=" alt="x"/>',
        '<p style="color:red;font-weight:bold" class="x" title="y">a</p>',
        '<p lang="es" xml:lang="es">a</p>',
        "a&nbsp;b &eacute; &lt;script&gt; &#233;",
        "<!-- a note -->a",
        "<pre>a\n  b</pre>",
        "javascript:alert(1)",
    ],
)
def test_a_narrative_that_only_shows_something_is_fine(content: str) -> None:
    assert narrative_problem(div(content)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "<div>a</div>",
        '<div xmlns="urn:x">a</div>',
        '<p xmlns="http://www.w3.org/1999/xhtml">a</p>',
        '<!DOCTYPE div><div xmlns="http://www.w3.org/1999/xhtml">a</div>',
        '<!DOCTYPE div [<!ENTITY a "b">]><div xmlns="http://www.w3.org/1999/xhtml">&a;</div>',
        '<!DOCTYPE d SYSTEM "file:///etc/passwd"><div xmlns="http://www.w3.org/1999/xhtml">a</div>',
        '<?xml version="1.0"?><div xmlns="http://www.w3.org/1999/xhtml">a</div>',
        '<div xmlns="http://www.w3.org/1999/xhtml">a</div><div/>',
    ],
)
def test_a_narrative_is_one_div_and_nothing_else(text: str) -> None:
    assert narrative_problem(text)


@pytest.mark.parametrize(
    "text",
    [
        div("<b>" * 200_000 + "a" + "</b>" * 200_000),
        div("<b>" * 200_000),
        div("&nbsp;" * 150_000),
        div("&" * 1_000_000),
        div("&a" * 500_000),
        div("<!--" * 250_000),
        div("<a href='" + " " * 1_000_000 + "javascript:x'>a</a>"),
        div("<p style='" + "url " * 250_000 + "'>a</p>"),
        "<" * 1_000_000,
        "<div" * 250_000,
        div("".join(f'<b xmlns:n{n}="u">' for n in range(200)) + "a" + "</b>" * 200),
    ],
    ids=lambda text: text[40:60],
)
def test_a_narrative_of_a_megabyte_is_validated_quickly(text: str) -> None:
    started = time.process_time()

    narrative_problem(text)

    assert time.process_time() - started < 4


def test_a_narrative_with_many_attributes_is_validated_quickly() -> None:
    attributes = " ".join(f"a{number}='x'" for number in range(40_000))
    text = div(f"<p {attributes}>a</p>")
    started = time.process_time()

    assert narrative_problem(text)

    assert time.process_time() - started < 4


@pytest.mark.parametrize("content", ["<script>x</script>", "<p onclick='x'>a</p>", "<b>" * 300])
def test_a_harmful_narrative_is_a_400(lab: Integrator, content: str) -> None:
    answer = lab.register(register_body("A", text={"status": "generated", "div": div(content)}))

    assert answer.status == 400
    assert answer.issue_expressions == {"Parameters.parameter[2].resource.text.div"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('<p style="position:fixed">a</p>', "position fixed, sticky or absolute"),
        ('<p>a <img src="//x.example/a" alt="x"/></p>', "an image from another server"),
    ],
)
def test_a_narrative_that_covers_or_loads_something_is_accepted_with_a_warning(
    lab: Integrator, content: str, words: str
) -> None:
    narrative = {"text": {"status": "generated", "div": div(content)}}

    answer = lab.register(register_body("A", **narrative))

    at = "Parameters.parameter[2].resource.text.div"
    assert answer.status == 201
    assert [at] == [place for place, text in warnings_of(answer) if words in text]


def test_each_narrative_that_loads_something_gets_its_own_warning(lab: Integrator) -> None:
    narrative = {
        "status": "generated",
        "div": div('<p>a <img src="https://x.example/a" alt="x"/></p>'),
    }
    body = register_body("A")
    body["parameter"][0]["resource"]["text"] = narrative
    inner = {"resourceType": "Basic", "id": "b", "code": {"text": "x"}, "text": narrative}
    body["parameter"][2]["resource"] |= {
        "contained": [inner],
        "extension": [{"url": "https://x.example", "valueReference": {"reference": "#b"}}],
    }

    answer = lab.register(body)

    places = [place for place, text in warnings_of(answer) if "an image" in text]
    assert sorted(places) == [
        "Parameters.parameter[0].resource.text.div",
        "Parameters.parameter[2].resource.contained[0].text.div",
    ]


def warnings_of(answer: Answer) -> list[tuple[str, str]]:
    """Return the place and the text of each warning of a business rule."""
    issues = answer.json["parameter"][1]["resource"]["issue"]
    return [
        (issue["expression"][0], issue["diagnostics"])
        for issue in issues
        if (issue["severity"], issue["code"]) == ("warning", "business-rule")
    ]


# Regular expressions: no match takes quadratic time.

LENGTH = 20_000
"""For text of this length a time that grows with its square is a quarter of a second."""
UNITS = (
    *"aAzZ0 9\t\n\\,|$\"'/.-:;=&<>+_(%*#!?~é\0",
    *("\\,", "\\\\", ",\\", "a ", " a", "a.", "a/", "a=", "a:", "&a", "<a", 'a="', '";', ', "'),
    *(
        "url",
        "url ",
        "url(",
        "aA",
        "01",
        "0.",
        "-0",
        "\\u0000",
        "$.",
        "W/",
        'W/"',
        "a;",
        " ;",
        ";a",
    ),
)
BEGINNINGS = ("", 'a="', "a/", '"', "&", "url", "basic ", "\\u0000")
ENDS = ("", "\0")
_MAX_SECONDS = 0.25


def modules() -> Iterator[ModuleType]:
    for package in (fhirpub, fhirpub_diagnosticreport):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def patterns() -> dict[str, tuple[re.Pattern[Any], set[str]]]:
    """Return every pattern with the methods that its module, or one that imports it, calls."""
    found = [
        (module, name, value)
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern)
    ]
    used: dict[re.Pattern[Any], set[str]] = {}
    for module, name, pattern in found:
        used.setdefault(pattern, set()).update(_methods(name, inspect.getsource(module)))
    return {
        f"{module.__name__}.{name}": (
            pattern,
            _methods(name, inspect.getsource(module)) or used[pattern] or ANY_METHOD,
        )
        for module, name, pattern in found
    }


ANY_METHOD = {"match", "fullmatch", "search"}
"""A pattern that is passed on may be used in any way."""


def _methods(name: str, source: str) -> set[str]:
    """Return how a module uses a pattern."""
    return set(re.findall(rf"\b{name}\.([a-z]+)\b", source))


# The first reads only text that _LONE_BACKSLASH has accepted; other text takes quadratic time. The
# second reads what plugins declare, never what is sent.
GUARDED = {"fhirpub.fhir.search_value._PIECE", "fhirpub.plugin_host.operations._MEDIA_TYPE"}
PATTERNS = patterns()
SCHEMAS = Path(__file__).parents[2] / "schemas" / "r4"


def slowest(pattern: re.Pattern[Any], methods: set[str]) -> tuple[float, str]:
    """Return the longest time of one use, and the text that took it."""
    worst = (0.0, "")
    for beginning, unit, end in product(BEGINNINGS, UNITS, ENDS):
        text: Any = beginning + unit * (LENGTH // len(unit)) + end
        text = text.encode() if isinstance(pattern.pattern, bytes) else text
        for method in methods:
            seconds = _time_of(pattern, method, text)
            if seconds > _MAX_SECONDS:  # maybe because others use the machine
                seconds = min(seconds, _time_of(pattern, method, text))
            worst = max(worst, (seconds, f"{method} of {beginning!r}, {unit!r}, {end!r}"))
        if worst[0] > _MAX_SECONDS:
            break
    return worst


def _time_of(pattern: re.Pattern[Any], method: str, text: Any) -> float:
    with without_collector():
        started = time.thread_time()
        if method == "sub":
            pattern.sub(text[:0], text)
        elif method == "finditer":
            deque(pattern.finditer(text), maxlen=0)  # the matches are not what is measured
        else:
            getattr(pattern, method)(text)
        return time.thread_time() - started


def test_the_sweep_knows_every_pattern_and_how_it_is_used() -> None:
    assert len(PATTERNS) > 30
    assert set(PATTERNS) >= GUARDED
    known = {"match", "fullmatch", "search", "findall", "finditer", "sub", "split"}
    assert {name for name, (_, methods) in PATTERNS.items() if not methods <= known} == set()


@pytest.mark.parametrize("name", sorted(set(PATTERNS) - GUARDED))
def test_no_pattern_is_slow_on_a_hostile_text(name: str) -> None:
    pattern, methods = PATTERNS[name]

    seconds, text = slowest(pattern, methods)

    assert seconds < _MAX_SECONDS, text


def test_no_search_value_is_slow_to_read() -> None:
    for beginning, unit, end in product(BEGINNINGS, UNITS, ENDS):
        text = beginning + unit * (LENGTH // len(unit)) + end
        with without_collector():
            started = time.thread_time()

            for value in values_of(text) or ():
                token_of(value)

            took = time.thread_time() - started
        assert took < 4 * _MAX_SECONDS, (beginning, unit, end)


def test_no_route_is_slow_on_a_hostile_path(lab: Integrator) -> None:
    service: Any = lab.service

    router = Router(service.services)
    for path in [*router._plain.values(), *router._patterns]:
        seconds, text = slowest(path.pattern, {"fullmatch"})

        assert seconds < _MAX_SECONDS, (path.pattern.pattern, text)


def test_no_pattern_of_the_schemas_is_slow_on_a_hostile_text() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(SCHEMAS.glob("*.json"))]
    found = {pattern for text in texts for pattern in _patterns_in(json.loads(text))}

    assert len(found) > 5
    for name in found:
        seconds, text = slowest(re.compile(name), {"search"})

        assert seconds < _MAX_SECONDS, (name, text)


def _patterns_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        pattern = value.get("pattern")
        yield from [pattern] if isinstance(pattern, str) else []
        yield from value.get("patternProperties", {})
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _patterns_in(item)
