"""Any input is stored exactly as sent or refused with a useful reason: no fault, no hang.

With ``HYPOTHESIS=long`` in the environment there are far more examples, new ones each time.
"""

from __future__ import annotations

import copy
import http.client
import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from fhirpub.config.loader import variable
from fhirpub.fhir.schema import own_schemas
from fhirpub.fhir.strict_json import dumps
from fhirpub.fhir.xml.reader import read_xml
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import document, organization, parameters, patient, register_body, report
from tests.strategies import resource_of

_LONG = variable("HYPOTHESIS") == "long"
_REGISTER = "/fhir/r4/DiagnosticReport/$register"
_MAX_SECONDS = 60
_CANARY = "C4N4RY"
_LOCAL = {"Patient/p1", "Organization/o1"}
_HELD = re.compile(r"(Patient|Organization)/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f-]{21}")
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)?")
_TIMES = {"effectiveDateTime", "issued", "creation", "start", "end"}
_ISSUE_SEVERITIES = {"fatal", "error", "warning", "information"}
_schemas = own_schemas()
_numbers = itertools.count(10**9)  # all of one length, because draws depend on it


def tried(examples: int) -> settings:
    """Return the settings for a number of examples; unless long, the same ones each time."""
    return settings(
        max_examples=examples * (30 if _LONG else 1),
        derandomize=not _LONG,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


class Wire:
    """A persistent connection, and a time limit for each response."""

    def __init__(self, lab: Integrator, port: int) -> None:
        self.lab = lab
        self.registered: dict[str, bytes] = {}
        self._port = port
        self._connection = self._new()

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        given_headers = {"Authorization": f"Bearer {self.lab.token}"}
        if body is not None:
            given_headers["Content-Type"] = "application/fhir+json"
        given_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        begun = time.monotonic()
        try:
            self._connection.request(method, path, body, given_headers)
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            self._connection = self._new()
            raise
        assert time.monotonic() - begun < _MAX_SECONDS
        read = {name.lower(): value for name, value in response.getheaders()}
        answer = Answer(response.status, read, content)
        check_answer(answer)
        return answer

    def close(self) -> None:
        self._connection.close()

    def _new(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=_MAX_SECONDS)


@pytest.fixture(scope="module")
def wire(service: RunningService) -> Iterator[Wire]:
    kept = Wire(service.integrator(), service.port)
    yield kept
    kept.close()


def check_answer(answer: Answer) -> None:
    """Assert that a response is no fault, and that a refusal has a useful reason."""
    assert answer.status < 500, answer.body
    if answer.status < 400:
        return
    if not answer.body:  # of a HEAD request
        return
    in_xml = "xml" in answer.headers["content-type"]
    outcome = read_xml(answer.body) if in_xml else answer.json
    assert outcome["resourceType"] == "OperationOutcome"
    assert list(_schemas.problems("OperationOutcome", outcome)) == []
    assert outcome["issue"]
    for issue in outcome["issue"]:
        assert issue["severity"] in _ISSUE_SEVERITIES
        assert issue["diagnostics"] or issue["expression"]
    assert any(issue["severity"] == "error" for issue in outcome["issue"])
    assert _CANARY.encode() not in answer.body, "a refusal repeats what was sent"


# Requests


def mended(value: Any) -> Any:
    """Return a resource without the elements that are refused everywhere."""
    if isinstance(value, dict):
        whole = {name: mended(item) for name, item in value.items() if name not in _REFUSED}
        return mended_extension(whole) if "url" in value else whole
    if isinstance(value, list):
        return [mended(item) for item in value]
    return "urn:x:1" if value == "#x" else value


_REFUSED = {"modifierExtension", "implicitRules", "_implicitRules"}


def mended_extension(extension: dict[str, Any]) -> dict[str, Any]:
    """Return an extension that has either a value or extensions."""
    values = [name for name in extension if name.lstrip("_").startswith("value")]
    if "extension" in extension and values:
        return {name: item for name, item in extension.items() if name != "extension"}
    if "extension" in extension or values or not extension.keys() <= {"id", "url", "_url"}:
        return extension
    return extension | {"valueDecimal": Decimal("1.50")}


def mended_resource(resource: dict[str, Any]) -> dict[str, Any]:
    """Return a resource that references all its contained resources, if it has a place."""
    whole: dict[str, Any] = mended(resource)
    contained = whole.pop("contained", [])
    if contained and whole["resourceType"] == "DiagnosticReport":
        named = [item | {"id": f"c{index}"} for index, item in enumerate(contained)]
        references = [{"reference": f"#{item['id']}"} for item in named]
        whole |= {"contained": named, "resultsInterpreter": references}
        whole.pop("_resultsInterpreter", None)
    for telecom in whole.get("telecom", ()):
        telecom |= {"system": "email", "use": "work"}
        telecom.pop("_system", None)
        telecom.pop("_use", None)
    return whole


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Return a registration of a valid report, patient and organization with random elements."""
    sent_report = draw(resource_of("DiagnosticReport"))
    sent_patient = draw(resource_of("Patient"))
    sent_organization = draw(resource_of("Organization"))
    fixed: dict[str, Any] = report(f"fuzz-{next(_numbers)}")
    if any(name.lstrip("_").startswith("effective") for name in sent_report):
        del fixed["effectiveDateTime"]
    whole = mended_resource if draw(st.integers(0, 4)) else copy.deepcopy
    if draw(st.booleans()):
        sent_patient |= patient()
    sent_organization |= organization()
    del fixed["resourceType"]
    rest = {name: item for name, item in sent_report.items() if name.lstrip("_") not in fixed}
    return parameters(
        patient=whole(without_doubt(sent_patient)) | {"id": "p1"},
        organization=whole(without_doubt(sent_organization)) | {"id": "o1"},
        diagnosticReport=whole(rest) | fixed,
    )


def without_doubt(resource: dict[str, Any]) -> dict[str, Any]:
    """Remove the siblings of replaced elements: their numbers may not match."""
    return {
        name: item
        for name, item in resource.items()
        if not (name.startswith("_") and name[1:] in resource)
    }


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


_ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        10**17,
        Decimal(10**40),
        -(2**63),
        1e308,
        Decimal("1E400"),
        Decimal("1E-9999"),
        Decimal("-0.0"),
        Decimal("0." + "3" * 400),
        "",
        " ",
        "\t",
        "\u00a0",
        "\u202e\ufeff",
        "\x00",
        "\x00" + "a" * 64 + ".1",
        "\ud7ff\uffff\U0010ffff",
        _CANARY,
        f"https://{_CANARY}.example/\n",
        "💥" * 50,
        "%00%0a",
        "../../etc/passwd",
        "' OR 1=1 --",
        "<script>alert(1)</script>",
        "<div xmlns='http://www.w3.org/1999/xhtml'><p>&lol;</p></div>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        "2026-02-30",
        "9999-12-31T23:59:60Z",
        "0001-01-01T00:00:00+14:00",
        "2026-01-01T24:00:00Z",
        "http://[::1",
        "http://a]b/",
        "Patient/p1",
        "#p1",
        "#",
        "DiagnosticReport/r1",
        "QUJD",
        "QUJD\n",
        "=" * 9,
        {},
        [],
        [None],
        [[]],
        {"": ""},
        {"a": {"b": [{}]}},
        {"resourceType": "Patient"},
        {"resourceType": "Nonsense", "id": "c", "x": [1]},
        {"resourceType": ["Patient"]},
        {"resourceType": {}},
        {"reference": "#r1"},
        {"reference": {"reference": "#"}},
        {"extension": [{"url": "http://x.example"}]},
        {"extension": [{"url": "http://x.example", "valueString": "a", "valueCode": "b"}]},
        {"extension": [{"valueString": "a"}]},
        {"extension": {}},
        {"url": "http://x.example", "extension": [{"url": "y:y", "valueInteger": 1}]},
        [{"url": 1}],
        [{"system": "a", "value": ["b"]}],
        [{"resourceType": "Patient", "id": "p1"}, {"resourceType": "Patient", "id": "p1"}],
        [{"coding": [{"coding": []}]}],
        [{"coding": {}}],
        [{"data": "QUJD", "hash": 1}],
        [{"data": 1}],
        [{"data": "\x00" + "a" * 64 + ".1", "hash": ""}],
        {"start": "2026", "end": {}},
    ]
) | st.sampled_from(
    [
        lambda: "x" * 9_000,
        lambda: nested(50),
        lambda: nested(120),
        lambda: ["a"] * 500,
        lambda: [{} for _ in range(500)],
    ]
).map(lambda made: made())
_NAMES = st.sampled_from(
    [
        "resourceType",
        "id",
        "_id",
        "meta",
        "_meta",
        "text",
        "contained",
        "extension",
        "_extension",
        "modifierExtension",
        "implicitRules",
        "reference",
        "_reference",
        "identifier",
        "_status",
        "status",
        "code",
        "presentedForm",
        "_presentedForm",
        "__",
        "",
        "$",
        "a.b",
        "fhir_comments",
        "valueX",
        "effectivePeriod",
        "effectiveTiming",
        "ñ",
        "x" * 99,
        "resource",
        "name",
        "part",
        "valueString",
    ]
)
_OPERATIONS = ("replace", "replace", "replace", "delete", "add", "add", "wrap", "rename", "double")


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Return every place below a value: its holder, and its key or index."""
    found: list[tuple[Any, Any]] = []
    rest = [value]
    for item in rest:
        keys = list(item) if isinstance(item, dict) else range(len(item))
        for key in keys:
            found.append((item, key))
            if isinstance(item[key], (dict, list)):
                rest.append(item[key])
    return found


@st.composite
def broken(draw: st.DrawFn, sound: st.SearchStrategy[Any]) -> Any:
    """Return a valid body with one to three mistakes in it."""
    body = copy.deepcopy(draw(sound))
    for _ in range(draw(st.integers(1, 3))):
        places = places_in(body)
        if not places:
            return draw(_ODD)
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        break_at(draw, holder, key)
    return body


def break_at(draw: st.DrawFn, holder: Any, key: Any) -> None:
    operation = draw(st.sampled_from(_OPERATIONS))
    if operation == "delete":
        del holder[key]
    elif operation == "wrap":
        holder[key] = [holder[key]]
    elif operation == "double" and isinstance(holder, list):
        holder.append(holder[key])
    elif operation == "rename" and isinstance(holder, dict):
        holder[draw(_NAMES)] = holder.pop(key)
    elif operation == "add" and isinstance(holder[key], dict):
        holder[key][draw(_NAMES)] = copy.deepcopy(draw(_ODD))
    else:
        holder[key] = copy.deepcopy(draw(_ODD))


_PIECES = st.sampled_from(
    [
        b"NaN",
        b"Infinity",
        b"1e999999999",
        b"-",
        b"00",
        b"0x1",
        b'"\\ud800"',
        b"\\u0000",
        b"\\u0001",
        b"\xff",
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\x00",
        b"{" * 200,
        b"[" * 5000,
        b"}" * 10,
        b'"',
        b",",
        b":",
        b"/*x*/",
        b"null",
        b"'a'",
        b'"id":"a",',
        b'"resourceType":"Parameters",',
        b"9" * 5000,
        b" " * 1000,
        b"\\",
    ]
)


@st.composite
def torn(draw: st.DrawFn, sound: st.SearchStrategy[Any]) -> bytes:
    """Return the bytes of a valid body with some pieces cut out and others inserted."""
    raw = dumps(draw(sound))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(raw)))
        length = draw(st.sampled_from([0, 0, 1, 2, 10, len(raw)]))
        piece = draw(_PIECES | st.binary(max_size=4) | st.just(b""))
        raw = raw[:at] + piece + raw[at + length :]
    return raw


# Responses


class Number(str):
    """A number with its original digits."""

    __slots__ = ()


def exact(raw: bytes) -> Any:
    """Parse JSON without the parser under test, keeping every digit."""
    return json.loads(raw.removeprefix(b"\xef\xbb\xbf"), parse_float=Number, parse_int=Number)


def check_registered(wire: Wire, sent: bytes, answer: Answer) -> None:
    """Assert that the registered report is returned as it was sent, in every format."""
    path = answer.headers["location"].removeprefix(wire.lab.service.base_url)
    if path in wire.registered:
        return  # only the first registration of an identifier counts
    wire.registered[path] = sent
    resources = resources_in(exact(sent))
    read = wire.send("GET", path)
    assert read.status == 200
    check_same(resources["diagnosticReport"], exact(read.body))
    for name, element in (("patient", "subject"), ("organization", "performer")):
        held = wire.send("GET", f"/fhir/r4/{reference_in(read.json[element], name)}")
        assert held.status == 200
        check_same(resources[name], exact(held.body))
    check_lists(wire, path.partition("/_history")[0], read.json)


def check_lists(wire: Wire, path: str, read: Any) -> None:
    """Assert that history and search return it, and that it can be updated."""
    assert wire.send("GET", f"{path}/_history").json["total"] == 1
    one = read["identifier"][0]
    token = "|".join(escaped(one[name]) for name in ("system", "value"))
    found = wire.send("GET", f"/fhir/r4/DiagnosticReport?identifier={quote(token, safe='')}")
    assert found.json["total"] == 1
    patch = {"resourceType": "DiagnosticReport", "status": "amended"}
    patched = wire.send("PATCH", path, dumps(patch))
    if read.get("text", {}).get("status") != "additional":
        assert patched.status == 204, patched.body


def escaped(text: str) -> str:
    return re.sub(r"([\\,|$])", r"\\\1", text)


def resources_in(body: Any) -> dict[str, Any]:
    """Return the resources of a body by the names of their entries."""
    found = {}
    for entry in body["parameter"]:
        if entry["name"] in ("patient", "organization", "diagnosticReport"):
            found[entry["name"]] = entry["resource"]
            if "presentedForm" in entry:
                entry["resource"].setdefault("presentedForm", entry["presentedForm"])
    return found


def reference_in(element: Any, name: str) -> str:
    references = element if isinstance(element, list) else [element]
    literals = [reference.get("reference", "") for reference in references]
    return str(next(literal for literal in literals if literal.lower().startswith(name + "/")))


def check_same(sent: Any, read: Any) -> None:
    """Assert that a resource is returned as it was sent, but for elements of the service."""
    same = {name: item for name, item in sent.items() if name not in ("id", "_id", "meta")}
    ours = {name: item for name, item in read.items() if name not in ("id", "meta")}
    check_equal(same, ours, "")
    theirs = {n: v for n, v in sent.get("meta", {}).items() if n.lstrip("_") not in _OURS}
    check_equal(theirs, {n: v for n, v in read["meta"].items() if n not in _OURS}, "meta")


_OURS = ("versionId", "lastUpdated")


def check_equal(sent: Any, read: Any, at: str) -> None:
    assert type(sent) is type(read), at
    if isinstance(sent, dict):
        added = {"identifier", "display"} if sent.get("reference") in _LOCAL else set()
        assert sent.keys() <= read.keys() <= sent.keys() | added, at
        for name, item in sent.items():
            check_equal(item, read[name], f"{at}.{name}")
    elif isinstance(sent, list):
        assert len(sent) == len(read), at
        for index, item in enumerate(sent):
            check_equal(item, read[index], f"{at}[{index}]")
    elif isinstance(sent, Number):
        assert Decimal(sent).as_tuple() == Decimal(read).as_tuple(), at
    elif sent != read:
        assert is_rewritten(sent, read, at.rpartition(".")[2]), (at, sent, read)


def is_rewritten(sent: Any, read: Any, name: str) -> bool:
    """Return whether the service may have rewritten one text as the other."""
    if name == "reference":
        return sent in _LOCAL and _HELD.fullmatch(read) is not None
    if name == "data":
        return bool(re.sub(r"\s", "", sent) == read)
    return name in _TIMES and moment(sent) == moment(read) and read.endswith("Z")


def moment(text: str) -> tuple[datetime, str]:
    match = _TIME.fullmatch(text)
    assert match is not None, text
    minute = datetime.fromisoformat(match[1] + (match[4] or "Z"))
    return minute + timedelta(seconds=int(match[2])), match[3] or ""


# The tests


@given(body=bodies())
@tried(200)
def test_a_valid_body_reads_back_as_it_was_sent(wire: Wire, body: Any) -> None:
    sent = dumps(body)

    answer = wire.send("POST", _REGISTER, sent)

    event(str(answer.status))
    if answer.status == 201:
        check_registered(wire, sent, answer)


@given(body=broken(bodies() | st.builds(lambda: register_body(f"fuzz-{next(_numbers)}"))))
@tried(250)
def test_a_broken_body_is_refused_or_reads_back(wire: Wire, body: Any) -> None:
    sent = dumps(body)

    answer = wire.send("POST", _REGISTER, sent)

    event(str(answer.status))
    if answer.status == 201:
        check_registered(wire, sent, answer)


@given(raw=torn(st.builds(lambda: register_body(f"fuzz-{next(_numbers)}"))) | st.binary())
@tried(250)
def test_torn_bytes_are_refused_or_read_back(wire: Wire, raw: bytes) -> None:
    answer = wire.send("POST", _REGISTER, raw)

    if answer.status == 201:
        check_registered(wire, raw, answer)


_PATCHED = st.fixed_dictionaries(
    {"resourceType": st.just("DiagnosticReport")},
    optional={
        "status": st.sampled_from(["amended", "final", "registered", "nonsense"]),
        "conclusion": st.text(max_size=20),
        "_conclusion": st.just({"extension": [{"url": "http://x.example", "valueCode": "a"}]}),
        "presentedForm": st.lists(
            st.sampled_from([document(), document(b"%PDF-2"), {"url": "https://x.example"}]),
            max_size=3,
        ),
        "_presentedForm": _ODD,
    },
)
_TAGS = st.sampled_from(["", "*", 'W/"1"', '"1"', 'W/"1", W/"2"', "1", 'W/"', "x" * 99, "é,"])


@pytest.fixture(scope="module")
def patched_path(wire: Wire) -> str:
    answer = wire.send("POST", _REGISTER, dumps(register_body("patched")))
    location = answer.headers["location"].removeprefix(wire.lab.service.base_url)
    return location.partition("/_history")[0]


@given(body=_PATCHED | broken(_PATCHED), tag=_TAGS)
@tried(250)
def test_a_patch_is_refused_or_reads_back(
    wire: Wire, patched_path: str, body: Any, tag: str
) -> None:
    sent = dumps(body)
    before = exact(wire.send("GET", patched_path).body)
    headers = {"If_Match": tag.replace("1", before["meta"]["versionId"])} if tag else {}

    answer = wire.send("PATCH", patched_path, sent, **headers)

    after = exact(wire.send("GET", patched_path).body)
    if answer.status != 204:
        assert after == before
        return
    assert int(after["meta"]["versionId"]) == int(before["meta"]["versionId"]) + 1
    body = exact(sent)
    named = {name.lstrip("_") for name in body}
    rest = {n: v for n, v in before.items() if n.lstrip("_") not in named}
    check_same({**rest, **body}, after)


@given(raw=torn(_PATCHED) | st.binary())
@tried(100)
def test_a_torn_patch_is_refused_or_taken(wire: Wire, patched_path: str, raw: bytes) -> None:
    answer = wire.send("PATCH", patched_path, raw)

    assert answer.status in (204, 400, 413, 422)


_TEXTS = (
    st.text(max_size=12)
    | st.sampled_from(["|", "a|", "|b", "\\", "a\\|b", ",", ",,|", "$", "https://lab.example|1"])
    | st.sampled_from(["0", "-1", "99999999999999999999", "1e3", "٣", "true", "json", "\x00"])
)
_PARAMETER_NAMES = (
    st.sampled_from(["identifier", "_id", "_count", "_cursor", "_format", "_pretty", "_below"])
    | st.sampled_from(["identifier:exact", "identifier:", ":", "_sort", "_include", "_has:a:b:c"])
    | st.text(max_size=6)
)
_ENCODERS: st.SearchStrategy[Callable[[str], str]] = st.sampled_from(
    [quote, quote_plus, lambda text: quote(text, safe="|,\\$:&=%+;")]
)
_RAW_QUERY = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=30)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Return a query string, correctly or incorrectly encoded."""
    encode = draw(_ENCODERS)
    pairs = draw(st.lists(st.tuples(_PARAMETER_NAMES, _TEXTS), max_size=4))
    return "&".join(f"{encode(name)}={encode(value)}" for name, value in pairs)


@given(query=queries() | _RAW_QUERY, prefer=st.sampled_from(["", "handling=strict", "a;=,"]))
@tried(200)
def test_a_search_finds_or_is_refused(wire: Wire, query: str, prefer: str) -> None:
    path = f"/fhir/r4/DiagnosticReport?{query}".partition("#")[0]

    answer = wire.send("GET", path, Prefer=prefer)

    if answer.status == 200:
        check_bundle(wire, answer)


def check_bundle(wire: Wire, answer: Answer) -> None:
    """Assert that a response is a Bundle, and that its links can be followed."""
    bundle = answer.json
    assert bundle["resourceType"] == "Bundle"
    assert list(_schemas.problems("Bundle", bundle)) == []
    for link in bundle["link"]:
        path = link["url"].removeprefix(wire.lab.service.base_url)
        assert wire.send("GET", path).status == 200


@given(form=queries().map(str.encode) | st.binary(max_size=40))
@tried(100)
def test_a_search_by_form_finds_or_is_refused(wire: Wire, form: bytes) -> None:
    kind = {"Content_Type": "application/x-www-form-urlencoded"}

    answer = wire.send("POST", "/fhir/r4/DiagnosticReport/_search", form, **kind)

    if answer.status == 200:
        check_bundle(wire, answer)


@given(query=queries() | _RAW_QUERY, tail=st.sampled_from(["", "/_history", "/_history/1"]))
@tried(100)
def test_a_read_with_any_parameters_is_answered(
    wire: Wire, patched_path: str, query: str, tail: str
) -> None:
    answer = wire.send("GET", f"{patched_path}{tail}?{query}".partition("#")[0])

    assert answer.status in (200, 400, 406)


_PATHS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20)
_ACCEPTS = st.sampled_from(["", "*/*", "application/xml", ";q=", "a/b;q=nan", "*;q=1e999", ",,"])


@given(
    path=_PATHS, accept=_ACCEPTS, method=st.sampled_from(["GET", "HEAD", "PATCH", "PUT", "DELETE"])
)
@tried(100)
def test_any_id_is_answered(wire: Wire, path: str, accept: str, method: str) -> None:
    target = f"/fhir/r4/DiagnosticReport/{path}".partition("#")[0]
    body = b"{}" if method == "PATCH" else None

    answer = wire.send(method, target, body, Accept=accept)

    assert answer.status in (200, 400, 404, 405, 406)
