"""The operations that a type has, as they are defined for clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.interactions.context import Context
from fhirpub.interactions.operations.definitions import definitions_of, operations_of
from fhirpub.plugin_api import Operation, OperationParameter, OperationResult
from fhirpub.plugin_api.operations import PluginOperation
from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.patients.people import context_of

REPORT, VACCINATION = "DiagnosticReport", "Immunization"


@pytest.fixture
def context(store: SqliteStore) -> Context:
    return context_of(store)


def definitions(context: Context, type_name: str) -> dict[str, dict[str, Any]]:
    every = definitions_of(context.types[type_name], context)
    return {one["code"]: one for one in every}


def parameters(of: dict[str, Any], use: str) -> dict[str, tuple[int, str, str]]:
    return {
        one["name"]: (one["min"], one["max"], one["type"])
        for one in of["parameter"]
        if one["use"] == use
    }


def test_only_what_brings_others_can_be_revised(context: Context) -> None:
    assert operations_of(context.types[REPORT]) == ("register", "validate", "revise")
    assert operations_of(context.types[VACCINATION]) == ("register", "validate")
    assert [*definitions(context, REPORT)] == ["register", "validate", "revise"]
    assert [*definitions(context, VACCINATION)] == ["register", "validate"]


@pytest.mark.parametrize(
    ("code", "changes", "of_type"),
    [("register", True, True), ("validate", False, True), ("revise", True, False)],
)
def test_an_operation_is_of_a_type_or_of_one_resource(
    context: Context, code: str, *, changes: bool, of_type: bool
) -> None:
    found = definitions(context, REPORT)[code]

    assert found["affectsState"] is changes
    assert (found["type"], found["instance"], found["system"]) == (of_type, not of_type, False)
    assert found["id"] == f"DiagnosticReport-{code}"
    assert found["url"] == f"{context.fhir_url}/OperationDefinition/DiagnosticReport-{code}"
    assert found["name"] == f"DiagnosticReport{code.capitalize()}"
    assert found["resource"] == [REPORT]
    assert (found["resourceType"], found["kind"]) == ("OperationDefinition", "operation")


@pytest.mark.parametrize("code", ["register", "revise"])
def test_entries_are_as_many_as_a_registration_takes(context: Context, code: str) -> None:
    found = definitions(context, REPORT)[code]

    taken, given = parameters(found, "in"), parameters(found, "out")
    assert taken["diagnosticReport"] == (1, "1", REPORT)
    assert taken["patient"] == (1, "1", "Patient")
    assert taken["observation"] == (0, "*", "Observation")
    assert given["diagnosticReport"] == (1, "1", REPORT)
    assert given["observation"] == (0, "*", "Reference")
    assert given["issues"] == (1, "1", "OperationOutcome")
    assert "patient" not in given


def test_a_validation_takes_one_resource(context: Context) -> None:
    found = definitions(context, REPORT)["validate"]

    assert parameters(found, "in") == {
        "resource": (1, "1", REPORT),
        "mode": (0, "1", "code"),
        "profile": (0, "1", "uri"),
    }
    assert parameters(found, "out") == {"return": (1, "1", "OperationOutcome")}


@pytest.mark.parametrize("on_instance", [True, False])
def test_an_operation_of_a_plugin_changes_nothing(context: Context, *, on_instance: bool) -> None:
    declared = Operation(
        type=REPORT,
        code="patient-summary",
        title="Shows it",
        description="Shows all of it.",
        media_type="text/html",
        run=lambda _request: OperationResult(body=b""),
        on_instance=on_instance,
        parameters=(
            OperationParameter(name="lang", type="code", meaning="The language", required=True),
            OperationParameter(name="size", type="integer", meaning="The size"),
        ),
    )
    context = replace(context, operations={REPORT: [PluginOperation("p", declared)]})

    found = definitions(context, REPORT)["patient-summary"]

    assert found["affectsState"] is False
    assert (found["type"], found["instance"]) == (not on_instance, on_instance)
    assert found["id"] == "DiagnosticReport-patient-summary"
    assert found["name"] == "DiagnosticReportPatientSummary"
    assert (found["title"], found["description"]) == ("Shows it", "Shows all of it.")
    assert parameters(found, "in") == {"lang": (1, "1", "code"), "size": (0, "1", "integer")}
    assert parameters(found, "out") == {"return": (1, "1", "Binary")}
    assert found["parameter"][0]["documentation"] == "The language"
    assert "patient-summary" not in definitions(context, VACCINATION)
