"""Schemas of plugins are checked, and so are the elements that their declarations name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import PluginError
from fhirpub.fhir.schema import Schemas, own_schemas
from fhirpub.plugin_api import CompositionEvents, IdentifierRule, Part, ResourceType, patient
from fhirpub.plugin_host.schemas import _against, compile_schema, schema_and_element_problems

REPORT = ResourceType(
    name="DiagnosticReport",
    parts=(patient(referred_by="subject"),),
    create_statuses=frozenset({"final"}),
    update_statuses=frozenset({"amended"}),
)
FLAG: dict[str, Any] = {
    "$id": "urn:fhirpub:schemas:r4:Flag",
    "type": "object",
    "properties": {
        "resourceType": {"const": "Flag"},
        "status": {"type": "string"},
        "subject": {"$ref": "urn:fhirpub:schemas:r4:datatypes#/$defs/Reference"},
    },
}


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return own_schemas()


def with_schema(schema: object) -> ResourceType:
    schemas: Mapping[str, Any] = {"Flag": schema}
    return replace(
        REPORT,
        name="Flag",
        create_statuses=frozenset({"on"}),
        update_statuses=frozenset({"off"}),
        schemas=schemas,
    )


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"updatable": frozenset({"status", "effective[x]", "extension"})},
        {"times": ("effectivePeriod.start", "presentedForm.creation", "issued")},
        {"codings": ("category",), "attachments": ("presentedForm",)},
        {"summary": ("effective[x]", "performer", "effectiveDateTime")},
        {"parts": (Part(name="p", type="Patient", referred_by="", required=False),)},
        {"events": CompositionEvents("report", ("effective[x]", "code"))},
    ],
)
def test_what_the_type_has_is_accepted(schemas: Schemas, fields: dict[str, Any]) -> None:
    assert _against(schemas, replace(REPORT, **fields)) == []


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"updatable": frozenset({"conclusions"})},
            "updatable: there is no element conclusions; did you mean conclusion?",
        ),
        (
            {"updatable": frozenset({"effectiv[x]"})},
            "updatable: there is no element effectiv[x]; did you mean effective[x]?",
        ),
        (
            {"updatable": frozenset({"status[x]"})},
            "updatable: there is no element status[x]; did you mean status?",
        ),
        ({"summary": ("zzz",)}, "summary: there is no element zzz"),
        (
            {"times": ("effectivePeriod.begin",)},
            "times: there is no element effectivePeriod.begin; did you mean effectivePeriod?",
        ),
        (
            {"times": ("conclusion",)},
            "times: conclusion is of type string, not dateTime or instant",
        ),
        (
            {"times": ("effectivePeriod",)},
            "times: effectivePeriod is of type Period, not dateTime or instant",
        ),
        (
            {"codings": ("status",)},
            "codings: status is of type diagnostic-report-status, not CodeableConcept or Coding",
        ),
        ({"attachments": ("result",)}, "attachments: result is of type Reference, not Attachment"),
        (
            {"attachments": ("media.link",)},
            "attachments: media.link is of type Reference, not Attachment",
        ),
        (
            {"identifier": IdentifierRule(elements=("identifiers",))},
            "identifier: there is no element identifiers; did you mean identifier?",
        ),
        (
            {"identifier": IdentifierRule(elements=("subject",))},
            "identifier: subject is of type Reference, not Identifier",
        ),
        (
            {"parts": (patient(referred_by="patient"),)},
            "part patient: referred_by: there is no element patient",
        ),
        (
            {"parts": (patient(referred_by="code"),)},
            "part patient: referred_by: code is of type CodeableConcept, not Reference",
        ),
        (
            {"parts": (Part(name="p", type="Patien", referred_by="subject"),)},
            "no schema for Patien: the plugin must bring one",
        ),
        (
            {"create_statuses": frozenset({"finale"})},
            "create_statuses: there is no status finale; did you mean final?",
        ),
        (
            {"state_flow": {"final": frozenset({"amendet"})}},
            "state_flow: there is no status amendet; did you mean amended?",
        ),
        ({"update_statuses": frozenset({"7"})}, "update_statuses: there is no status 7"),
        (
            {"events": CompositionEvents("report", ("conclusions",))},
            "events: there is no element conclusions; did you mean conclusion?",
        ),
        ({"name": "Flag"}, "no schema for Flag: the plugin must bring one"),
    ],
)
def test_what_the_type_does_not_have_is_refused(
    schemas: Schemas, fields: dict[str, Any], problem: str
) -> None:
    declared = replace(REPORT, **fields)

    assert _against(schemas, declared) == [f"{declared.name}: {problem}"]


def test_documents_may_be_in_an_element_that_does_not_repeat() -> None:
    once = {"$ref": "urn:fhirpub:schemas:r4:datatypes#/$defs/Attachment"}
    schema = {**FLAG, "properties": {**FLAG["properties"], "file": once}}

    found = schema_and_element_problems(replace(with_schema(schema), attachments=("file",)))

    assert found == []


def test_a_schema_without_trouble_is_accepted() -> None:
    assert schema_and_element_problems(with_schema(FLAG)) == []


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("Flag.schema.json", "must be a JSON Schema as a dict, not str"),
        ({**FLAG, "type": "objekt"}, "is not a JSON Schema at type: 'objekt' is not valid"),
        (
            {**FLAG, "properties": {**FLAG["properties"], "note": 7}},
            "is not a JSON Schema at properties.note: 7 is not of type",
        ),
        ({**FLAG, "$id": "urn:mine"}, "the schema for Flag needs the $id"),
        ({**FLAG, "allOf": [{"$ref": "urn:none"}]}, "the schemas cannot be compiled: Resource"),
        ({**FLAG, "pattern": "("}, "the schemas cannot be compiled: "),
    ],
)
def test_a_schema_that_is_none_is_reported_in_a_line(schema: object, problem: str) -> None:
    (found,) = schema_and_element_problems(with_schema(schema))

    assert found.startswith("Flag: the schema")
    assert problem in found
    assert "\n" not in found


def test_a_type_without_a_status_is_refused() -> None:
    properties = {
        name: property_ for name, property_ in FLAG["properties"].items() if name != "status"
    }

    found = schema_and_element_problems(with_schema({**FLAG, "properties": properties}))

    assert "Flag: has no element status" in found[0]


def test_the_start_reports_every_problem_of_every_type() -> None:
    wrong = replace(REPORT, updatable=frozenset({"one", "two"}), summary=("three",))
    broken = with_schema({**FLAG, "type": "objekt"})
    owners = {"DiagnosticReport": "reports", "Flag": "flags"}

    with pytest.raises(PluginError) as elements:
        compile_schema({"DiagnosticReport": wrong}, owners)
    with pytest.raises(PluginError) as both:
        compile_schema({"DiagnosticReport": wrong, "Flag": broken}, owners)

    assert len(str(elements.value).splitlines()) == 3
    prefixes = [line.split(": ")[0] for line in str(both.value).splitlines()]
    assert prefixes == ["plugin reports"] * 3 + ["plugin flags"]
