"""Times, coding systems and assigning authorities, at the edges of what senders write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub_hl7v2.mapping.context import Context, uri
from fhirpub_hl7v2.problems import Code, Unusable
from tests.hl7v2.messages import (
    SETTINGS,
    mapped,
    message,
    obr,
    observation,
    obx,
    pid,
    report_of,
    resources,
    segment,
)

NO_OFFSET = {7: "20260302"}


def moment(text: str, msh: dict[int, str] | None = None) -> str:
    raw = message(pid(), obr({7: "", 22: ""}), obx({2: "TS", 5: text, 6: ""}), msh=msh)
    (made,) = resources(raw, "observation")
    return str(made["valueDateTime"])


# Times


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ("20260302081500-0330", "2026-03-02T08:15:00-03:30"),
        ("20260302081500+0545", "2026-03-02T08:15:00+05:45"),
        ("20260302081500-0000", "2026-03-02T08:15:00+00:00"),
        ("2026-03-02T08:15:00-03:30", "2026-03-02T08:15:00-03:30"),
        ("20260302081500.123456-0330", "2026-03-02T08:15:00-03:30"),
        ("20260302081500.1", "2026-03-02T08:15:00+01:00"),
        ("2026030208", "2026-03-02"),
        ("202603", "2026-03"),
        ("2026", "2026"),
    ],
)
def test_a_time_has_its_own_offset_or_that_of_the_header(sent: str, found: str) -> None:
    assert moment(sent) == found


@pytest.mark.parametrize("offset", ["-0330", "+0545", "+0000"])
def test_the_offset_of_the_header_is_that_of_times_without_one(offset: str) -> None:
    found = moment("20260302081500", {7: f"20260302104500{offset}"})

    assert found == f"2026-03-02T08:15:00{offset[:3]}:{offset[3:]}"


def test_without_an_offset_in_the_header_the_time_zone_of_the_settings_counts() -> None:
    assert moment("20260702081500", NO_OFFSET) == "2026-07-02T08:15:00+02:00"


def test_a_time_of_local_mean_time_is_refused() -> None:
    raw = message(pid(), obr({7: "185001011200", 22: ""}), obx(), msh=NO_OFFSET)

    with pytest.raises(Unusable, match=r"OBR\[1\]-7: must be a time such as"):
        mapped(raw)


def test_a_time_without_any_offset_is_refused_with_a_way_out() -> None:
    raw = message(pid(), obr({22: ""}), obx(), msh=NO_OFFSET)

    with pytest.raises(Unusable, match=r"OBR\[1\]-7: has no offset: set \[message\] time_zone"):
        mapped(raw, replace(SETTINGS, time_zone=""))


# Codes


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ("A^^99LOC^B^Bee^99X", "Bee"),
        ("A^Ay^99LOC^B^Bee^99X", "Ay"),
        ("A^^99LOC^B^^99X", "A"),
        ("^^^B", "B"),
    ],
)
def test_a_display_goes_before_each_code_as_text(sent: str, text: str) -> None:
    made = observation({2: "CWE", 5: sent, 6: ""})

    assert made["valueCodeableConcept"]["text"] == text


def test_each_coding_has_the_system_of_its_own_name_and_its_own_display() -> None:
    made = observation({2: "CWE", 5: "1-8^One^LN^2^Two^SCT^^^as written", 6: ""})

    assert made["valueCodeableConcept"] == {
        "coding": [
            {"system": "http://loinc.org", "code": "1-8", "display": "One"},
            {"system": "http://snomed.info/sct", "code": "2", "display": "Two"},
        ],
        "text": "as written",
    }


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("99Loc", "urn:x:local"),
        ("99LOC", ""),
        ("LN", "urn:x:own"),
        ("ln", "http://loinc.org"),
        ("HL70078", "urn:x:flags"),
        ("hl70001", "http://terminology.hl7.org/CodeSystem/v2-0001"),
        ("1.2.840", "urn:oid:1.2.840"),
    ],
)
def test_a_coding_system_is_first_looked_up_in_the_settings(name: str, system: str) -> None:
    codes = {"99Loc": "urn:x:local", "LN": "urn:x:own", "HL70078": "urn:x:flags"}

    assert Context(replace(SETTINGS, codes=codes)).coding_system(name) == system


@pytest.mark.parametrize(
    ("identifier", "system"),
    [
        ("1.2.840", "urn:oid:1.2.840"),
        ("2.0", "urn:oid:2.0"),
        ("1.2.840x", ""),
        ("1.02", ""),
        ("3.1", ""),
        ("1.", ""),
        ("5E0B4F7A-8A38-4D07-9A6C-0D1E4C0F7A11", "urn:uuid:5e0b4f7a-8a38-4d07-9a6c-0d1e4c0f7a11"),
        ("5e0b4f7a-8a38-4d07-9a6c-0d1e4c0f7a11x", ""),
        ("https://a.example", "https://a.example"),
        ("https://a.example x", ""),
        ("lab", ""),
    ],
)
def test_only_an_oid_a_uuid_or_a_uri_is_a_system(identifier: str, system: str) -> None:
    assert uri(identifier) == system


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("LN", "http://loinc.org"),
        ("LOINC", "http://loinc.org"),
        ("ln", "http://loinc.org"),
        ("SCT", "http://snomed.info/sct"),
        ("SNOMED-CT", "http://snomed.info/sct"),
        ("I9C", "http://hl7.org/fhir/sid/icd-9-cm"),
        ("I10", "http://hl7.org/fhir/sid/icd-10"),
        ("I10C", "http://hl7.org/fhir/sid/icd-10-cm"),
        ("CVX", "http://hl7.org/fhir/sid/cvx"),
        ("NDC", "http://hl7.org/fhir/sid/ndc"),
        ("RxNorm", "http://www.nlm.nih.gov/research/umls/rxnorm"),
        ("HL70074", "http://terminology.hl7.org/CodeSystem/v2-0074"),
        ("hl70074", "http://terminology.hl7.org/CodeSystem/v2-0074"),
        ("HL7007", None),
        ("1.2.3", "urn:oid:1.2.3"),
        ("1.02.3", None),
        ("3.1", None),
        ("https://a.example/codes", "https://a.example/codes"),
        ("99LOC", None),
    ],
)
def test_the_system_of_a_code_is_that_of_its_name(name: str, system: str | None) -> None:
    (coding,) = report_of({4: f"1^Blood count^{name}"})["code"]["coding"]

    assert coding.get("system") == system


# Assigning authorities


@pytest.mark.parametrize(
    "number",
    ["7^^1.2.3^ISO", "7^X^1.2.3", "7^X&1.2.3", "7^X&1.2.3&ISO", "7^&1.2.3", "7^1.2.3"],
)
def test_an_authority_with_an_oid_may_be_components_or_parts(number: str) -> None:
    identifier = {"system": "urn:oid:1.2.3", "value": "7"}

    assert report_of({3: number})["identifier"] == [identifier]


def others(number: str) -> dict[str, Any]:
    settings = replace(SETTINGS, authorities={"*": "https://a.example/", "LIS": "urn:x:lis"})
    (identifier,) = report_of({3: number}, settings=settings)["identifier"]
    return dict(identifier)


def systems(*numbers: str) -> list[str]:
    return [others(number)["system"] for number in numbers]


def test_two_authorities_never_share_a_system() -> None:
    found = systems("7^a/b", "7^a b", "7^a^b^c", "7^x^b^a", "7^x^b", "7^*", "7^LIS", "7^lis")

    assert len(set(found)) == len(found)
    assert found[:3] == [
        "https://a.example/a%2Fb",
        "https://a.example/a%20b",
        "https://a.example/c/b",
    ]


@pytest.mark.parametrize(
    ("number", "system"),
    [
        ("7^X^1.2.3^ISO", "urn:oid:1.2.3"),
        ("7^urn:x:lab", "urn:x:lab"),
        ("7^LIS^1.2.3^ISO", "urn:x:lis"),
        ("7^X^54D1^CLIA", "https://a.example/CLIA/54D1"),
        ("7^X^54D1", "https://a.example/id/54D1"),
    ],
)
def test_an_authority_that_is_known_is_not_below_the_address_of_all_others(
    number: str, system: str
) -> None:
    assert others(number) == {"system": system, "value": "7"}


def test_a_number_of_an_unknown_authority_has_not_the_system_of_numbers_without_one() -> None:
    settings = replace(SETTINGS, report_system="urn:x:reports")

    with pytest.raises(Unusable, match="names no assigning authority that is known"):
        report_of({3: "7^X"}, settings=settings)
    assert report_of({3: "7"}, settings=settings)["identifier"][0]["system"] == "urn:x:reports"


@pytest.mark.parametrize(
    ("segments", "place"),
    [
        ([pid({3: "7^^^X"}), obr(), obx()], "PID[1]-3"),
        ([pid(), obr({3: "7^X"}), obx()], "OBR[1]-3"),
        ([pid(), obr({2: "7^X", 3: ""}), obx()], "OBR[1]-2"),
        ([pid(), segment("ORC", {3: "7^X"}), obr({3: ""}), obx()], "ORC[1]-3"),
        ([pid(), segment("ORC", {2: "7^X"}), obr({3: ""}), obx()], "ORC[1]-2"),
    ],
)
def test_an_unknown_authority_is_named_with_its_place_and_code(
    segments: list[str], place: str
) -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(*segments))

    found = [(problem.place, problem.code) for problem in refused.value.problems]
    assert found == [(place, Code.NOT_FOUND)]


@pytest.mark.parametrize(("field", "place"), [(7, "OBR[1]-7"), (22, "OBR[1]-22")])
def test_a_wrong_time_is_named_with_its_place_and_code(field: int, place: str) -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), obr({field: "soon"}), obx()))

    (problem,) = refused.value.problems
    assert (problem.place, problem.code) == (place, Code.DATA_TYPE)
