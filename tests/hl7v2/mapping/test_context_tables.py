"""Codes of HL7 tables, each with its meaning in FHIR."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from fhirpub_hl7v2.problems import Unusable
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


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("A", "amended"),
        ("N", "final"),
        ("O", "registered"),
        ("R", "preliminary"),
        ("S", "preliminary"),
        ("U", "final"),
        ("f", "final"),
    ],
)
def test_further_states_of_results(sent: str, status: str) -> None:
    assert observation({11: sent})["status"] == status


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("A", "preliminary"),
        ("O", "registered"),
        ("R", "preliminary"),
        ("S", "registered"),
        ("X", "cancelled"),
        ("f", "final"),
    ],
)
def test_further_states_of_all_results(sent: str, status: str) -> None:
    (found,) = resources(message(pid(), obr({25: sent}), obx({11: ""})), "observation")

    assert found["status"] == status


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("I", "registered"),
        ("O", "registered"),
        ("R", "partial"),
        ("S", "registered"),
        ("f", "final"),
    ],
)
def test_further_states_of_reports(sent: str, status: str) -> None:
    assert report_of({25: sent})["status"] == status


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ("N", "final"),
        ("IO", "registered"),
        ("XF", "final"),
        ("XI", "partial"),
        ("FI", "partial"),
        ("AW", "corrected"),
        ("S", "preliminary"),
        ("fc", "corrected"),
    ],
)
def test_further_states_that_results_prove(states: str, status: str) -> None:
    results = [obx({4: str(at), 11: state}) for at, state in enumerate(states)]

    (found,) = resources(message(pid(), obr({25: ""}), *results), "diagnosticReport")

    assert found["status"] == status


def test_a_result_without_a_state_proves_none() -> None:
    raw = message(pid(), obr({25: ""}), obx(), obx({4: "2", 11: ""}))

    assert resources(raw, "diagnosticReport")[0]["status"] == "unknown"


@pytest.mark.parametrize(
    ("sent", "gender"),
    [
        ("A", "other"),
        ("F", "female"),
        ("Female", "female"),
        ("M", "male"),
        ("male", "male"),
        ("N", "other"),
        ("O", "other"),
    ],
)
def test_the_gender_is_that_of_pid_8(sent: str, gender: str) -> None:
    (patient,) = resources(message(pid({8: sent}), obr(), obx()), "patient")

    assert patient["gender"] == gender


@pytest.mark.parametrize(
    ("sent", "use"),
    [
        ("BAD", "old"),
        ("D", "usual"),
        ("L", "official"),
        ("M", "maiden"),
        ("MSK", "anonymous"),
        ("N", "nickname"),
        ("NAV", "temp"),
        ("R", "official"),
        ("S", "anonymous"),
        ("TEMP", "temp"),
        ("B", None),
    ],
)
def test_the_use_of_a_name_is_that_of_its_type(sent: str, use: str | None) -> None:
    (patient,) = resources(message(pid({5: f"Ashdown^^^^^^{sent}"}), obr(), obx()), "patient")

    assert patient["name"][0].get("use") == use


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


def test_a_coding_system_of_the_settings_goes_before_the_table() -> None:
    settings = replace(SETTINGS, codes={"LN": "https://lab.example/codes"})

    (coding,) = report_of({4: "1^Blood count^LN"}, settings=settings)["code"]["coding"]

    assert coding["system"] == "https://lab.example/codes"


@pytest.mark.parametrize(
    ("kind", "subtype", "media_type"),
    [
        ("AP", "PDF", "application/pdf"),
        ("AP", "html", "text/html"),
        ("TEXT", "XML", "text/xml"),
        ("AP", "RTF", "application/rtf"),
        ("TEXT", "PLAIN", "text/plain"),
        ("IM", "JPEG", "image/jpeg"),
        ("IM", "PNG", "image/png"),
        ("IM", "TIFF", "image/tiff"),
        ("IM", "GIF", "image/gif"),
        ("text", "", "text/plain"),
        ("image/webp", "PDF", "image/webp"),
        ("AP", "image/webp", "image/webp"),
    ],
)
def test_the_media_type_of_a_document_is_that_of_ed(
    kind: str, subtype: str, media_type: str
) -> None:
    field = f"^{kind}^{subtype}^Base64^QUJD"
    (report,) = resources(message(pid(), obr(), obx({2: "ED", 5: field})), "diagnosticReport")

    assert report["presentedForm"][0]["contentType"] == media_type


@pytest.mark.parametrize(
    ("encoding", "text"), [("Base64", "QU JD"), ("Hex", "414243"), ("A", "ABC"), ("", "QUJD")]
)
def test_a_document_is_decoded_as_ed_4_states(encoding: str, text: str) -> None:
    field = f"^TEXT^PLAIN^{encoding}^{text}"
    (report,) = resources(message(pid(), obr(), obx({2: "ED", 5: field})), "diagnosticReport")

    assert base64.b64decode(report["presentedForm"][0]["data"]) == b"ABC"


@pytest.mark.parametrize("field", ["^TEXT^X^Base64^QQ==", "^T^^Hex^4", "^T^^Hex^41"])
def test_a_document_of_an_unknown_type_is_a_problem(field: str) -> None:
    with pytest.raises(Unusable, match=r"OBX\[1\]-5"):
        mapped(message(pid(), obr(), obx({2: "ED", 5: field})))


def test_a_document_beside_results_is_the_only_one() -> None:
    raw = message(pid(), obr(), obx({2: "ED", 5: "^AP^PDF^Base64^QUJD"}), obx())

    (report,) = resources(raw, "diagnosticReport")

    assert [each["contentType"] for each in report["presentedForm"]] == ["application/pdf"]
    assert report["result"] == [{"reference": "Observation/result-1"}]


def test_a_rendered_result_has_its_flags_limits_and_comments() -> None:
    raw = message(
        pid(),
        obr(),
        segment("NTE", {3: "The whole is fine."}),
        obx({7: "12.0-16.0", 8: "L~A"}),
        segment("NTE", {3: "Measured twice."}),
        obx({2: "CE", 3: "883-9^ABO^LN", 5: "A^Group A^L~B^Group B^L", 6: ""}),
    )

    (report,) = resources(raw, "diagnosticReport")

    assert base64.b64decode(report["presentedForm"][0]["data"]).decode() == (
        "Blood count\n"
        "Hemoglobin: 13.2 g/dL [L\nA] (12.0-16.0)\n"
        "Measured twice.\n"
        "ABO: Group A; Group B\n"
        "The whole is fine.\n"
    )


def test_a_rendered_text_has_its_lines() -> None:
    raw = message(
        pid(),
        obr(),
        obx({2: "TX", 3: "1^Report^L", 5: "Skin:", 6: ""}),
        obx({2: "TX", 3: "", 5: "no lesion", 6: ""}),
    )

    (report,) = resources(raw, "diagnosticReport")

    assert base64.b64decode(report["presentedForm"][0]["data"]).decode() == (
        "Blood count\nReport: Skin:\nno lesion\n"
    )
