from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from fhirpub.config.settings import Config, FhirConfig
from fhirpub.testing.service import Integrator, RunningService

ADDRESSES = ["/metadata", "/fhir/r4/metadata"]


def test_both_addresses_give_the_same_bytes(lab: Integrator) -> None:
    here, there = lab.get("/metadata"), lab.get("/fhir/r4/metadata")

    assert (here.status, here.body) == (200, there.body)
    assert here.headers["etag"] == there.headers["etag"]


@pytest.mark.parametrize("path", ADDRESSES)
def test_the_statement_needs_a_token(service: RunningService, path: str) -> None:
    assert service.request("GET", path).status == 401


def test_the_statement_can_be_public(tmp_path: Path) -> None:
    config = replace(Config(), fhir=FhirConfig(metadata_public=True))
    with RunningService(tmp_path, config=config) as service:
        assert [service.request("GET", path).status for path in ADDRESSES] == [200, 200]


def test_the_statement_is_what_it_should_be(lab: Integrator) -> None:
    statement = lab.get("/metadata").json

    assert statement["fhirVersion"] == "4.0.1"
    assert statement["format"] == ["json", "xml"]
    assert statement["kind"] == "instance"
    assert statement["implementation"]["url"] == f"{lab.service.base_url}/fhir/r4"


def test_the_patch_formats_are_those_that_r4_means_by_their_types(lab: Integrator) -> None:
    formats = lab.get("/metadata").json["patchFormat"]

    assert formats == ["application/merge-patch+json", "application/json-patch+json"]


def test_the_patch_of_fhirs_media_type_is_documented(lab: Integrator) -> None:
    (report,) = (
        declared
        for declared in lab.get("/metadata").json["rest"][0]["resource"]
        if declared["type"] == "DiagnosticReport"
    )

    (patch,) = (declared for declared in report["interaction"] if declared["code"] == "patch")
    assert "a DiagnosticReport as application/fhir+json" in patch["documentation"]
    assert "conclusion, presentedForm, status" in patch["documentation"]


def test_every_declared_interaction_is_there(lab: Integrator) -> None:
    statement = lab.get("/metadata").json

    declared = {resource_entry["type"] for resource_entry in statement["rest"][0]["resource"]}
    assert declared == {
        "AuditEvent",
        "Binary",
        "CapabilityStatement",
        "CodeSystem",
        "DiagnosticReport",
        "Observation",
        "OperationDefinition",
        "Organization",
        "Patient",
        "Practitioner",
        "ServiceRequest",
        "Specimen",
    }


def declared_of(lab: Integrator, type_name: str) -> dict[str, Any]:
    types = lab.get("/metadata").json["rest"][0]["resource"]
    (declared,) = (one for one in types if one["type"] == type_name)
    return cast("dict[str, Any]", declared)


def test_of_what_comes_with_reports_it_declares_that_it_is_read_and_found(
    lab: Integrator,
) -> None:
    declared = declared_of(lab, "Observation")

    assert {item["code"] for item in declared["interaction"]} == {
        *("read", "vread", "search-type", "history-instance", "history-type")
    }
    names = [parameter["name"] for parameter in declared["searchParam"]]
    assert {"identifier", "code", "patient", "date", "specimen"} <= {*names}
    assert len(names) == len({*names})


def test_it_declares_what_is_included(lab: Integrator) -> None:
    report, result = declared_of(lab, "DiagnosticReport"), declared_of(lab, "Observation")

    assert {"DiagnosticReport:result", "DiagnosticReport:patient"} <= {*report["searchInclude"]}
    assert "searchRevInclude" not in report
    assert {*result["searchRevInclude"]} == {
        "DiagnosticReport:result",
        "Observation:has-member",
        "Observation:derived-from",
    }


def test_the_definition_of_the_operation_has_entries_that_repeat(lab: Integrator) -> None:
    definition = lab.get("/fhir/r4/OperationDefinition/DiagnosticReport-register").json

    found = {(one["use"], one["name"]): one for one in definition["parameter"]}
    result, answered = found["in", "observation"], found["out", "observation"]
    assert (result["min"], result["max"], result["type"]) == (0, "*", "Observation")
    assert (answered["min"], answered["max"], answered["type"]) == (0, "*", "Reference")
    assert found["in", "patient"]["max"] == "1"


@pytest.mark.parametrize(
    ("type_name", "interactions"),
    [
        ("Patient", ["read", "vread", "history-instance", "search-type"]),
        ("Organization", ["read", "vread"]),
    ],
)
def test_of_parts_it_declares_what_can_be_done(
    lab: Integrator, type_name: str, interactions: list[str]
) -> None:
    types = lab.get("/metadata").json["rest"][0]["resource"]

    (declared,) = (name["interaction"] for name in types if name["type"] == type_name)
    assert [one["code"] for one in declared] == interactions


def test_the_statement_can_be_read_as_a_resource(lab: Integrator) -> None:
    assert lab.get("/fhir/r4/CapabilityStatement/fhirpub").body == lab.get("/metadata").body


def test_the_definition_of_the_operation_can_be_read(lab: Integrator) -> None:
    statement = lab.get("/metadata").json
    report = next(
        resource_entry
        for resource_entry in statement["rest"][0]["resource"]
        if resource_entry["type"] == "DiagnosticReport"
    )

    definition = lab.get(report["operation"][0]["definition"]).json

    assert (definition["resourceType"], definition["code"]) == ("OperationDefinition", "register")


def test_a_client_that_has_the_statement_gets_304(lab: Integrator) -> None:
    tag = lab.get("/metadata").headers["etag"]

    assert lab.get("/metadata", If_None_Match=tag).status == 304


@pytest.mark.parametrize("type_name", ["CapabilityStatement", "OperationDefinition", "Binary"])
def test_another_id_of_our_own_types_is_a_404(lab: Integrator, type_name: str) -> None:
    assert lab.get(f"/fhir/r4/{type_name}/other").status == 404
