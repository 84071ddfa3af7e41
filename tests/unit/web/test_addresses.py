"""Which address was meant by one that leads nowhere, and which method."""

from __future__ import annotations

import pytest

from fhirpub.web.addresses import Addresses

TYPE = "/fhir/r4/DiagnosticReport"
PATHS = (
    TYPE,
    f"{TYPE}/{{}}",
    f"{TYPE}/$register",
    f"{TYPE}/$validate",
    f"{TYPE}/_search",
    f"{TYPE}/{{}}/_history",
    f"{TYPE}/{{}}/_history/{{}}",
    "/fhir/r4/Patient/{}",
    "/fhir/r4/metadata",
    "/oauth/token",
    "/openapi.json",
    "/.well-known/jwks.json",
    "/health/live",
    "/webhooks/v1/endpoints",
)
ADDRESSES = Addresses(PATHS)


def said(path: str, method: str = "GET") -> str:
    return str(ADDRESSES.refuse(method, path))


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/fhir/r4/diagnosticreport", TYPE),
        ("/fhir/r4/DiagnosticReports", TYPE),
        ("/fhir/r4/Diagnostic-Report/$register", f"{TYPE}/$register"),
        ("/fhir/r4/DiagnosticReport/", TYPE),
        ("/fhir/r4/DiagnosticReport//$register", f"{TYPE}/$register"),
        ("/fhir/r4/DiagnosticReport/$Register", f"{TYPE}/$register"),
        ("/fhir/r4/DiagnosticReport/$regster/", f"{TYPE}/$register"),
        ("/fhir/r4/DiagnosticReport/0b8ffb7e/history", f"{TYPE}/{{id}}/_history"),
        ("/fhir/DiagnosticReport", TYPE),
        ("/fhir/DiagnosticReport/0b8ffb7e", f"{TYPE}/{{id}}"),
        ("/fhir/stu3/DiagnosticReport/0b8ffb7e", f"{TYPE}/{{id}}"),
        ("/DiagnosticReport/0b8ffb7e", f"{TYPE}/{{id}}"),
        ("/fhir/R4/DiagnosticReport", TYPE),
        ("/baseR4/DiagnosticReport/$register", f"{TYPE}/$register"),
        ("/fhir/r4/fhir/r4/DiagnosticReport", TYPE),
        ("/fhir/r4/patient/1", "/fhir/r4/Patient/{id}"),
        ("/fhir/r4/metadatas", "/fhir/r4/metadata"),
        ("/fhir/r4/Metadata", "/fhir/r4/metadata"),
        ("/oauth/Token", "/oauth/token"),
        ("/oauth2/token", "/oauth/token"),
        ("/token", "/oauth/token"),
        ("/health", "/health/live"),
        ("/webhooks/endpoint", "/webhooks/v1/endpoints"),
        ("/auth/v1/token", "/oauth/token"),
        ("/jwks.json", "/.well-known/jwks.json"),
    ],
)
def test_the_nearest_address_is_named(path: str, meant: str) -> None:
    assert said(path) == f"there is nothing at this address: did you mean {meant}?"


def test_of_several_addresses_with_one_end_the_first_is_named() -> None:
    addresses = Addresses(("/fhir/r4/metadata", "/metadata", "/x/{}/metadata"))

    assert str(addresses.refuse("GET", "/y/metadata")).endswith("did you mean /fhir/r4/metadata?")


@pytest.mark.parametrize("path", ["/", "", "/favicon.ico", "/fhir", "/fhir/r4", "//", "/x" * 5000])
def test_otherwise_the_base_and_the_types_are_named(path: str) -> None:
    assert said(path) == (
        "there is nothing at this address: the base is /fhir/r4, with the types "
        "DiagnosticReport; /openapi.json describes every address"
    )


@pytest.mark.parametrize(
    "path", ["/fhir/r4/Observation", "/fhir/r4/observation/1", "/Observation"]
)
def test_a_type_of_r4_that_is_not_served_is_named_with_those_that_are(path: str) -> None:
    refusal = ADDRESSES.refuse("GET", path)

    assert refusal.details == "type-unknown"
    assert str(refusal) == (
        "Observation is not among the types of this service: DiagnosticReport, Patient"
    )


@pytest.mark.parametrize("path", ["/fhir/r4/Patient", "/fhir/r4/patients", "/fhir/r4/Patient/"])
def test_a_type_that_is_only_read_is_not_searched(path: str) -> None:
    refusal = ADDRESSES.refuse("GET", path)

    assert refusal.details == "type-not-searchable"
    assert str(refusal) == "each Patient is only read, by its id: /fhir/r4/Patient/{id}"


def test_an_operation_that_there_is_not_is_answered_with_those_that_there_are() -> None:
    assert said(f"{TYPE}/$everything").endswith("the operations are $register, $validate")


def test_what_stands_behind_eight_segments_is_not_looked_at() -> None:
    assert said("/a/b/c/d/e/f/g/DiagnosticReport").endswith(f"did you mean {TYPE}?")
    assert "did you mean" not in said("/a/b/c/d/e/f/g/h/DiagnosticReport")


def test_a_bundle_is_sent_to_the_base() -> None:
    refusal = ADDRESSES.refuse("POST", "/fhir/r4/Bundle")

    assert refusal.details == "batch-unsupported"
    assert "/fhir/r4" in str(refusal)


@pytest.mark.parametrize(
    "path", ["/fhir/r4/Perez", "/Juan/Perez", "/fhir/r4/DiagnosticReport/a/b"]
)
def test_nothing_that_was_sent_is_repeated(path: str) -> None:
    assert not {"Juan", "Perez", "a/b"} & set(said(path).split())


@pytest.mark.parametrize(
    ("method", "path", "methods", "words"),
    [
        ("DELETE", f"{TYPE}/1", ["GET", "PATCH"], "a status such as entered-in-error"),
        ("DELETE", "/fhir/r4/Patient/1", ["GET"], "not supported here: nothing is deleted"),
        ("PUT", f"{TYPE}/1", ["GET", "PATCH"], "change elements by PATCH"),
        ("PUT", "/fhir/r4/Patient/1", ["GET", "HEAD", "OPTIONS"], "here: use GET"),
        ("PATCH", "/fhir/r4/Patient/1", ["GET", "HEAD", "OPTIONS"], "here: use GET"),
        ("POST", f"{TYPE}/register", ["GET", "PATCH"], f"did you mean {TYPE}/$register?"),
        ("POST", f"{TYPE}/search", ["GET", "PATCH"], f"did you mean {TYPE}/_search?"),
        ("GET", f"{TYPE}/$register", ["POST", "OPTIONS"], "GET is not supported here: use POST"),
        ("BREW", f"{TYPE}/1", ["GET"], "this method is not supported here: use GET"),
        ("DELETE", "/openapi.json", ["GET"], "DELETE is not supported here: use GET"),
        ("DELETE", "/fhir/r4", ["POST"], "DELETE is not supported here: use POST"),
        ("GET", "/fhir/r4", ["POST"], "GET is not supported here: use POST"),
    ],
)
def test_a_method_is_refused_with_what_to_use(
    method: str, path: str, methods: list[str], words: str
) -> None:
    assert words in str(ADDRESSES.refuse_method(method, path, methods))


@pytest.mark.parametrize("methods", [["GET", "HEAD", "OPTIONS"], ["PATCH", "GET", "OPTIONS"]])
def test_only_methods_that_lead_on_are_advised(methods: list[str]) -> None:
    advised = str(ADDRESSES.refuse_method("POST", "/openapi.json", methods)).partition(": ")[2]

    assert advised == ("use PATCH or GET" if "PATCH" in methods else "use GET")


def test_what_cannot_be_changed_is_not_said_to_be_marked_as_an_error() -> None:
    refusal = ADDRESSES.refuse_method("DELETE", "/fhir/r4/Patient/1", ["GET", "HEAD", "OPTIONS"])

    assert str(refusal) == "DELETE is not supported here: nothing is deleted"
