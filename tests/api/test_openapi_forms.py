"""The OpenAPI document has the forms of which generators make typed clients, without a warning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body
from tests.shelf import SHELF


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The document of a service with every resource type of the included plugins."""
    names = SHELF
    config = Config(plugins=PluginsConfig(enabled=names))
    with RunningService(tmp_path_factory.mktemp("shelf"), config=config) as running:
        return running.request("GET", "/openapi.json").json


def objects_in(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every JSON object below a node, but for examples."""
    if isinstance(node, dict):
        yield node
        node = [item for name, item in node.items() if name != "example"]
    if isinstance(node, list):
        for item in node:
            yield from objects_in(item)


def test_every_constant_and_list_of_values_has_a_type(complete: Any) -> None:
    untyped = [
        schema
        for schema in objects_in(complete)
        if ("const" in schema or isinstance(schema.get("enum"), list)) and "type" not in schema
    ]

    assert untyped == []


def test_every_body_is_of_a_type_that_a_generated_client_can_write(complete: Any) -> None:
    unknown = {
        media_type
        for operations in complete["paths"].values()
        for operation in operations.values()
        for media_type in operation.get("requestBody", {"content": {}})["content"]
        if not media_type.endswith(("json", "x-www-form-urlencoded"))
    }

    assert unknown == set()


def test_no_body_is_an_array(complete: Any) -> None:
    # A Python client with one among its bodies fails in each call, whatever it sends.
    bodies = [
        form["schema"]
        for operations in complete["paths"].values()
        for operation in operations.values()
        for form in operation.get("requestBody", {"content": {}})["content"].values()
    ]
    places = [schema.get("$ref", "").rpartition("/")[2] for schema in bodies]
    schemas = [
        complete["components"]["schemas"].get(place, schema)
        for place, schema in zip(places, bodies, strict=True)
    ]

    assert len(schemas) > 20
    assert not [schema for schema in schemas if schema.get("type") == "array"]


def test_every_form_of_an_answer_of_fhir_has_the_same_schema(complete: Any) -> None:
    differing = [
        operation["operationId"]
        for operations in complete["paths"].values()
        for operation in operations.values()
        for response in operation["responses"].values()
        if len({str(form.get("schema")) for form in response.get("content", {}).values()}) > 1
    ]

    assert differing == ["readBinary"] * 2  # a document has a type of its own


def test_a_schema_that_others_refer_to_is_an_open_object_a_choice_or_an_array(
    complete: Any,
) -> None:
    schemas = complete["components"]["schemas"]
    closed = {
        name
        for name, schema in schemas.items()
        if "properties" in schema and "additionalProperties" not in schema
    }

    assert closed == {"TokenRequest", "RevocationRequest"}  # forms


def test_each_component_has_a_name_of_its_own_in_every_language(complete: Any) -> None:
    schemas = complete["components"]["schemas"]
    names = [name.replace(".", "").replace("-", "").lower() for name in schemas]

    assert len(names) == len({*names})
    assert not [schema for schema in objects_in(schemas) if isinstance(schema.get("title"), str)]


def test_no_component_has_the_name_of_a_list_in_it(complete: Any) -> None:
    # The generated Python would use one variable for both.
    shadowed = [
        name
        for name, schema in complete["components"]["schemas"].items()
        for field, inner in schema.get("properties", {}).items()
        if inner.get("type") == "array" and field.replace("_", "").lower() == name.lower()
    ]

    assert shadowed == []


def test_every_choice_of_several_types_has_a_name(complete: Any) -> None:
    unnamed = [
        operation["operationId"]
        for operations in complete["paths"].values()
        for operation in operations.values()
        for part in (operation.get("requestBody", {}), *operation["responses"].values())
        for form in part.get("content", {}).values()
        if "anyOf" in form.get("schema", {})
    ]

    assert unnamed == []


def test_an_entry_of_a_search_has_the_type_of_its_resource(
    service: RunningService, lab: Integrator
) -> None:
    document = service.request("GET", "/openapi.json").json
    lab.register(register_body("typed"))
    bundle = lab.get("/fhir/r4/DiagnosticReport?_include=*").json
    schemas = document["components"]["schemas"]
    mapping = schemas["Bundle.entry.resource"]["discriminator"]["mapping"]

    Draft202012Validator({**document, "$ref": "#/components/schemas/Bundle"}).validate(bundle)
    assert {entry["resource"]["resourceType"] for entry in bundle["entry"]} <= {*mapping}
