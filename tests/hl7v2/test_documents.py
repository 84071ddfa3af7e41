"""Documents in results (OBX of the type ED), or rendered from them."""

from __future__ import annotations

import base64
import hashlib

import pytest

from fhirpub_hl7v2.problems import Unusable
from tests.hl7v2.messages import mapped, message, obr, obx, pid, report_of, resources

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
    "field", ["^AP^PDF^Base64^%%%", "^AP^PDF^Base64^", "^AP^^Base64^QQ==", "^AP^PDF^Other^QQ=="]
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
