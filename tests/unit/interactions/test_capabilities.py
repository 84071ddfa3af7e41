"""What the service states about itself, from the types that are enabled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import fhirpub
from fhirpub.fhir.outcome import CODE_SYSTEM, system_of_problems
from fhirpub.fhir.strict_json import loads_stored
from fhirpub.interactions.capabilities import (
    own_resources,
    reverse_includes,
    search_parameters_of,
    statement,
)
from fhirpub.interactions.context import Context
from fhirpub.plugin_api import Operation, OperationResult
from fhirpub.plugin_api.operations import PluginOperation
from fhirpub.problems import ALL
from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.patients.people import context_of

READ = ["read", "vread", "history-instance", "history-type", "search-type"]


@pytest.fixture
def context(store: SqliteStore) -> Context:
    return context_of(store)


def stated(context: Context, *further: dict[str, Any]) -> dict[str, Any]:
    _tag, body = statement(context, further)
    found: dict[str, Any] = loads_stored(body)
    return found


def resources(context: Context, *further: dict[str, Any]) -> dict[str, dict[str, Any]]:
    (rest,) = stated(context, *further)["rest"]
    return {one["type"]: one for one in rest["resource"]}


def interactions(of: dict[str, Any]) -> list[str]:
    return [one["code"] for one in of["interaction"]]


def test_types_come_before_what_comes_with_them_and_what_is_ours(context: Context) -> None:
    names = [*resources(context, {"type": "Subscription"})]

    assert names[:2] == ["DiagnosticReport", "Immunization"]
    assert names[-6:] == [
        "Patient",
        "Subscription",
        "Binary",
        "CapabilityStatement",
        "CodeSystem",
        "OperationDefinition",
    ]
    assert len(names) == len({*names})
    assert {"Observation", "Specimen", "Organization", "Practitioner"} <= {*names}


def test_a_type_can_be_created_found_and_changed(context: Context) -> None:
    found = resources(context)["DiagnosticReport"]

    assert interactions(found) == [
        "read",
        "vread",
        "history-instance",
        "history-type",
        "create",
        "search-type",
        "patch",
    ]
    assert found["conditionalCreate"] is True
    assert (found["updateCreate"], found["conditionalUpdate"]) == (False, False)
    assert [one["name"] for one in found["operation"]] == ["register", "validate", "revise"]
    assert found["operation"][0]["definition"] == (
        f"{context.fhir_url}/OperationDefinition/DiagnosticReport-register"
    )
    assert found["interaction"][-1]["documentation"].endswith(
        "Elements that can be updated: conclusion, presentedForm, status."
    )


def test_operations_of_plugins_are_named_behind_ours(context: Context) -> None:
    declared = Operation(
        type="Immunization",
        code="card",
        title="-",
        description="-",
        media_type="text/html",
        run=lambda _request: OperationResult(body=b""),
    )
    context = replace(context, operations={"Immunization": [PluginOperation("p", declared)]})

    found = resources(context)

    assert [one["name"] for one in found["Immunization"]["operation"]] == [
        "register",
        "validate",
        "card",
    ]
    assert len(found["DiagnosticReport"]["operation"]) == 3
    assert ("OperationDefinition", "Immunization-card") in own_resources(context, b"")


def test_what_comes_with_others_can_only_be_read_and_found(context: Context) -> None:
    found = resources(context)["Observation"]

    assert interactions(found) == READ
    assert "operation" not in found
    assert found["searchParam"]


def test_patients_have_no_history_of_all(context: Context) -> None:
    found = resources(context)["Patient"]

    assert interactions(found) == ["read", "vread", "history-instance", "search-type"]


def test_parts_can_be_read_alone(context: Context) -> None:
    found = resources(context)

    assert interactions(found["Organization"]) == ["read", "vread"]
    assert interactions(found["Binary"]) == ["read"]
    assert "searchParam" not in found["Organization"]


# Search


def test_the_parameters_of_every_type_come_first_and_once(context: Context) -> None:
    names = [one["name"] for one in search_parameters_of("Observation", context)]

    assert names[:3] == ["_id", "_lastUpdated", "identifier"]
    assert len(names) == len({*names})
    assert {"code", "patient"} <= {*names}


def test_a_parameter_is_documented_by_its_type(context: Context) -> None:
    known = {one["name"]: one for one in search_parameters_of("Observation", context)}

    assert known["code"]["type"] == "token"
    assert known["code"]["documentation"].startswith("system|code, code")
    assert known["date"]["documentation"] == "All prefixes; :missing"
    assert "definition" in known["code"]


def test_what_can_be_included_is_named_both_ways(context: Context) -> None:
    found = resources(context)

    assert "DiagnosticReport:result" in found["DiagnosticReport"]["searchInclude"]
    assert "DiagnosticReport:result" in found["Observation"]["searchRevInclude"]
    assert "DiagnosticReport:result" not in found["Specimen"]["searchRevInclude"]


def test_a_reference_leads_back_to_the_types_that_declarations_show(context: Context) -> None:
    patients = {*reverse_includes("Patient", context)}

    assert {"DiagnosticReport:patient", "Immunization:patient"} <= patients
    assert "DiagnosticReport:result" not in patients
    assert {"Observation:has-member", "Observation:derived-from"} <= {
        *reverse_includes("Observation", context)
    }


# The whole


def test_the_tag_changes_with_what_is_stated(context: Context) -> None:
    tag, body = statement(context)
    again, same = statement(context)
    other, _further = statement(context, [{"type": "Subscription"}])

    assert (tag, body) == (again, same)
    assert tag != other
    assert tag.startswith('W/"')
    assert len(tag) == len('W/""') + 16


def test_the_statement_names_the_types_and_where_to_ask_for_a_token(context: Context) -> None:
    found = stated(context)

    assert found["implementation"] == {
        "description": "Registers, returns, updates and finds DiagnosticReport, Immunization",
        "url": context.fhir_url,
    }
    (rest,) = found["rest"]
    assert rest["security"]["description"].endswith("/oauth/token")
    assert [one["code"] for one in rest["interaction"]] == ["batch"]
    assert found["fhirVersion"] == "4.0.1"


def test_our_own_resources_can_be_read(context: Context) -> None:
    own = own_resources(context, b"statement")

    assert own["CapabilityStatement", "fhirpub"] == b"statement"
    assert {name for kind, name in own if kind == "OperationDefinition"} == {
        "DiagnosticReport-register",
        "DiagnosticReport-validate",
        "DiagnosticReport-revise",
        "Immunization-register",
        "Immunization-validate",
    }


def test_all_problems_have_a_code(context: Context) -> None:
    own = own_resources(context, b"")
    (system,) = [loads_stored(body) for (kind, _name), body in own.items() if kind == "CodeSystem"]

    codes = [one["code"] for one in system["concept"]]
    declared = {code for one in context.types.values() for code in one.problems}
    assert {*codes} == {*(one.value for one in ALL), *declared}
    assert system["count"] == len(codes)
    assert system["concept"][0] == {
        "code": "token-missing",
        "display": "Token missing",
        "definition": "The request has no access token. Send the header "
        "`Authorization: Bearer <token>`, with a token from `/oauth/token`.",
    }


def test_the_ways_to_authenticate_are_coded(context: Context) -> None:
    (rest,) = stated(context)["rest"]

    (service,) = rest["security"]["service"]
    assert service["coding"] == [
        {"system": "http://terminology.hl7.org/CodeSystem/restful-security-service", "code": code}
        for code in ("OAuth", "SMART-on-FHIR")
    ]


def test_formats_of_patches_are_those_that_an_update_takes(context: Context) -> None:
    found = stated(context)

    assert found["format"] == ["json", "xml"]
    assert found["patchFormat"] == [
        "application/merge-patch+json",
        "application/json-patch+json",
    ]


def test_a_type_has_versions_that_no_update_creates(context: Context) -> None:
    report = resources(context)["DiagnosticReport"]

    assert (report["versioning"], report["readHistory"]) == ("versioned", True)
    assert [report[f"conditional{one}"] for one in ("Create", "Read", "Update", "Delete")] == [
        True,
        "full-support",
        False,
        "not-supported",
    ]
    assert report["updateCreate"] is False


def test_the_service_names_itself_and_its_version(context: Context) -> None:
    found = stated(context)

    assert {name: found[name] for name in ("resourceType", "id", "url", "status", "kind")} == {
        "resourceType": "CapabilityStatement",
        "id": "fhirpub",
        "url": f"{context.fhir_url}/CapabilityStatement/fhirpub",
        "status": "active",
        "kind": "instance",
    }
    assert found["version"] == found["software"]["version"] == fhirpub.__version__
    assert (found["publisher"], found["software"]["name"]) == ("fhirpub", "fhirpub")
    assert (found["name"], found["title"]) == ("Fhirpub", "Diagnostic Report Publishing Service")
    assert found["date"] == fhirpub.RELEASED


@pytest.mark.parametrize("type_name", ["Observation", "Patient"])
def test_what_comes_with_others_has_versions_and_is_read_on_conditions(
    context: Context, type_name: str
) -> None:
    found = resources(context)[type_name]

    assert (found["versioning"], found["readHistory"]) == ("versioned", True)
    assert found["conditionalRead"] == "full-support"
    assert "conditionalCreate" not in found


def test_each_type_names_its_profile(context: Context) -> None:
    found = resources(context)

    assert {name: one["profile"] for name, one in found.items()} == {
        name: f"http://hl7.org/fhir/StructureDefinition/{name}" for name in found
    }


def test_the_codes_of_problems_are_a_code_system_that_is_complete(context: Context) -> None:
    system = loads_stored(own_resources(context, b"")["CodeSystem", CODE_SYSTEM])

    assert (system["resourceType"], system["id"]) == ("CodeSystem", CODE_SYSTEM)
    assert system["url"] == system_of_problems(context.fhir_url)
    assert system["version"] == fhirpub.__version__
    assert (system["status"], system["content"], system["caseSensitive"]) == (
        "active",
        "complete",
        True,
    )
    assert (system["name"], system["title"]) == (
        "FhirpubProblem",
        "Problems that an OperationOutcome reports",
    )


def test_each_parameter_of_a_type_has_a_documentation(context: Context) -> None:
    assert {"DiagnosticReport", "Observation"} <= context.searched.keys()
    for name in context.searched:
        for one in search_parameters_of(name, context):
            assert {"name", "type", "documentation"} <= one.keys()
