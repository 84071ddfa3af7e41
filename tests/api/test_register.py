from __future__ import annotations

import base64
import copy
import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import (
    PDF,
    document,
    organization,
    parameters,
    patient,
    register_body,
    report,
    self_contained,
)

REPORT = "Parameters.parameter[2].resource"
PATIENT = "Parameters.parameter[0].resource"
ORGANIZATION = "Parameters.parameter[1].resource"


def body(
    *,
    of_patient: dict[str, Any] | None = None,
    of_organization: dict[str, Any] | None = None,
    **of_report: Any,
) -> dict[str, Any]:
    return parameters(
        patient=patient(**of_patient or {}),
        organization=organization(**of_organization or {}),
        diagnosticReport=report("R-1", **of_report),
    )


FIELD_REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "no category": (body(category=None), f"{REPORT}.category"),
    "a category without coding": (body(category=[{"text": "x"}]), f"{REPORT}.category[0]"),
    "a coding without system": (
        body(category=[{"coding": [{"code": "LAB"}]}]),
        f"{REPORT}.category[0].coding[0].system",
    ),
    "no code text": (
        body(code={"coding": [{"system": "http://loinc.org", "code": "1-8"}]}),
        f"{REPORT}.code.text",
    ),
    "a blank code text": (body(code={"text": "  "}), f"{REPORT}.code.text"),
    "no subject": (body(subject=None), f"{REPORT}.subject"),
    "no performer": (body(performer=None), f"{REPORT}.performer"),
    "no documents": (body(presentedForm=None), f"{REPORT}.presentedForm"),
    "an empty list of documents": (body(presentedForm=[]), f"{REPORT}.presentedForm"),
    "data without hash": (
        body(presentedForm=[document(hash=None)]),
        f"{REPORT}.presentedForm[0]",
    ),
    "hash without data": (
        body(presentedForm=[{"hash": "aa" * 32}]),
        f"{REPORT}.presentedForm[0]",
    ),
    "data without content type": (
        body(presentedForm=[document(contentType=None)]),
        f"{REPORT}.presentedForm[0].contentType",
    ),
    "a content type that is none": (
        body(presentedForm=[document(contentType="pdf")]),
        f"{REPORT}.presentedForm[0].contentType",
    ),
    "data in the URL alphabet": (
        body(presentedForm=[document() | {"data": "_-__"}]),
        f"{REPORT}.presentedForm[0].data",
    ),
    "data with wrong padding": (
        body(presentedForm=[document() | {"data": "QUI"}]),
        f"{REPORT}.presentedForm[0].data",
    ),
    "data that encoding would not give back": (
        body(presentedForm=[document() | {"data": "QR=="}]),
        f"{REPORT}.presentedForm[0].data",
    ),
    "a script as url": (
        body(presentedForm=[{"url": "javascript:alert(1)"}]),
        f"{REPORT}.presentedForm[0].url",
    ),
    "a file as url": (
        body(presentedForm=[{"url": "file:///etc/passwd"}]),
        f"{REPORT}.presentedForm[0].url",
    ),
    "a url with credentials": (
        body(presentedForm=[{"url": "https://a:b@example.org/x"}]),
        f"{REPORT}.presentedForm[0].url",
    ),
    "a status for updates": (body(status="amended"), f"{REPORT}.status"),
    "no status": (body(status=None), f"{REPORT}.status"),
    "a day that does not exist": (
        body(effectiveDateTime="2026-02-30T10:00:00Z"),
        f"{REPORT}.effective",
    ),
    "an issued date without time": (body(issued="2026-02-03"), f"{REPORT}.issued"),
    "a gender of FHIR that is not published": (
        body(of_patient={"gender": "unknown"}),
        f"{PATIENT}.gender",
    ),
    "a pager": (
        body(of_patient={"telecom": [{"system": "pager", "value": "1"}]}),
        f"{PATIENT}.telecom[0].system",
    ),
    "an old telephone": (
        body(of_patient={"telecom": [{"system": "phone", "value": "1", "use": "old"}]}),
        f"{PATIENT}.telecom[0].use",
    ),
    "a birth date without day": (
        body(of_patient={"birthDate": "1980-02"}),
        f"{PATIENT}.birthDate",
    ),
    "a birth date that does not exist": (
        body(of_patient={"birthDate": "1981-02-29"}),
        f"{PATIENT}.birthDate",
    ),
    "a patient without local id": (body(of_patient={"id": None}), f"{PATIENT}.id"),
    "a local id that is none": (body(of_patient={"id": "a b"}), f"{PATIENT}.id"),
    "an organization without name and identifier": (
        body(of_organization={"name": None, "identifier": None}),
        ORGANIZATION,
    ),
    "an organization's home": (
        body(of_organization={"telecom": [{"system": "phone", "value": "1", "use": "home"}]}),
        f"{ORGANIZATION}.telecom[0].use",
    ),
    "an organization's number of nobody knows what": (
        body(of_organization={"telecom": [{"value": "1"}]}),
        f"{ORGANIZATION}.telecom[0].system",
    ),
    "an extension with nothing in it": (
        body(extension=[{"url": "https://x.example"}]),
        f"{REPORT}.extension[0]",
    ),
    "an extension with nothing in it, of a status": (
        body(_status={"extension": [{"url": "https://x.example"}]}),
        f"{REPORT}.status.extension[0]",
    ),
    "an extension with nothing in it, of a time": (
        body(_effectiveDateTime={"extension": [{"url": "https://x.example"}]}),
        f"{REPORT}.effective.extension[0]",
    ),
    "a period that ends before it starts": (
        body(effectiveDateTime=None, effectivePeriod={"start": "2026-02", "end": "2026-01"}),
        f"{REPORT}.effective",
    ),
    "a period that ends before it starts on the same day": (
        body(
            effectiveDateTime=None,
            effectivePeriod={"start": "2026-11-20T12:00:00Z", "end": "2026-11-20T10:00:00Z"},
        ),
        f"{REPORT}.effective",
    ),
    "an entity that there is not": (
        body(
            text={
                "status": "generated",
                "div": '<div xmlns="http://www.w3.org/1999/xhtml">a &foo; b</div>',
            }
        ),
        f"{REPORT}.text.div",
    ),
    "two effective times": (
        body(effectivePeriod={"start": "2026"}),
        f"{REPORT}.effective",
    ),
    "a reference to nothing contained": (
        body(specimen=[{"reference": "#s1"}]),
        f"{REPORT}.specimen[0].reference",
    ),
    "a time before the year 1 in UTC": (
        body(effectiveDateTime="0001-01-01T00:00:00+14:00"),
        f"{REPORT}.effective",
    ),
    "an offset that no place on earth has": (
        body(effectiveDateTime="2026-03-02T08:15:00+15:00"),
        f"{REPORT}.effective",
    ),
    "an extension that is no base64": (
        body(extension=[{"url": "https://x.example", "valueBase64Binary": "!!"}]),
        f"{REPORT}.extension[0].value",
    ),
    "a photo that is no base64": (
        body(of_patient={"photo": [{"contentType": "image/png", "data": "a===="}]}),
        f"{PATIENT}.photo[0].data",
    ),
    "ten digits of a second": (
        body(issued="2026-11-20T10:05:00.1234567890Z"),
        f"{REPORT}.issued",
    ),
    "a content type that no header could hold": (
        body(presentedForm=[document(contentType="application/pdf; x=" + "a" * 1000)]),
        f"{REPORT}.presentedForm[0].contentType",
    ),
    "a content type beyond ASCII": (
        body(presentedForm=[document(contentType="application/pdf; x=日本")]),
        f"{REPORT}.presentedForm[0].contentType",
    ),
    "a narrative without a status": (
        body(
            text={
                "_status": {"extension": [{"url": "https://x.example", "valueCode": "x"}]},
                "div": '<div xmlns="http://www.w3.org/1999/xhtml"><script>x</script></div>',
            }
        ),
        f"{REPORT}.text.div",
    ),
    "a narrative with an element of no namespace": (
        body(
            text={
                "status": "generated",
                "div": '<div xmlns="http://www.w3.org/1999/xhtml">a <b xmlns="">c</b></div>',
            }
        ),
        f"{REPORT}.text.div",
    ),
    "a narrative that runs something": (
        body(
            text={
                "status": "generated",
                "div": '<div xmlns="http://www.w3.org/1999/xhtml"><script>x</script></div>',
            }
        ),
        f"{REPORT}.text.div",
    ),
}


@pytest.mark.parametrize("case", FIELD_REFUSALS)
def test_a_wrong_field_is_a_400_that_points_at_it(lab: Integrator, case: str) -> None:
    sent, place = FIELD_REFUSALS[case]

    answer = lab.register(sent)

    assert answer.status == 400, answer.body
    assert answer.issue_expressions == {place}
    assert {issue["code"] for issue in answer.issues} == {"exception"}


RULE_REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "a subject that is not the patient": (
        body(subject={"reference": "Patient/other"}),
        f"{REPORT}.subject.reference",
    ),
    "an absolute subject": (
        body(subject={"reference": "https://x.example/Patient/p1"}),
        f"{REPORT}.subject.reference",
    ),
    "no performer that is the organization": (
        body(performer=[{"reference": "Practitioner/1"}]),
        f"{REPORT}.performer[0].reference",
    ),
    "a modifier extension": (
        body(modifierExtension=[{"url": "https://x.example", "valueBoolean": True}]),
        f"{REPORT}.modifierExtension",
    ),
    "implicit rules of the whole": (
        body() | {"implicitRules": "https://x.example"},
        "Parameters.implicitRules",
    ),
    "implicit rules in the patient": (
        body(of_patient={"implicitRules": "https://x.example"}),
        f"{PATIENT}.implicitRules",
    ),
    "extensions of implicit rules": (
        body(_implicitRules={"extension": [{"url": "https://x.example", "valueCode": "x"}]}),
        f"{REPORT}.implicitRules",
    ),
}


@pytest.mark.parametrize("case", RULE_REFUSALS)
def test_a_broken_rule_is_a_422_that_points_at_it(lab: Integrator, case: str) -> None:
    sent, place = RULE_REFUSALS[case]

    answer = lab.register(sent)

    assert answer.status == 422, answer.body
    assert answer.issue_expressions == {place}
    assert {issue["code"] for issue in answer.issues} == {"business-rule"}


ENVELOPES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a list": lambda _sent: [],
    "another resource": lambda _sent: {"resourceType": "Bundle"},
    "no entries": lambda sent: sent | {"parameter": []},
    "an entry missing": lambda sent: sent | {"parameter": sent["parameter"][1:]},
    "an entry twice": lambda sent: sent | {"parameter": sent["parameter"] * 2},
    "an entry with a value": lambda sent: (
        sent | {"parameter": [{"name": "patient", "valueString": "x"}, *sent["parameter"][1:]]}
    ),
    "an entry with another type": lambda sent: (
        sent
        | {"parameter": [{"name": "patient", "resource": organization()}, *sent["parameter"][1:]]}
    ),
    "an id that is a number": lambda sent: sent | {"id": 5},
    "an entry that is text": lambda sent: sent | {"parameter": ["x", *sent["parameter"]]},
}


@pytest.mark.parametrize("case", ENVELOPES)
def test_a_wrong_envelope_is_a_400(lab: Integrator, case: str) -> None:
    answer = lab.register(ENVELOPES[case](body()))

    assert (answer.status, answer.issues[0]["code"]) == (400, "exception")


def test_all_problems_of_a_stage_are_reported_at_once(lab: Integrator) -> None:
    sent = body(category=None, code={"text": " "}, status="amended")

    answer = lab.register(sent)

    assert answer.issue_expressions == {
        f"{REPORT}.category",
        f"{REPORT}.code.text",
        f"{REPORT}.status",
    }


@pytest.mark.parametrize(
    ("entries", "status"), [([1] * 5_000, 400), ([{"name": "x"}] * 5_000, 201)]
)
def test_of_many_strange_entries_a_hundred_are_reported(
    lab: Integrator, entries: list[Any], status: int
) -> None:
    sent = body()
    sent["parameter"] += entries

    answer = lab.register(sent)

    outcome = answer.json if status == 400 else answer.json["parameter"][1]["resource"]
    assert (answer.status, len(outcome["issue"]) <= 101) == (status, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"presentedForm": [document() | {"data": "no base64!"}] * 5_000},
        {"contained": [{"resourceType": "Specimen", "id": "s", "strange": 1}] * 5_000},
    ],
)
def test_of_thousands_of_problems_a_hundred_are_reported(
    lab: Integrator, changes: dict[str, Any]
) -> None:
    answer = lab.register(body(**changes))

    assert (answer.status, len(answer.issues)) == (400, 100)


@pytest.mark.parametrize(
    "changes",
    [
        {
            "effectiveDateTime": None,
            "effectivePeriod": {
                "start": "2026-01-02T00:30:00+02:00",
                "end": "2026-01-01T23:00:00Z",
            },
        },
        {
            "effectiveDateTime": None,
            "effectivePeriod": {"start": "2026-01-01T23:30:00-05:00", "end": "2026-01-01"},
        },
        {
            "contained": [{"resourceType": "Device", "id": "d1"}],
            "extension": [{"url": "https://x.example", "valueUri": "#d1"}],
        },
        {
            "extension": [
                {
                    "url": "https://x.example",
                    "valueTriggerDefinition": {
                        "type": "data-added",
                        "data": [{"type": "Patient"}],
                    },
                }
            ]
        },
    ],
)
def test_what_is_right_by_fhir_is_accepted(lab: Integrator, changes: dict[str, Any]) -> None:
    answer = lab.register(body(**changes))

    assert answer.status == 201, answer.body


def test_what_leads_from_a_contained_part_to_its_report_still_leads_there(
    lab: Integrator,
) -> None:
    link = {"url": "https://x.example", "valueReference": {"reference": "#"}}
    contained = [patient(extension=[link]), organization()]
    created = lab.request(
        "POST", "/fhir/r4/DiagnosticReport", self_contained("R-self", contained=contained)
    )
    assert created.status == 201, created.body

    person = lab.get(f"/fhir/r4/{created.json['subject']['reference']}").json

    found = person["extension"][0]["valueReference"]["reference"]
    assert found == f"DiagnosticReport/{created.json['id']}"


def test_an_unknown_entry_is_ignored_and_reported(lab: Integrator) -> None:
    sent = body()
    sent["parameter"].append({"name": "extra", "valueString": "x"})

    answer = lab.register(sent)

    issues = answer.json["parameter"][1]["resource"]["issue"]
    assert answer.status == 201
    assert ["Parameters.parameter[3]"] in [issue.get("expression") for issue in issues]


def with_entry(sent: dict[str, Any], **entry: Any) -> dict[str, Any]:
    """Return a body with one more entry, whose name no type declares."""
    return {**sent, "parameter": [*sent["parameter"], {"name": "extra", **entry}]}


OBSERVATION = {
    "resourceType": "Observation",
    "id": "v1",
    "status": "final",
    "code": {"text": "Na"},
}


@pytest.mark.parametrize(
    "entry", [{"resource": OBSERVATION}, {"part": [{"name": "inner", "resource": OBSERVATION}]}]
)
def test_an_unknown_entry_with_a_resource_is_ignored_with_a_warning(
    lab: Integrator, entry: dict[str, Any]
) -> None:
    answer = lab.register(with_entry(body(), **entry))

    issues = answer.json["parameter"][1]["resource"]["issue"]
    found = [issue for issue in issues if issue.get("expression") == ["Parameters.parameter[3]"]]
    assert answer.status == 201
    assert [issue["severity"] for issue in found] == ["warning"]


OF_REPORT = "Parameters.parameter[2].resource"


@pytest.mark.parametrize("literal", ["Observation/v1", "Observation/v1/_history/1"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_reference_to_an_entry_that_is_not_taken_is_refused(
    lab: Integrator, literal: str, *, nested: bool
) -> None:
    inner = {"resource": OBSERVATION}
    entry = {"part": [{"name": "inner", **inner}]} if nested else inner

    answer = lab.register(with_entry(body(result=[{"reference": literal}]), **entry))

    place = ".part[0]" if nested else ""
    rule = f"refers to Parameters.parameter[3]{place}.resource, which is not taken"
    assert answer.status == 422
    assert answer.issue_expressions == {"Parameters.parameter[2].resource.result[0].reference"}
    assert rule in answer.issues[0]["diagnostics"]


def test_a_reference_of_a_part_to_an_entry_that_is_not_taken_is_refused(lab: Integrator) -> None:
    entry = {"resource": {"resourceType": "Practitioner", "id": "d1"}}
    sent = body(of_patient={"generalPractitioner": [{"reference": "Practitioner/d1"}]})

    answer = lab.register(with_entry(sent, **entry))

    assert answer.status == 422
    assert answer.issue_expressions == {
        "Parameters.parameter[0].resource.generalPractitioner[0].reference"
    }


def test_the_order_of_the_entries_does_not_matter(lab: Integrator) -> None:
    sent = body()
    sent["parameter"].reverse()

    assert lab.register(sent).status == 201


def test_the_documents_may_stand_next_to_the_resource(lab: Integrator) -> None:
    sent = body()
    entry = sent["parameter"][2]
    entry["presentedForm"] = entry["resource"].pop("presentedForm")

    answer = lab.register(sent)
    read = lab.get(answer.headers["location"]).json

    assert read["presentedForm"][0]["data"] == base64.b64encode(PDF).decode()


def test_documents_in_both_places_must_be_equal(lab: Integrator) -> None:
    same, other = body(), body()
    same["parameter"][2]["presentedForm"] = copy.deepcopy(
        same["parameter"][2]["resource"]["presentedForm"]
    )
    other["parameter"][2]["presentedForm"] = [document(title="other")]

    assert lab.register(other).status == 400
    assert lab.register(same).status == 201


def test_documents_next_to_the_resource_are_a_list(lab: Integrator) -> None:
    sent = body(presentedForm=None)
    sent["parameter"][2]["presentedForm"] = document()

    answer = lab.register(sent)

    assert (answer.status, answer.issue_expressions) == (
        400,
        {"Parameters.parameter[2].presentedForm"},
    )


def test_what_create_contains_is_a_list(lab: Integrator) -> None:
    sent = self_contained("C-5") | {"contained": patient()}

    answer = lab.request("POST", "/fhir/r4/DiagnosticReport", sent)

    assert (answer.status, answer.issue_expressions) == (400, {"DiagnosticReport.contained"})


def test_the_identifier_must_have_an_absolute_system(lab: Integrator) -> None:
    answer = lab.register(register_body("x", system="not a uri"))

    assert (answer.status, answer.issues[0]["code"]) == (400, "invalid")


def test_identifiers_are_compared_to_the_letter(lab: Integrator) -> None:
    values = ["a", "A", "a ", "\u00e9", "e\u0301"]

    ids = {lab.register(register_body(value)).headers["location"] for value in values}

    assert len(ids) == len(values)


@pytest.mark.parametrize("form", ["{}", "{:upper}", "{:bare}", "{:percent}"])
def test_the_system_must_not_hold_the_tenants_id(lab: Integrator, form: str) -> None:
    tenant = lab.tenant.id
    written = {
        "{}": tenant,
        "{:upper}": tenant.upper(),
        "{:bare}": tenant.replace("-", ""),
        "{:percent}": tenant.replace("-", "%2D"),
    }[form]

    answer = lab.register(register_body("x", system=f"https://lab.example/{written}/r"))

    assert (answer.status, answer.issue_expressions) == (422, {f"{REPORT}.identifier[0].system"})
    assert lab.tenant.id not in answer.body.decode()


@pytest.mark.parametrize("form", ["{}", "{:upper}", "{:bare}"])
def test_the_system_must_not_hold_the_uuid_of_the_organization(lab: Integrator, form: str) -> None:
    own = "5f0c3a52-8d1e-4b7a-9c55-0a7d3e1b2c4f"
    written = {"{}": own, "{:upper}": own.upper(), "{:bare}": own.replace("-", "")}[form]
    identifiers = [{"value": "77"}, {"system": "https://registry.example/own", "value": own}]
    body = parameters(
        patient=patient(),
        organization=organization(identifier=identifiers),
        diagnosticReport=report("x", system=f"https://lab.example/{written}/r"),
    )

    answer = lab.register(body)

    assert (answer.status, answer.issue_expressions) == (422, {f"{REPORT}.identifier[0].system"})


def test_the_system_may_hold_a_number_that_identifies_the_organization(lab: Integrator) -> None:
    assert lab.register(register_body("x", system="https://lab.example/77")).status == 201


def test_the_answer_is_short_and_says_so(lab: Integrator) -> None:
    answer = lab.register(body())

    resource = answer.json["parameter"][0]["resource"]
    assert "presentedForm" not in resource
    assert resource["meta"]["tag"][0]["code"] == "SUBSETTED"
    assert answer.headers["content-type"] == "application/fhir+json"


def test_a_summary_of_more_than_64_kib_is_left_out_of_the_answer(lab: Integrator) -> None:
    coding = {"system": "urn:x", "code": "c", "display": "x" * 1_000}
    items = [{"coding": [coding]}] * 70

    answer = lab.register(register_body("long", category=items))

    resource = answer.json["parameter"][0]["resource"]
    assert resource.keys() == {"resourceType", "id", "meta", "identifier", "status", "code"}
    assert resource["meta"]["tag"][0]["code"] == "SUBSETTED"


def test_an_answer_shortens_a_code_of_more_than_64_kib(lab: Integrator) -> None:
    coding = {"system": "urn:x", "code": "c", "display": "x" * 1_000}
    code = {"coding": [coding] * 70, "text": "x"}

    registered = lab.register(register_body("long-code", code=code))

    resource = registered.json["parameter"][0]["resource"]
    assert resource["code"] == {"coding": [coding], "text": "x"}
    assert resource.keys() == {"resourceType", "id", "meta", "identifier", "status", "code"}
    assert resource["meta"]["tag"][0]["code"] == "SUBSETTED"


def test_the_first_issue_says_that_the_report_was_created(lab: Integrator) -> None:
    issues = lab.register(body()).json["parameter"][1]["resource"]["issue"]

    assert issues[0]["severity"] == "information"
    assert issues[0]["code"] == "informational"
    assert "created" in issues[0]["diagnostics"]


def test_last_modified_of_a_registration_is_as_the_specification_writes_it(
    lab: Integrator,
) -> None:
    answer = lab.register(body())

    updated = answer.json["parameter"][0]["resource"]["meta"]["lastUpdated"]
    assert answer.headers["last-modified"] == updated


def test_times_are_stored_as_utc_with_the_digits_given(lab: Integrator) -> None:
    sent = body(effectiveDateTime="2026-11-20T23:30:00.120-03:00", issued="2026-11-20T23:59:60Z")

    read = lab.get(lab.register(sent).headers["location"]).json

    assert read["effectiveDateTime"] == "2026-11-21T02:30:00.120Z"
    assert read["issued"] == "2026-11-21T00:00:00Z"


def test_a_time_without_an_offset_is_accepted_with_a_warning(lab: Integrator) -> None:
    answer = lab.register(body(issued="2026-11-20T10:00:00"))

    issues = answer.json["parameter"][1]["resource"]["issue"]
    assert lab.get(answer.headers["location"]).json["issued"] == "2026-11-20T10:00:00Z"
    assert [f"{REPORT}.issued"] in [
        issue["expression"] for issue in issues if issue["severity"] == "warning"
    ]


def test_decimals_keep_their_digits(lab: Integrator) -> None:
    sent = body(extension=[{"url": "https://x.example", "valueDecimal": 12345}])
    raw = json.dumps(sent).replace("12345", "2.00")

    answer = lab.register(raw.encode())
    read = lab.get(answer.headers["location"])

    assert b'"valueDecimal":2.00' in read.body


@pytest.mark.parametrize(
    "stated",
    [
        hashlib.sha256(PDF).hexdigest(),
        hashlib.sha256(PDF).hexdigest().upper(),
        base64.b64encode(hashlib.sha256(PDF).digest()).decode(),
        hashlib.sha1(PDF).hexdigest(),
        base64.b64encode(hashlib.sha1(PDF).digest()).decode(),
    ],
)
def test_a_right_hash_in_any_known_form_is_not_remarked_on(lab: Integrator, stated: str) -> None:
    answer = lab.register(body(presentedForm=[document(hash=stated)]))

    assert len(answer.json["parameter"][1]["resource"]["issue"]) == 1


@pytest.mark.parametrize("kind", ["application/pdf", "Application/PDF; version=1.7"])
def test_what_is_said_to_be_a_pdf_and_is_none_is_a_warning(lab: Integrator, kind: str) -> None:
    answer = lab.register(body(presentedForm=[document(b"hello", contentType=kind)]))

    (issue,) = answer.json["parameter"][1]["resource"]["issue"][1:]
    assert (issue["severity"], issue["expression"]) == (
        "warning",
        [f"{REPORT}.presentedForm[0].data"],
    )


def test_a_hash_of_another_shape_is_reported_and_kept(lab: Integrator) -> None:
    answer = lab.register(body(presentedForm=[document(hash="sha256:ab")]))

    (issue,) = answer.json["parameter"][1]["resource"]["issue"][1:]
    assert issue["severity"] == "information"
    assert lab.get(answer.headers["location"]).json["presentedForm"][0]["hash"] == "sha256:ab"


def test_a_wrong_hash_is_a_warning(lab: Integrator) -> None:
    answer = lab.register(body(presentedForm=[document(hash="ab" * 32)]))

    issue = answer.json["parameter"][1]["resource"]["issue"][1]
    assert (issue["severity"], issue["expression"]) == (
        "warning",
        [f"{REPORT}.presentedForm[0].hash"],
    )


def test_white_space_in_base64_is_ignored(lab: Integrator) -> None:
    data = base64.encodebytes(PDF).decode()

    answer = lab.register(body(presentedForm=[document() | {"data": data}]))
    read = lab.get(answer.headers["location"]).json

    assert base64.b64decode(read["presentedForm"][0]["data"]) == PDF


@pytest.mark.parametrize(("size", "status"), [(5_242_880, 201), (5_242_881, 413)])
def test_a_document_has_at_most_five_mebibytes(lab: Integrator, size: int, status: int) -> None:
    answer = lab.register(body(presentedForm=[document(PDF + b"x" * (size - len(PDF)))]))

    assert answer.status == status
    if status == 413:
        assert answer.issues[0]["code"] == "too-costly"
        assert answer.issue_expressions == {f"{REPORT}.presentedForm[0].data"}


def test_terminology_never_fails_a_registration(lab: Integrator) -> None:
    category = [
        {"coding": [{"system": "http://terminology.hl7.org/CodeSystem/v2-0074", "code": "NOPE"}]},
        {"coding": [{"system": "http://snomed.info/sct", "code": "1"}]},
    ]

    answer = lab.register(body(category=category))

    issues = answer.json["parameter"][1]["resource"]["issue"][1:]
    assert [(issue["severity"], issue["code"]) for issue in issues] == [
        ("warning", "invalid"),
        ("information", "invalid"),
    ]


def test_a_code_system_that_is_not_held_is_reported_once_with_all_its_places(
    lab: Integrator,
) -> None:
    coding = {"system": "http://snomed.info/sct", "code": "1"}

    answer = lab.register(body(category=[{"coding": [coding, coding]}, {"coding": [coding]}]))

    [remark] = answer.json["parameter"][1]["resource"]["issue"][1:]
    assert remark["expression"] == [
        f"{REPORT}.category[0].coding[0].system",
        f"{REPORT}.category[0].coding[1].system",
        f"{REPORT}.category[1].coding[0].system",
    ]


def test_the_places_of_one_remark_are_limited_to_a_hundred(lab: Integrator) -> None:
    coding = {"system": "http://snomed.info/sct", "code": "1"}

    answer = lab.register(body(category=[{"coding": [coding] * 103}]))

    [remark] = answer.json["parameter"][1]["resource"]["issue"][1:]
    assert len(remark["expression"]) == 100
    assert remark["diagnostics"].endswith("(and in 3 more places)")


def test_references_to_the_parts_lead_to_them_wherever_they_stand(lab: Integrator) -> None:
    sent = body(of_patient={"managingOrganization": {"reference": "Organization/o1"}})

    read = lab.get(lab.register(sent).headers["location"]).json
    person = lab.get(f"/fhir/r4/{read['subject']['reference']}").json

    assert person["managingOrganization"]["reference"] == read["performer"][0]["reference"]
    assert read["subject"]["display"] == "Ana Inés López"
    assert read["subject"]["identifier"]["value"] == "AAB123456"


def test_a_patient_is_identified_by_the_first_complete_identifier(lab: Integrator) -> None:
    complete = {"system": "urn:mrn", "value": "7"}
    sent = body(of_patient={"identifier": [{"value": "6"}, {"system": "urn:mrn"}, complete]})

    read = lab.get(lab.register(sent).headers["location"]).json

    assert read["subject"]["identifier"] == complete


def test_if_none_exist_has_no_effect(lab: Integrator) -> None:
    first = lab.register(body(), If_None_Exist="identifier=other|thing")
    again = lab.register(body(), If_None_Exist="nonsense")

    assert (first.status, again.status) == (201, 201)
    assert first.body == again.body


def test_an_invalid_resubmission_is_refused(lab: Integrator) -> None:
    lab.register(body())

    assert lab.register(body(category=None)).status == 400


def test_another_content_under_the_same_identifier_gets_the_first_answer(lab: Integrator) -> None:
    first = lab.register(body())

    assert lab.register(body(conclusion="other")).body == first.body


@pytest.mark.parametrize("preference", ["minimal", "representation", "OperationOutcome"])
def test_a_preference_is_honoured_and_echoed(lab: Integrator, preference: str) -> None:
    answer = lab.register(body(), Prefer=f"return={preference}")

    kinds = {"representation": "Parameters", "OperationOutcome": "OperationOutcome"}
    assert answer.status == 201
    assert answer.headers["preference-applied"] == f"return={preference}"
    if preference == "minimal":
        assert answer.body == b""
    else:
        assert answer.json["resourceType"] == kinds[preference]


def test_create_registers_a_report_that_contains_its_parts(lab: Integrator) -> None:
    sent = report(
        "C-1",
        contained=[patient(), organization()],
        subject={"reference": "#p1"},
        performer=[{"reference": "#o1"}],
    )

    created = lab.request("POST", "/fhir/r4/DiagnosticReport", sent)
    again = lab.request("POST", "/fhir/r4/DiagnosticReport", sent)

    assert created.status == 201
    assert created.body == again.body
    assert created.json["resourceType"] == "DiagnosticReport"
    assert "contained" not in created.json
    literal = created.json["subject"]["reference"]
    assert lab.get(f"/fhir/r4/{literal}").json["name"] == patient()["name"]


def test_create_and_register_share_their_identifiers(lab: Integrator) -> None:
    registered = lab.register(register_body("C-2"))
    sent = report(
        "C-2",
        contained=[patient(), organization()],
        subject={"reference": "#p1"},
        performer=[{"reference": "#o1"}],
    )

    created = lab.request("POST", "/fhir/r4/DiagnosticReport", sent)

    assert created.headers["location"] == registered.headers["location"]


def observation(**changes: Any) -> dict[str, Any]:
    sound = {"resourceType": "Observation", "id": "v1", "status": "final", "code": {"text": "Na"}}
    return sound | changes


def create(lab: Integrator, value: str, *contained: Any) -> Answer:
    sent = self_contained(value, contained=[*contained], result=[{"reference": "#v1"}])
    return lab.request("POST", "/fhir/r4/DiagnosticReport", sent)


@pytest.mark.parametrize("strange", [{"resourceType": "Specimen"}, {"id": "s1"}, "s1", None])
def test_what_create_contains_and_nothing_can_refer_to_is_named(
    lab: Integrator, strange: Any
) -> None:
    answer = create(lab, "C-6", patient(), organization(), observation(), strange)

    assert answer.status == 400
    assert {expression[:29] for expression in answer.issue_expressions} == {
        "DiagnosticReport.contained[3]"
    }


def test_a_narrative_comes_back_without_entities_of_html(lab: Integrator) -> None:
    div = '<div xmlns="http://www.w3.org/1999/xhtml">{}</div>'
    text = {"status": "generated", "div": div.format("1&nbsp;mg &amp; 2&nbsp;mg &LT; 3&micro;g")}
    plain = div.format("1\u00a0mg &amp; 2\u00a0mg &lt; 3\u00b5g")
    contained = [patient(text=text), organization(), observation(text=text)]
    sent = self_contained("C-20", contained=contained, text=text, result=[{"reference": "#v1"}])

    created = lab.request("POST", "/fhir/r4/DiagnosticReport", sent).json
    read = lab.get(f"/fhir/r4/DiagnosticReport/{created['id']}").json
    part = lab.get(f"/fhir/r4/{created['subject']['reference']}").json

    assert read["text"]["div"] == plain
    assert read["contained"][0]["text"]["div"] == plain
    assert part["text"]["div"] == plain


def test_create_keeps_what_a_report_contains_besides_its_parts(lab: Integrator) -> None:
    created = create(lab, "C-4", patient(), observation(), organization())

    assert created.json["contained"] == [observation()]
    assert lab.get(created.headers["location"]).json["result"] == [{"reference": "#v1"}]


PRACTITIONER = {"resourceType": "Practitioner", "id": "d1", "name": [{"family": "Paz"}]}
ROLE = {
    "resourceType": "PractitionerRole",
    "id": "r1",
    "practitioner": {"reference": "#d1"},
    "organization": {"reference": "#o1"},
}


def test_create_gives_a_patient_the_contained_resources_that_it_refers_to(lab: Integrator) -> None:
    of_report = {"url": "https://lab.example/of", "valueReference": {"reference": "#"}}
    role = ROLE | {"extension": [of_report]}
    contained = [
        patient(generalPractitioner=[{"reference": "#r1", "type": "PractitionerRole"}]),
        organization(),
        PRACTITIONER,
        role,
    ]
    sent = self_contained("C-9", contained=contained)

    created = lab.request("POST", "/fhir/r4/DiagnosticReport", sent).json
    read = lab.get(f"/fhir/r4/{created['subject']['reference']}").json

    of_report = of_report | {"valueReference": {"reference": f"DiagnosticReport/{created['id']}"}}
    changed = {"organization": {"reference": created["performer"][0]["reference"]}}
    assert "contained" not in created
    assert read["contained"] == [ROLE | changed | {"extension": [of_report]}, PRACTITIONER]
    assert read["generalPractitioner"][0]["reference"] == "#r1"


def test_create_leaves_in_a_report_what_it_refers_to_as_well_as_its_patient(
    lab: Integrator,
) -> None:
    contained = [
        patient(generalPractitioner=[{"reference": "#d1"}]),
        organization(),
        ROLE,
        PRACTITIONER,
    ]
    sent = self_contained("C-10", contained=contained, resultsInterpreter=[{"reference": "#r1"}])

    created = lab.request("POST", "/fhir/r4/DiagnosticReport", sent).json
    read = lab.get(f"/fhir/r4/{created['subject']['reference']}").json

    assert [contained_resource["id"] for contained_resource in created["contained"]] == [
        "r1",
        "d1",
    ]
    assert read["contained"] == [PRACTITIONER]


def test_create_points_at_what_a_patient_refers_to_where_it_stood(lab: Integrator) -> None:
    doctor = {"reference": "#d1", "type": "Device"}
    contained = [
        patient(generalPractitioner=[doctor, {"reference": "#d2"}]),
        organization(),
        PRACTITIONER | {"birthDate": "2024-02-30"},
    ]

    structural = lab.request(
        "POST", "/fhir/r4/DiagnosticReport", self_contained("C-11", contained=contained)
    )
    contained[2] = PRACTITIONER
    unknown = lab.request(
        "POST", "/fhir/r4/DiagnosticReport", self_contained("C-11", contained=contained)
    )

    at = "DiagnosticReport.contained"
    of_references = {
        f"{at}[0].generalPractitioner[0].type",
        f"{at}[0].generalPractitioner[1].reference",
    }
    assert unknown.issue_expressions == of_references
    assert structural.issue_expressions == {f"{at}[2].birthDate", *of_references}


def test_create_points_at_what_is_contained_where_it_stood(lab: Integrator) -> None:
    wrong = (
        patient(gender="x"),
        organization(name=1),
        observation(status="x"),
        observation(id="v2"),
    )

    structural = create(lab, "C-5", *wrong)
    unreferred = create(lab, "C-5", patient(), organization(), observation(), *wrong[3:])

    at = "DiagnosticReport.contained"
    wrong_elements = {f"{at}[0].gender", f"{at}[1].name", f"{at}[2].status"}
    assert structural.issue_expressions == {*wrong_elements, f"{at}[3]"}
    assert unreferred.issue_expressions == {f"{at}[3]"}


def test_a_wrong_id_of_a_part_is_reported_once(lab: Integrator) -> None:
    sent = self_contained("C-7", contained=[patient(id="p_1"), organization()])
    sent["subject"] = {"reference": "#p_1"}

    answer = lab.request("POST", "/fhir/r4/DiagnosticReport", sent)

    assert [issue["expression"] for issue in answer.issues] == [
        ["DiagnosticReport.contained[0].id"]
    ]


@pytest.mark.parametrize("again", [patient(birthDate="1999-01-01"), observation()])
def test_ids_of_contained_resources_are_unique(lab: Integrator, again: dict[str, Any]) -> None:
    answer = create(lab, "C-6", patient(), organization(), observation(), again)

    assert (answer.status, answer.issue_expressions) == (400, {"DiagnosticReport.contained[3].id"})


def test_a_type_that_contradicts_its_reference_is_refused_wherever_it_stands(
    lab: Integrator,
) -> None:
    sent = body(
        of_patient={"managingOrganization": {"reference": "Organization/o1", "type": "Patient"}},
        subject={"reference": "Patient/p1", "type": "Group"},
        result=[
            {"reference": "Observation/old/_history/1", "type": "http://lab.example/Observation"},
            {"reference": "#v1", "type": "Specimen"},
        ],
        contained=[observation(subject={"reference": "Patient/p1", "type": "Device"})],
    )

    answer = lab.register(sent)

    at = "Parameters.parameter[2].resource"
    assert (answer.status, answer.issue_expressions) == (
        400,
        {
            "Parameters.parameter[0].resource.managingOrganization.type",
            f"{at}.subject.type",
            f"{at}.result[0].type",
            f"{at}.result[1].type",
            f"{at}.contained[0].subject.type",
        },
    )


def test_create_knows_the_types_of_what_is_contained(lab: Integrator) -> None:
    sent = self_contained(
        "C-8",
        contained=[patient(), organization(), observation()],
        subject={"reference": "#p1", "type": "Organization"},
        performer=[{"reference": "#o1", "type": "Organization"}],
        result=[{"reference": "#v1", "type": "Patient"}],
    )

    answer = lab.request("POST", "/fhir/r4/DiagnosticReport", sent)

    at = "DiagnosticReport"
    assert (answer.status, answer.issue_expressions) == (
        400,
        {f"{at}.subject.type", f"{at}.result[0].type"},
    )


@pytest.mark.parametrize(
    "reference",
    [
        {"reference": "Patient/p1", "type": "Patient"},
        {"reference": "Patient/p1", "type": "http://hl7.org/fhir/StructureDefinition/Patient"},
        {"reference": "https://elsewhere.example/Patient/7", "type": "Organization"},
        {"reference": "urn:uuid:5c2d3a4e-0d8e-4b0e-8a3e-2f7f3f6f5a11", "type": "Device"},
        {"display": "Whoever was on duty", "type": "Practitioner"},
    ],
)
def test_a_type_that_agrees_or_cannot_be_compared_is_kept(
    lab: Integrator, reference: dict[str, str]
) -> None:
    extension = [{"url": "https://lab.example/seen-by", "valueReference": reference}]

    answer = lab.register(body(extension=extension))

    assert answer.status == 201, answer.body
    kept = lab.get(answer.headers["location"]).json["extension"][0]["valueReference"]
    assert kept["type"] == reference["type"]


def test_create_without_its_parts_is_refused(lab: Integrator) -> None:
    answer = lab.request("POST", "/fhir/r4/DiagnosticReport", report("C-3"))

    assert answer.status == 400
    assert len(answer.issues) == 2


def test_percent_24_is_the_dollar_sign(lab: Integrator) -> None:
    assert lab.request("POST", "/fhir/r4/DiagnosticReport/%24register", body()).status == 201


def test_a_document_is_kept_as_it_was_sent(service: RunningService, lab: Integrator) -> None:
    location = lab.register(body()).headers["location"]
    bundle = lab.get(location.removesuffix("/1")).json

    url = bundle["entry"][0]["resource"]["presentedForm"][0]["url"]
    raw = lab.get(url.removeprefix(service.base_url))

    assert (raw.body, raw.headers["content-type"]) == (PDF, "application/pdf")
    assert service.integrator().get(url).status == 404


@pytest.mark.parametrize("system", ["http://[x", "https://[::1", "urn:x", "no scheme"])
def test_an_organization_may_be_named_by_any_system(lab: Integrator, system: str) -> None:
    sent = body(of_organization={"identifier": [{"system": system, "value": "x"}]})

    assert lab.register(sent).status in (201, 400)


def test_create_with_a_patient_without_id_is_refused(lab: Integrator) -> None:
    sent = report(
        "C-9",
        contained=[patient(id=None), organization()],
        subject={"reference": "#None"},
        performer=[{"reference": "#o1"}],
    )

    assert lab.request("POST", "/fhir/r4/DiagnosticReport", sent).status == 400


@pytest.mark.parametrize(("length", "status"), [(2048, 201), (2049, 400)])
def test_an_identifier_has_at_most_2048_characters(
    lab: Integrator, length: int, status: int
) -> None:
    system = "urn:x"

    answer = lab.register(register_body("x" * (length - len(system)), system=system))

    assert answer.status == status


def test_what_identifies_is_clear_in_every_entry(lab: Integrator) -> None:
    oid = {"coding": [{"system": "urn:oid:2", "code": "1"}]}
    body = parameters(
        patient=patient(identifier=[{"system": "DNI", "value": "1"}]),
        organization=organization(meta={"profile": ["Laboratory"]}),
        diagnosticReport=report(
            "x",
            code={"text": "Blood count", "coding": [{"system": "LAB", "code": "1"}]},
            conclusionCode=[{"id": "c", **oid}, {"id": "c", "text": "x"}],
            _conclusion={"extension": [{"url": "note", "valueString": "x"}]},
        ),
    )

    answer = lab.register(body)

    assert answer.status == 400
    assert answer.issue_expressions == {
        "Parameters.parameter[0].resource.identifier[0].system",
        "Parameters.parameter[1].resource.meta.profile[0]",
        f"{REPORT}.code.coding[0].system",
        f"{REPORT}.conclusionCode[0].coding[0].system",
        f"{REPORT}.conclusionCode[1].id",
        f"{REPORT}.conclusion.extension[0].url",
    }


def test_all_problems_are_reported_at_once(lab: Integrator) -> None:
    wrong = report(
        "x",
        identifier=[{"system": "https://lab.example/r", "value": " "}],
        status="amended",
        category=[{"text": "Hematology"}],
        code={"txt": "Blood count", "coding": [{"display": "Blood count"}]},
        subject={"reference": "Patient/other"},
        conclusion=7,
        effectivePeriod={"start": "2026-03-02", "end": "2026-03-01"},
        presentedForm=[document(hash=None), {"title": "empty"}, {"url": "ftp://x", "size": "1"}],
        modifierExtension=[{"url": "https://x.example", "valueString": "x"}],
        effectiveDateTime=None,
    )
    body = parameters(
        patient=patient(gender="none", telecom=[{"system": "fax", "value": "1"}]),
        organization=organization(),
        diagnosticReport=wrong,
    )

    answer = lab.register(body)

    assert answer.status == 400
    assert answer.issue_expressions == {
        f"{REPORT}.identifier[0].value",
        f"{REPORT}.status",
        f"{REPORT}.category[0]",
        f"{REPORT}.code",
        f"{REPORT}.code.text",
        f"{REPORT}.code.coding[0].code",
        f"{REPORT}.subject.reference",
        f"{REPORT}.conclusion",
        f"{REPORT}.effective",
        f"{REPORT}.presentedForm[0]",
        f"{REPORT}.presentedForm[1]",
        f"{REPORT}.presentedForm[2].size",
        f"{REPORT}.presentedForm[2].url",
        f"{REPORT}.modifierExtension",
        "Parameters.parameter[0].resource.gender",
        "Parameters.parameter[0].resource.telecom[0].system",
    }
    codes = [issue["code"] for issue in answer.issues]
    assert "business-rule" in codes
    assert codes.index("business-rule") == len(codes) - codes.count("business-rule")


def test_a_problem_that_follows_from_another_is_left_out(lab: Integrator) -> None:
    elements = {"category": 7, "code": [1], "subject": "Patient/p1", "presentedForm": ["x"]}

    answer = lab.register(register_body("x", **elements))

    at = {"category", "code", "subject", "presentedForm[0]"}
    assert answer.issue_expressions == {f"{REPORT}.{place}" for place in at}


def test_a_broken_field_is_reported_before_a_hundred_broken_rules(lab: Integrator) -> None:
    modifier = {"url": "https://x.example", "valueString": "x"}
    media = [{"link": {"display": "x"}, "modifierExtension": [modifier]}] * 100

    answer = lab.register(body(media=media, category=[{"text": "Hematology"}]))

    assert answer.status == 400
    assert answer.issues[0]["expression"] == [f"{REPORT}.category[0]"]
    assert {issue["code"] for issue in answer.issues[1:]} == {"business-rule"}


@pytest.mark.parametrize(
    "reference",
    [
        "Practitioner/d1",
        "Practitioner/dr_smith",
        "/Practitioner/d1",
        "Practitioner?identifier=https://registry.example/licences|81234",
    ],
)
def test_a_relative_reference_that_leads_nowhere_is_kept_with_a_warning(
    lab: Integrator, reference: str
) -> None:
    answer = lab.register(body(resultsInterpreter=[{"reference": reference}]))

    warned = answer.json["parameter"][1]["resource"]["issue"][1:]
    place = f"{REPORT}.resultsInterpreter[0].reference"
    assert [(item["severity"], item["expression"]) for item in warned] == [("warning", [place])]
    read = lab.get(answer.headers["location"]).json
    assert read["resultsInterpreter"] == [{"reference": reference}]


def test_thousands_of_remarks_cost_no_more_than_a_hundred(lab: Integrator) -> None:
    started = time.process_time()

    studies = [{"reference": f"ImagingStudy/{number}"} for number in range(20_000)]
    answer = lab.register(body(imagingStudy=studies))

    issues = answer.json["parameter"][1]["resource"]["issue"]
    assert (answer.status, len(issues)) == (201, 101)
    assert time.process_time() - started < 10


def test_a_name_that_a_sender_made_up_is_not_shown(lab: Integrator) -> None:
    strange = "a name that FHIR could not have"
    specimen = {"resourceType": "Specimen", "id": "s1", strange: [{"reference": "Patient/x"}]}

    answer = lab.register(body(contained=[specimen], specimen=[{"reference": "#s1"}]))

    assert answer.status == 400
    assert [issue["expression"] for issue in answer.issues] == [[f"{REPORT}.contained[0]"]]
    assert strange not in str(answer.issues)
