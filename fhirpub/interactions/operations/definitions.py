"""OperationDefinitions of ``$register``, ``$validate`` and ``$revise`` for each type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import fhirpub
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.context import Context
from fhirpub.plugin_api import Operation, ResourceType

_CHANGING = ("register", "revise")
_OF_ONE = ("revise",)


def operations_of(resource_type: ResourceType) -> Sequence[str]:
    """Return the codes of the operations that a type has."""
    revised = ("revise",) if resource_type.repeating else ()
    return ("register", "validate", *revised)


def definitions_of(resource_type: ResourceType, context: Context) -> Iterator[JsonObject]:
    """Yield the definitions of the operations that a type has."""
    yield _register_definition(resource_type, context)
    yield _validate_definition(resource_type, context)
    if "revise" in operations_of(resource_type):
        yield _revise_definition(resource_type, context)
    for declared in context.operations.get(resource_type.name, ()):
        yield _plugin_definition(resource_type, context, declared.operation)


def _register_definition(resource_type: ResourceType, context: Context) -> JsonObject:
    name = resource_type.name
    return _operation(
        resource_type,
        context,
        code="register",
        title=f"Register a {name}",
        description=(
            f"Registers a {name} under its one business identifier. The same identifier again "
            "creates nothing and gets the first answer."
        ),
        parameter=_entries(resource_type),
    )


def _revise_definition(resource_type: ResourceType, context: Context) -> JsonObject:
    name = resource_type.name
    return _operation(
        resource_type,
        context,
        code="revise",
        title=f"Correct a {name} with what came with it",
        description=(
            f"Takes the registration of the {name} again, as it should be now. What differs "
            "becomes its next version, together with the next versions of what came with it. "
            "If nothing differs, nothing is stored. If-Match is required, with the ETag of the "
            "version that was read."
        ),
        parameter=_entries(resource_type),
    )


def _plugin_definition(
    resource_type: ResourceType, context: Context, operation: Operation
) -> JsonObject:
    """Return the definition of an operation of a plugin, which changes nothing."""
    taken = [
        {
            "name": parameter.name,
            "use": "in",
            "min": int(parameter.required),
            "max": "1",
            "documentation": parameter.meaning,
            "type": parameter.type,
        }
        for parameter in operation.parameters
    ]
    given = {"name": "return", "use": "out", "min": 1, "max": "1", "type": "Binary"}
    found = _operation(
        resource_type,
        context,
        code=operation.code,
        title=operation.title,
        description=operation.description,
        parameter=[*taken, given],
    )
    name = "".join(word.capitalize() for word in operation.code.split("-"))
    return {
        **found,
        "name": f"{resource_type.name}{name}",
        "type": not operation.on_instance,
        "instance": operation.on_instance,
    }


def _entries(resource_type: ResourceType) -> list[JsonObject]:
    """Return the entries of a registration, and those of the response to it."""
    name, parts = resource_type.name, resource_type.parts
    taken = [
        _entry(resource_type.entry_name, "in", name),
        *(
            _entry(part.name, "in", part.type, least=int(part.required), several=part.repeats)
            for part in parts
        ),
    ]
    given = [
        _entry(resource_type.entry_name, "out", name),
        *(
            _entry(part.name, "out", "Reference", least=0, several=True)
            for part in resource_type.repeating
        ),
        _entry("issues", "out", "OperationOutcome"),
    ]
    return [*taken, *given]


def _entry(name: str, use: str, kind: str, *, least: int = 1, several: bool = False) -> JsonObject:
    most = "*" if several else "1"
    return {"name": name, "use": use, "min": least, "max": most, "type": kind}


def _validate_definition(resource_type: ResourceType, context: Context) -> JsonObject:
    name = resource_type.name
    return _operation(
        resource_type,
        context,
        code="validate",
        title=f"Try the registration of a {name}",
        description=(
            f"Returns all problems for which a registration of a {name} would be refused, and the "
            "remarks on it; stores nothing. Also takes a body of $register as it is."
        ),
        parameter=[
            {"name": "resource", "use": "in", "min": 1, "max": "1", "type": name},
            {"name": "mode", "use": "in", "min": 0, "max": "1", "type": "code"},
            {"name": "profile", "use": "in", "min": 0, "max": "1", "type": "uri"},
            {"name": "return", "use": "out", "min": 1, "max": "1", "type": "OperationOutcome"},
        ],
    )


def _operation(
    resource_type: ResourceType,
    context: Context,
    *,
    code: str,
    title: str,
    description: str,
    parameter: list[JsonObject],
) -> JsonObject:
    name = resource_type.name
    return {
        "resourceType": "OperationDefinition",
        "id": f"{name}-{code}",
        "url": f"{context.fhir_url}/OperationDefinition/{name}-{code}",
        "name": f"{name}{code.capitalize()}",
        "title": title,
        "status": "active",
        "kind": "operation",
        "date": fhirpub.RELEASED,
        "description": description,
        "affectsState": code in _CHANGING,
        "code": code,
        "resource": [name],
        "system": False,
        "type": code not in _OF_ONE,
        "instance": code in _OF_ONE,
        "parameter": parameter,
    }
