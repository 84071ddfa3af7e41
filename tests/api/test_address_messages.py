"""What is answered to addresses and methods that the service does not have."""

from __future__ import annotations

import pytest

from fhirpub.testing.service import Integrator
from tests.bodies import register_body

TYPE = "/fhir/r4/DiagnosticReport"


@pytest.mark.parametrize(
    ("method", "path", "status", "problem", "words"),
    [
        ("GET", "/fhir/r4/diagnosticreport", 404, "address-unknown", f"did you mean {TYPE}?"),
        ("POST", "/DiagnosticReport/$register", 404, "address-unknown", f"{TYPE}/$register?"),
        ("POST", f"{TYPE}/%24Register", 404, "address-unknown", f"{TYPE}/$register?"),
        ("GET", "/fhir/r4/Organization", 404, "type-not-searchable", "/fhir/r4/Organization/{id}"),
        ("GET", "/fhir/r4/Immunization", 404, "type-unknown", "DiagnosticReport"),
        ("POST", "/fhir/r4/Bundle", 404, "batch-unsupported", "send a batch to the FHIR base"),
        ("PUT", f"{TYPE}/1", 405, "method-unsupported", "change elements by PATCH"),
        ("DELETE", f"{TYPE}/1", 405, "method-unsupported", "nothing is deleted"),
        ("GET", f"{TYPE}/$register", 405, "method-unsupported", "use POST"),
        ("POST", f"{TYPE}/register", 405, "method-unsupported", f"{TYPE}/$register?"),
        ("DELETE", "/fhir/r4/Patient/1", 405, "method-unsupported", "nothing is deleted"),
    ],
)
def test_an_address_that_leads_nowhere_is_answered_with_what_was_meant(
    lab: Integrator, method: str, path: str, status: int, problem: str, words: str
) -> None:
    body = register_body("N-1") if method == "POST" else None

    refused = lab.request(method, path, body)

    assert (refused.status, refused.problems) == (status, [problem])
    assert words in refused.issues[0]["diagnostics"]
