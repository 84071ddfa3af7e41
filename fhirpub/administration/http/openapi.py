"""The OpenAPI description of administration, made from the table of operations."""

from __future__ import annotations

from typing import Any

from fhirpub import __version__
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.administration.table import OPERATIONS

_REFUSALS = {
    "400": "A parameter is wrong, or several are; each is named.",
    "401": "The caller is not authenticated.",
    "404": "What the path names does not exist.",
    "405": "The path has other methods; Allow names them.",
    "408": "The body has not come in time.",
    "409": "The state of what is meant does not allow this.",
    "413": "The body is longer than a megabyte.",
    "415": "The body is not application/json.",
    "422": "The settings of the service do not allow this.",
    "503": "The store is not available at the moment.",
}


def openapi(server: str) -> dict[str, Any]:
    """Return the description (OpenAPI 3.1).

    Args:
        server: The URL of the interface.
    """
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "fhirpub administration", "version": __version__},
        "servers": [{"url": server}],
        "security": [{"bearer": []}, {"caller": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The bootstrap key.",
                },
                "caller": _caller(server),
            },
            "schemas": {"OperationOutcome": {"type": "object"}},
        },
    }


def _caller(server: str) -> dict[str, Any]:
    flow = {"tokenUrl": f"{server}/token", "scopes": {}}
    text = "A token for an assertion of a caller (private_key_jwt, RFC 7523)."
    return {"type": "oauth2", "description": text, "flows": {"clientCredentials": flow}}


def _described(operation: Operation) -> dict[str, Any]:
    final = " It cannot be undone." if operation.is_final else ""
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.command.split()[0]],
        "summary": operation.summary,
        "description": f"What `fhirpub {operation.command}` does.{final}",
        "parameters": [_parameter(one) for one in operation.parameters if one.place != "body"],
        "responses": {
            str(operation.status): {
                "description": "It is done.",
                "content": {"application/json": {"schema": {}}},
            },
            **{status: _refusal(text) for status, text in _REFUSALS.items()},
        },
    }
    fields = [one for one in operation.parameters if one.place == "body"]
    if fields:
        required = [one.name for one in fields if one.required]
        schema = {
            "type": "object",
            "properties": {one.name: schema_of(one) for one in fields},
            "additionalProperties": False,
            **({"required": required} if required else {}),
        }
        content = {"application/json": {"schema": schema}}
        described["requestBody"] = {"content": content, "required": bool(required)}
    return described


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema = schema_of(parameter)
    text = schema.pop("description")
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": text,
        "schema": schema,
    }


def schema_of(parameter: Parameter) -> dict[str, Any]:
    """Return the JSON Schema of a parameter."""
    schema: dict[str, Any] = {"description": parameter.text}
    if parameter.type == "strings":
        items = {"type": "string", "maxLength": parameter.max_length}
        schema |= {"type": "array", "items": items}
        return schema | _bounds(parameter, "minItems", "maxItems")
    if parameter.type == "objects":
        objects = {"type": "array", "items": {"type": "object"}}
        return schema | objects | _bounds(parameter, "minItems", "maxItems")
    if parameter.type == "instant":
        return schema | {"type": "string", "format": "date-time"}
    schema["type"] = parameter.type
    schema |= _bounds(parameter, "minimum", "maximum")
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.type == "string":
        schema["maxLength"] = parameter.max_length
        schema |= {"minLength": 1} if parameter.place == "path" else {}
    return schema


def _bounds(parameter: Parameter, least: str, most: str) -> dict[str, int]:
    bounds = {least: parameter.minimum, most: parameter.maximum}
    return {name: number for name, number in bounds.items() if number is not None}


def _refusal(text: str) -> dict[str, Any]:
    reference = {"$ref": "#/components/schemas/OperationOutcome"}
    return {"description": text, "content": {"application/fhir+json": {"schema": reference}}}
