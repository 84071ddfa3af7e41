"""Documents in results (OBX of the type ED), or rendered from them."""

from __future__ import annotations

import base64
import hashlib

import pytest

from fhirpub_hl7v2.mapping.documents import add_remark
from fhirpub_hl7v2.problems import Unusable
from tests.hl7v2.messages import mapped, message, obr, obx, pid, report_of, resources, segment

PDF = base64.b64encode(b"%PDF-1.4\n%EOF\n").decode()


def test_a_pdf_is_the_document_of_the_report_and_no_result() -> None:
    raw = message(pid(), obr(), obx({2: "ED", 3: "PDF^Blood count", 5: f"^AP^PDF^Base64^{PDF}"}))

    (report,) = resources(raw, "diagnosticReport")

    assert report["presentedForm"] == [
        {
            "contentType": "application/pdf",
            "title": "Blood count",
            "data": PDF,
            "hash": hashlib.sha256(b"%PDF-1.4\n%EOF\n").hexdigest(),
        }
    ]
    assert "result" not in report


@pytest.mark.parametrize(
    "field",
    [
        "^AP^PDF^Base64^%%%",
        "^AP^PDF^Base64^QUJD%",
        "^AP^PDF^Base64^",
        "^AP^^Base64^QQ==",
        "^AP^PDF^Other^QQ==",
        "^TEXT^X^Base64^QQ==",
        "^T^^Hex^4",
        "^T^^Hex^41",
    ],
)
def test_a_document_that_cannot_be_read_is_a_problem(field: str) -> None:
    with pytest.raises(Unusable, match=r"OBX\[1\]-5"):
        mapped(message(pid(), obr(), obx({2: "ED", 5: field})))


def test_without_a_document_the_results_are_one_as_text() -> None:
    (document,) = report_of({})["presentedForm"]

    assert document["contentType"].startswith("text/plain")
    assert base64.b64decode(document["data"]) == b"Blood count\nHemoglobin: 13.2 g/dL\n"


@pytest.mark.parametrize(
    "field", [f"^AP^^Base64^{PDF}", f"^Octet-stream^^Base64^{PDF}", f"^AP^PDF^^{PDF}"]
)
def test_a_pdf_is_recognized(field: str) -> None:
    (report,) = resources(message(pid(), obr(), obx({2: "ED", 5: field})), "diagnosticReport")

    assert report["presentedForm"][0]["contentType"] == "application/pdf"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({5: "10^3", 6: ""}, "Hemoglobin: 10^3"),
        ({2: "SN", 5: "^10^^5", 6: ""}, "Hemoglobin: 10 5"),
        ({2: "SN", 5: ">^100~^5^-^10", 6: ""}, "Hemoglobin: >100\n5-10"),
        ({2: "XPN", 5: "Ashdown^Juniper", 6: ""}, "Hemoglobin: Ashdown^Juniper"),
        ({5: "5.2", 6: "10^9/L"}, "Hemoglobin: 5.2 10^9/L"),
        ({5: "5.2", 6: "10*9/L^billions^UCUM"}, "Hemoglobin: 5.2 billions"),
        ({5: "5.2", 6: "", 8: "H^High^HL70078~A"}, "Hemoglobin: 5.2 [High\nA]"),
    ],
)
def test_numbers_in_the_rendered_document_do_not_run_together(
    fields: dict[int, str], line: str
) -> None:
    (report,) = resources(message(pid(), obr(), obx(fields)), "diagnosticReport")

    text = base64.b64decode(report["presentedForm"][0]["data"]).decode()
    assert text == f"Blood count\n{line}\n"


def test_a_text_as_document_may_have_a_mark_that_is_not_escaped() -> None:
    raw = message(pid(), obr(), obx({2: "ED", 5: "^TEXT^PLAIN^A^one & two"}))

    (report,) = resources(raw, "diagnosticReport")

    assert base64.b64decode(report["presentedForm"][0]["data"]) == b"one & two"


def test_of_several_documents_each_one_that_cannot_be_read_is_refused() -> None:
    raw = message(pid(), obr(), obx({2: "ED", 5: f"^AP^PDF^Base64^{PDF}~^AP^PDF^Base64^%%%"}))

    with pytest.raises(Unusable, match=r"OBX\[1\]-5: ED-5 must be"):
        mapped(raw)


def test_a_remark_is_added_to_a_rendered_document_and_its_title_stays() -> None:
    (document,) = report_of({})["presentedForm"]

    changed = add_remark(document)

    text = base64.b64decode(document["data"]) + (
        b"The report has other results, which were sent before.\n"
    )
    assert changed == {
        "contentType": document["contentType"],
        "title": "Blood count",
        "data": base64.b64encode(text).decode(),
        "hash": hashlib.sha256(text).hexdigest(),
    }


def test_a_text_that_was_sent_gets_no_remark() -> None:
    raw = message(pid(), obr(), obx({2: "ED", 5: "^TEXT^PLAIN^A^one"}))
    (report,) = resources(raw, "diagnosticReport")
    (document,) = report["presentedForm"]

    assert add_remark(document) == document


@pytest.mark.parametrize(
    ("kind", "subtype", "media_type"),
    [
        ("AP", "PDF", "application/pdf"),
        ("AP", "pdf", "application/pdf"),
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
    ("encoding", "text"),
    [
        *(("Base64", "QU JD"), ("base64", "QUJD"), ("", "QUJD")),
        *(("Hex", "414243"), ("hex", "414243"), ("A", "ABC")),
    ],
)
def test_a_document_is_decoded_as_ed_4_states(encoding: str, text: str) -> None:
    field = f"^TEXT^PLAIN^{encoding}^{text}"
    (report,) = resources(message(pid(), obr(), obx({2: "ED", 5: field})), "diagnosticReport")

    assert base64.b64decode(report["presentedForm"][0]["data"]) == b"ABC"


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


@pytest.mark.parametrize(
    ("kind", "subtype", "media_type"),
    [
        ("AP", "application/pdf", "application/pdf"),
        ("", "text/csv", "text/csv"),
        ("image/webp", "PDF", "image/webp"),
        ("TEXT", "HTML", "text/html"),
        ("TEXT", "", "text/plain"),
    ],
)
def test_a_whole_type_goes_before_a_name_of_the_table(
    kind: str, subtype: str, media_type: str
) -> None:
    raw = message(pid(), obr(), obx({2: "ED", 5: f"^{kind}^{subtype}^A^ABC"}))

    (report,) = resources(raw, "diagnosticReport")

    assert report["presentedForm"][0]["contentType"] == media_type


@pytest.mark.parametrize("kind", ["TEXT", "AP"])
def test_a_type_that_is_in_no_table_is_a_problem(kind: str) -> None:
    with pytest.raises(Unusable, match=r"OBX\[1\]-5: ED-3 must be one of"):
        mapped(message(pid(), obr(), obx({2: "ED", 5: f"^{kind}^WORD^A^ABC"})))


def test_lines_of_a_text_stand_before_its_comments() -> None:
    line = obx({2: "TX", 3: "", 5: "two", 6: ""})
    raw = message(
        pid(),
        obr(),
        obx({2: "TX", 5: "one", 6: ""}),
        segment("NTE", {3: "first"}),
        line,
        segment("NTE", {3: "second"}),
    )

    (report,) = resources(raw, "diagnosticReport")

    text = base64.b64decode(report["presentedForm"][0]["data"]).decode()
    assert text == "Blood count\nHemoglobin: one\ntwo\nfirst\nsecond\n"
