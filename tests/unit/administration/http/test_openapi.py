"""The description of administration says of each parameter what the operation checks."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration.http.openapi import openapi, schema_of
from fhirpub.administration.operation import Parameter
from fhirpub.administration.table import OPERATIONS

SERVER = "https://admin.example.org/admin/v1"
DESCRIBED = openapi(SERVER)


def a_parameter(**changes: Any) -> Parameter:
    return Parameter(name="x", text="What it is.", **changes)


@pytest.mark.parametrize(
    ("changes", "schema"),
    [
        ({}, {"type": "string", "maxLength": 2_000}),
        ({"max_length": 5}, {"type": "string", "maxLength": 5}),
        ({"place": "path"}, {"type": "string", "maxLength": 2_000, "minLength": 1}),
        ({"choices": ("a", "b")}, {"type": "string", "maxLength": 2_000, "enum": ["a", "b"]}),
        ({"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 0}),
        ({"type": "integer", "maximum": 9}, {"type": "integer", "maximum": 9}),
        ({"type": "boolean"}, {"type": "boolean"}),
        ({"type": "instant"}, {"type": "string", "format": "date-time"}),
        ({"type": "object"}, {"type": "object"}),
        (
            {"type": "strings", "minimum": 1, "maximum": 9, "max_length": 5},
            {
                "type": "array",
                "items": {"type": "string", "maxLength": 5},
                "minItems": 1,
                "maxItems": 9,
            },
        ),
        (
            {"type": "objects", "maximum": 9},
            {"type": "array", "items": {"type": "object"}, "maxItems": 9},
        ),
    ],
)
def test_a_parameter_has_the_schema_of_its_type(
    changes: dict[str, Any], schema: dict[str, Any]
) -> None:
    assert schema_of(a_parameter(**changes)) == {"description": "What it is.", **schema}


def operations() -> dict[str, dict[str, Any]]:
    return {
        one["operationId"]: one
        for methods in DESCRIBED["paths"].values()
        for one in methods.values()
    }


def test_every_operation_is_described_at_its_address() -> None:
    assert {*operations()} == {one.name for one in OPERATIONS}
    for one in OPERATIONS:
        assert DESCRIBED["paths"][one.path][one.method.lower()]["operationId"] == one.name


def test_the_description_names_the_server_and_where_tokens_are() -> None:
    assert DESCRIBED["servers"] == [{"url": SERVER}]
    schemes = DESCRIBED["components"]["securitySchemes"]
    flow = schemes["caller"]["flows"]["clientCredentials"]
    assert flow["tokenUrl"] == f"{SERVER}/token"
    assert DESCRIBED["security"] == [{"bearer": []}, {"caller": []}]


def test_a_success_has_the_status_of_its_operation_and_refusals_an_outcome() -> None:
    for one in OPERATIONS:
        responses = operations()[one.name]["responses"]
        assert {*responses} == {
            str(one.status),
            *("400", "401", "404", "405", "408", "409", "413", "415", "422", "503"),
        }
        assert "application/json" in responses[str(one.status)]["content"]
        assert "application/fhir+json" in responses["404"]["content"]


def test_a_body_has_the_parameters_of_bodies_and_no_others() -> None:
    added = operations()["tenantAdd"]["requestBody"]
    edited = operations()["clientEdit"]["requestBody"]

    schema = added["content"]["application/json"]["schema"]
    assert (added["required"], schema["required"], [*schema["properties"]]) == (
        True,
        ["name"],
        ["name"],
    )
    assert schema["additionalProperties"] is False
    assert edited["required"] is False
    assert "required" not in edited["content"]["application/json"]["schema"]
    assert "requestBody" not in operations()["tenantList"]


def test_parameters_of_paths_and_queries_are_where_they_are() -> None:
    shown = operations()["quotaShow"]["parameters"]
    listed = operations()["clientList"]["parameters"]

    assert [(one["name"], one["in"], one["required"]) for one in shown] == [
        ("tenant", "path", True)
    ]
    assert [(one["name"], one["in"], one["required"]) for one in listed] == [
        ("tenant", "query", False)
    ]


def test_what_cannot_be_undone_is_described_as_such() -> None:
    for one in OPERATIONS:
        described = operations()[one.name]["description"]
        assert described.startswith(f"What `fhirpub {one.command}` does.")
        assert ("It cannot be undone." in described) is one.is_final


def test_callers_prove_themselves_by_a_bearer_token_of_either_kind() -> None:
    schemes = DESCRIBED["components"]["securitySchemes"]

    assert (schemes["bearer"]["type"], schemes["bearer"]["scheme"]) == ("http", "bearer")
    assert schemes["caller"]["type"] == "oauth2"


def test_operations_are_grouped_by_the_first_word_of_their_commands() -> None:
    assert operations()["endpointAdd"]["tags"] == ["endpoint"]
    assert all(
        operations()[one.name]["tags"] == [one.command.partition(" ")[0]] for one in OPERATIONS
    )


def test_each_refusal_refers_to_a_schema_that_there_is() -> None:
    schemas = DESCRIBED["components"]["schemas"]

    for described in operations().values():
        for status in ("400", "401", "404", "405", "408", "409", "413", "415", "422", "503"):
            content = described["responses"][status]["content"]["application/fhir+json"]
            name = content["schema"]["$ref"].removeprefix("#/components/schemas/")
            assert schemas[name] == {"type": "object"}


def test_a_parameter_has_its_text_beside_its_schema() -> None:
    (tenant,) = operations()["quotaShow"]["parameters"]

    assert tenant["description"]
    assert tenant["schema"] == {"type": "string", "maxLength": 2_000, "minLength": 1}
