"""Operations of plugins in the words of OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping

from fhirpub.fhir.strict_json import JsonObject
from fhirpub.plugin_api.operations import PluginOperation
from fhirpub.web.openapi.operation import Operation, Success

_SCHEMAS: Mapping[str, JsonObject] = {
    "string": {"type": "string"},
    "code": {"type": "string"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "date": {"type": "string", "pattern": "^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$"},
}


def of_plugin(of: PluginOperation) -> Operation:
    """Return what an operation of a plugin does."""
    declared = of.operation
    words = declared.code.split("-")
    result = Success(text="The result.", form="media", schema=declared.media_type)
    return Operation(
        name=words[0] + "".join(word.capitalize() for word in words[1:]),
        summary=declared.title,
        text=declared.description,
        successes={200: result},
        refusals=(404, 406, 422),
        parameters=("_format",),
    )


def parameters_of_plugin(of: PluginOperation | None) -> list[JsonObject]:
    """Return the parameters that an operation of a plugin declares; none if it is no such."""
    return [
        {
            "name": parameter.name,
            "in": "query",
            "description": parameter.meaning,
            "required": parameter.required,
            "schema": _SCHEMAS[parameter.type],
        }
        for parameter in (of.operation.parameters if of else ())
    ]
