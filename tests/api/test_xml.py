"""XML over HTTP offers the same as JSON, with the same results (D-245 and later)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fhirpub.fhir.xml.reader import read_xml
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.interactions.patch_formats import FORMS
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.api.test_third_party_reports import CORPUS, validator
from tests.bodies import PDF, SYSTEM, document, organization, patient, register_body, report
from tests.r4_xml_schema import faults

XML = "application/fhir+xml"
BASE = "/fhir/r4/DiagnosticReport"
REGISTER = f"{BASE}/$register"
BOTH = {"Content-Type": XML, "Accept": XML}
VARY = "Accept, Accept-Encoding"
UNKNOWN_REPORT = f"{BASE}/00000000-0000-4000-8000-000000000000"

Convert = Callable[[dict[str, Any]], dict[str, Any]]


def rich(value: str) -> dict[str, Any]:
    """Return a body with elements that are hard to express in XML."""
    specimen = {"resourceType": "Specimen", "id": "s", "note": [{"text": "a\nb"}]}
    text = '<p title="&lt;">Blood&#160;<b>count</b></p>'
    div = f'<div xmlns="http://www.w3.org/1999/xhtml">{text}</div>'
    return register_body(
        value,
        text={"status": "generated", "div": div},
        contained=[specimen],
        specimen=[{"reference": "#s"}],
        extension=[{"url": "https://lab.example/dose", "valueDecimal": 1.0}],
        _conclusion={"extension": [{"url": "https://lab.example/by", "valueString": " M & O "}]},
        presentedForm=[document(), document(b"%PDF-2", title=None)],
    )


@pytest.fixture(scope="module")
def lab(service: RunningService) -> Integrator:
    return service.integrator()


@pytest.fixture(scope="module")
def registered(lab: Integrator) -> Answer:
    """The responses in XML to a registration in XML and to an update in XML."""
    answer = lab.request("POST", REGISTER, write_xml(rich("A-1")), BOTH)
    assert answer.status == 201, answer.body
    patch = write_xml({"resourceType": "DiagnosticReport", "conclusion": "Well"})
    assert lab.request("PATCH", path_of(answer), patch, BOTH).status == 204
    return answer


def path_of(answer: Answer) -> str:
    return "/fhir" + answer.headers["location"].partition("/fhir")[2].partition("/_history")[0]


def issues_of(answer: Answer) -> list[tuple[str, str]]:
    """Return the issues of an OperationOutcome in XML: code and place."""
    assert (answer.headers["content-type"], faults(answer.body)) == (XML, [])
    issues = read_xml(answer.body)["issue"]
    return [(issue["code"], issue.get("expression", [""])[0]) for issue in issues]


def test_what_is_registered_in_xml_is_as_if_it_came_in_json(
    service: RunningService, registered: Answer
) -> None:
    other = service.integrator()
    first = other.register(rich("A-1")).json["parameter"][0]["resource"]
    one = other.get(f"{BASE}/{first['id']}").json

    assert faults(registered.body) == []
    assert registered.headers["content-type"] == XML
    entry = read_xml(registered.body)["parameter"][0]["resource"]
    assert same(entry, first)
    assert one["extension"] == [{"url": "https://lab.example/dose", "valueDecimal": 1.0}]


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two reports differ only in what the service sets."""
    theirs = ("id", "meta", "subject", "performer")
    kept = [{k: v for k, v in record.items() if k not in theirs} for record in (one, other)]
    return kept[0] == kept[1]


@pytest.mark.parametrize(
    "path",
    [
        "{report}",
        "{report}?_summary=true",
        "{report}?_elements=code,subject",
        "{report}/_history",
        "{report}/_history/1",
        f"{BASE}?identifier={SYSTEM}%7CA-1",
        f"{BASE}?identifier=nobody&nickname=x",
        "{patient}",
        "{organization}",
        "{binary}",
        "/metadata",
        "/fhir/r4/CapabilityStatement/fhirpub",
        "/fhir/r4/OperationDefinition/DiagnosticReport-register",
    ],
)
def test_whatever_can_be_read_is_valid_in_xml_and_says_what_json_says(
    lab: Integrator, registered: Answer, path: str
) -> None:
    report = lab.get(path_of(registered)).json
    binary = lab.get(f"{BASE}?identifier=A-1").json["entry"][0]["resource"]["presentedForm"][0]
    address = path.format(
        report=path_of(registered),
        patient=f"/fhir/r4/{report['subject']['reference']}",
        organization=f"/fhir/r4/{report['performer'][0]['reference']}",
        binary=binary["url"],
    )

    in_json = lab.get(address, Accept="application/fhir+json")
    in_xml, pretty = lab.get(address, Accept=XML), lab.get(with_pretty(address), Accept=XML)

    assert (in_json.status, in_xml.status) == (200, 200)
    assert in_xml.headers["content-type"] == XML
    assert in_xml.headers["vary"] == in_json.headers["vary"] == VARY
    assert in_xml.headers.get("etag") == in_json.headers.get("etag")
    assert faults(in_xml.body) == []
    assert read_xml(in_xml.body) == in_json.json
    assert b"\n  <" in pretty.body
    again = lab.get(with_pretty(address), Accept="application/fhir+json")
    assert read_xml(pretty.body) == again.json


def with_pretty(address: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}_pretty=true"


def test_the_first_answer_is_repeated_whatever_the_format(
    lab: Integrator, registered: Answer
) -> None:
    again = lab.request("POST", REGISTER, write_xml(rich("A-1")), BOTH)
    in_json = lab.register(rich("A-1"))

    assert (again.status, again.body) == (201, registered.body)
    assert read_xml(registered.body) == in_json.json


def test_an_update_in_xml_replaces_the_field(lab: Integrator, registered: Answer) -> None:
    assert lab.get(f"{path_of(registered)}/_history/2").json["conclusion"] == "Well"


def test_create_takes_and_gives_xml(lab: Integrator) -> None:
    body = report(
        "created",
        contained=[patient(), organization()],
        subject={"reference": "#p1"},
        performer=[{"reference": "#o1"}],
    )

    answer = lab.request("POST", BASE, write_xml(body), BOTH)

    assert (answer.status, faults(answer.body)) == (201, [])
    assert read_xml(answer.body)["presentedForm"] == body["presentedForm"]


def test_a_client_chooses_the_formats_of_body_and_answer_apart(lab: Integrator) -> None:
    answer = lab.request("POST", REGISTER, write_xml(rich("B-1")), {"Content-Type": XML})
    other = lab.request("POST", f"{REGISTER}?_format=xml", rich("B-1"))

    assert answer.headers["content-type"] == "application/fhir+json"
    assert read_xml(other.body) == answer.json


def test_preferences_are_honoured_in_xml(lab: Integrator, registered: Answer) -> None:
    body, path = write_xml(rich("A-1")), path_of(registered)
    patch = write_xml({"resourceType": "DiagnosticReport", "status": "amended"})

    issues = lab.request("POST", REGISTER, body, BOTH | {"Prefer": "return=OperationOutcome"})
    nothing = lab.request("POST", REGISTER, body, BOTH | {"Prefer": "return=minimal"})
    whole = lab.request("PATCH", path, patch, BOTH | {"Prefer": "return=representation"})

    assert issues_of(issues)[0] == ("informational", "")
    assert (nothing.status, nothing.body) == (201, b"")
    assert read_xml(whole.body)["status"] == "amended"


@pytest.mark.parametrize("path", [f"{BASE}?_count=1", "{report}/_history?_count=1"])
def test_the_next_page_comes_in_the_format_of_the_first(
    lab: Integrator, registered: Answer, path: str
) -> None:
    assert lab.register(rich("another page")).status == 201
    first = lab.get(f"{path.format(report=path_of(registered))}&_format=xml&_pretty=true")
    links = {link["relation"]: link["url"] for link in read_xml(first.body)["link"]}

    following = lab.get(links["next"])

    assert links["self"].endswith("?_count=1&_format=xml&_pretty=true")
    assert (following.status, following.headers["content-type"]) == (200, XML)
    assert (faults(following.body), b"\n  <" in following.body) == ([], True)


def test_head_returns_the_length_of_the_xml(lab: Integrator) -> None:
    head = lab.request("HEAD", "/metadata", headers={"Accept": XML})
    body = lab.get("/metadata", Accept=XML).body

    assert (head.status, head.body) == (200, b"")
    assert (head.headers["content-type"], head.headers["content-length"]) == (XML, str(len(body)))


def test_a_client_that_has_the_version_gets_304_in_either_format(
    lab: Integrator, registered: Answer
) -> None:
    path = f"{path_of(registered)}/_history/1"
    tag = lab.get(path, Accept=XML).headers["etag"]

    known = lab.get(path, Accept=XML, If_None_Match=tag)

    assert (known.status, known.body, known.headers["vary"]) == (304, b"", VARY)


def test_options_list_what_a_patch_may_be(lab: Integrator, registered: Answer) -> None:
    answer = lab.request("OPTIONS", path_of(registered))

    assert answer.status == 204
    assert answer.headers["accept-patch"].split(", ") == list(FORMS)


def test_a_document_is_returned_raw_unless_a_resource_is_asked_for(
    lab: Integrator, registered: Answer
) -> None:
    found = lab.get(f"{BASE}?identifier=A-1").json["entry"][0]["resource"]["presentedForm"][0]

    as_pdf = lab.get(found["url"], Accept="application/xml, */*")
    as_fhir = lab.get(found["url"], Accept=XML)

    assert (as_pdf.body, as_pdf.headers["content-type"]) == (PDF, "application/pdf")
    assert read_xml(as_fhir.body)["contentType"] == "application/pdf"
    assert as_fhir.headers["etag"] == f"W/{as_pdf.headers['etag']}"


def test_a_document_of_five_megabytes_goes_both_ways(lab: Integrator) -> None:
    data = b"%PDF-" + bytes(5 * 1024 * 1024 - 5)
    body = register_body("five-megabytes", presentedForm=[document(data)])

    answer = lab.request("POST", REGISTER, write_xml(body), BOTH)
    read = lab.get(path_of(answer), Accept=XML)

    [form] = body["parameter"][2]["resource"]["presentedForm"]
    assert answer.status == 201
    assert read_xml(read.body)["presentedForm"] == [form]


def test_a_larger_document_is_a_413_in_xml(lab: Integrator) -> None:
    data = bytes(5 * 1024 * 1024 + 1)
    body = register_body("too-large", presentedForm=[document(data)])

    answer = lab.request("POST", REGISTER, write_xml(body), BOTH)

    place = "Parameters.parameter[2].resource.presentedForm[0].data"
    assert (answer.status, issues_of(answer)) == (413, [("too-costly", place)])


# Refusals.


def test_all_that_is_wrong_with_the_xml_is_reported_at_once(lab: Integrator) -> None:
    good = write_xml(register_body("wrong")).decode()
    bad = good.replace("<status ", "<foo/><status ").replace("<name>", "<name>Ana")
    bad = bad.replace('<birthDate value="1980-02-29"/>', "<birthDate/><gender value='male'/>")

    answer = lab.request("POST", REGISTER, bad.encode(), BOTH)

    assert answer.status == 400
    assert {place for _code, place in issues_of(answer)} == {
        "Parameters.parameter[0].resource.name[0]",
        "Parameters.parameter[0].resource.birthDate",
        "Parameters.parameter[0].resource.gender",
        "Parameters.parameter[2].resource",
    }


def test_wrong_values_are_reported_as_for_json(lab: Integrator) -> None:
    body = register_body("wrong", issued="yesterday", status="mine")

    answer = lab.request("POST", REGISTER, write_xml(body), BOTH)
    same = lab.register(body)

    assert (answer.status, read_xml(answer.body)["issue"]) == (400, same.issues)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<Parameters",
        b"<Parameters/>",
        b'{"resourceType":"Parameters"}',
        b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><a>&e;</a>',
        b'<?xml version="1.0" encoding="latin-1"?><Parameters xmlns="http://hl7.org/fhir"/>',
    ],
)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_what_is_no_fhir_in_xml_is_a_400(
    lab: Integrator, registered: Answer, method: str, body: bytes
) -> None:
    path = REGISTER if method == "POST" else path_of(registered)

    answer = lab.request(method, path, body, BOTH)

    assert (answer.status, issues_of(answer)) == (400, [("exception", "")])


def test_documents_next_to_the_resource_are_for_json_alone(lab: Integrator) -> None:
    good = write_xml(register_body("beside")).decode()
    start, end = good.index("<presentedForm>"), good.index("</DiagnosticReport>")
    forms = good[start:end]
    tail = "</resource></parameter></Parameters>"
    changed = good.replace(forms, "").replace(tail, tail.replace("</para", f"{forms}</para", 1))

    answer = lab.request("POST", REGISTER, changed.encode(), BOTH)

    assert (answer.status, issues_of(answer)) == (400, [("exception", "Parameters.parameter[2]")])


def test_a_field_that_cannot_be_updated_is_a_422(lab: Integrator, registered: Answer) -> None:
    patch = write_xml({"resourceType": "DiagnosticReport", "code": {"text": "a"}})

    answer = lab.request("PATCH", path_of(registered), patch, BOTH)

    assert (answer.status, issues_of(answer)) == (
        422,
        [("business-rule", "DiagnosticReport.code")],
    )


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", UNKNOWN_REPORT, 404, "not-found"),
        ("GET", "/nowhere", 404, "not-supported"),
        ("PUT", "/metadata", 405, "not-supported"),
        ("GET", f"{BASE}?_count=x", 400, "invalid"),
        ("GET", f"{BASE}?identifier:exact=x", 400, "invalid"),
    ],
)
def test_a_refusal_is_in_the_format_asked_for(
    lab: Integrator, method: str, path: str, status: int, code: str
) -> None:
    answer = lab.request(method, path, headers={"Accept": XML})

    assert (answer.status, issues_of(answer)[0][0]) == (status, code)
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("form", ["json", "xml"])
def test_a_refusal_is_indented_on_request(lab: Integrator, form: str) -> None:
    plain, pretty = (
        lab.get(f"{UNKNOWN_REPORT}?_format={form}&_pretty={name}") for name in ("", "true")
    )

    assert (plain.body.count(b"\n") < 2, pretty.body.count(b"\n") > 3) == (True, True)


def test_a_missing_token_is_refused_in_xml_as_well(service: RunningService) -> None:
    answer = service.request("GET", BASE, headers={"Accept": XML})

    assert (answer.status, issues_of(answer)) == (401, [("security", "")])


def test_a_contained_resource_that_xml_could_not_say_is_not_accepted(lab: Integrator) -> None:
    thing = {"resourceType": "Specimen", "id": "s", "collection": {"quantity": {"value": "much"}}}

    answer = lab.register(
        register_body("contained", contained=[thing], specimen=[{"reference": "#s"}])
    )

    place = "Parameters.parameter[2].resource.contained[0].collection.quantity.value"
    assert (answer.status, answer.issue_expressions) == (400, {place})


def test_a_contained_resource_whose_values_are_not_of_r4_is_not_accepted(lab: Integrator) -> None:
    thing = {"resourceType": "Specimen", "id": "s", "receivedTime": "2024-02-30"}

    answer = lab.register(
        register_body("contained", contained=[thing], specimen=[{"reference": "#s"}])
    )

    place = "Parameters.parameter[2].resource.contained[0].receivedTime"
    assert (answer.status, answer.issue_expressions) == (400, {place})


# A third-party library.


@pytest.fixture(scope="module")
def library() -> Iterator[Convert]:
    """A converter between XML and JSON by fhir.resources."""
    python = validator.python_of("fhir.resources", validator.cache_folder())
    command = [python, "-W", "ignore", CORPUS / "xml_worker.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8") as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        give, take = worker.stdin, worker.stdout

        def convert(line: dict[str, Any]) -> dict[str, Any]:
            give.write(json.dumps(line) + "\n")
            give.flush()
            converted: dict[str, Any] = json.loads(take.readline())
            return converted

        yield convert
        give.close()


def test_a_library_that_others_wrote_registers_and_reads_in_xml(
    lab: Integrator, library: Convert
) -> None:
    body = library(register_body("by-a-library"))["xml"].encode()

    answer = lab.request("POST", REGISTER, body, BOTH)

    path = path_of(answer)
    in_xml = library({"xml": lab.get(path, Accept=XML).body.decode()})
    in_json = library(library(lab.get(path).json))  # it writes times in its own way
    assert (answer.status, in_xml) == (201, in_json)
    assert in_xml["identifier"] == [{"system": SYSTEM, "value": "by-a-library"}]
