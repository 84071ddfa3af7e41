"""What is sent, in the words of OpenAPI: bodies by name, and the schemas that are not R4's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fhirpub.audit.event import AUDIT_EVENT
from fhirpub.fhir.definitions.schema_components import (
    ANY_RESOURCE,
    OPEN,
    constant,
    one_of,
    ref,
)
from fhirpub.fhir.elements import element_of
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.plugin_api import ResourceType
from fhirpub.web.message.content_negotiation import FHIR_JSON, FHIR_XML, FORM
from fhirpub.web.openapi.parameters import audited, search_parameters
from fhirpub.web.openapi.webhook_schemas import WEBHOOK_BODIES, WEBHOOK_SCHEMAS
from fhirpub.web.services import Services

_TEXT: JsonObject = {"type": "string"}
_ASSERTED: dict[str, JsonObject] = {
    "client_assertion_type": _TEXT,
    "client_assertion": {"description": "A JWT, in place of client_secret.", **_TEXT},
}
_JSON = "application/json"


def body_of(name: str, services: Services, type_name: str) -> JsonObject:
    """Return the body of an operation, nothing if it takes none."""
    if name in WEBHOOK_BODIES:
        schema = WEBHOOK_BODIES[name]
        needed = "required" in schema or "minProperties" in schema
        return {"required": needed, "content": {_JSON: {"schema": schema}}}
    return _BODIES[name](services, type_name) if name else {}


def own_schemas(
    types: Iterable[ResourceType], r4: Mapping[str, JsonObject]
) -> dict[str, JsonObject]:
    """Return the schemas by name that are not R4's; ``r4`` are those that are."""
    own = {**_OWN, **WEBHOOK_SCHEMAS}
    for resource_type in types:
        own |= _registration(resource_type)
        own |= _registered(resource_type)
        own |= _choices(resource_type.name)
        own[f"Update{resource_type.name}"] = _update(resource_type, r4[resource_type.name])
    return own


def example_of(resource_type: ResourceType) -> JsonObject:
    """Return a body of ``$register`` that works; nothing if the type declares no example."""
    if not resource_type.example:
        return {}
    named = [
        *((part.name, part.example) for part in resource_type.parts if part.example),
        (resource_type.entry_name, resource_type.example),
    ]
    entries = [{"name": name, "resource": example} for name, example in named]
    return {"resourceType": "Parameters", "parameter": entries}


def _contained(resource_type: ResourceType) -> JsonObject:
    """Return the same as one resource that contains the others, as FHIR's create takes it."""
    if not resource_type.example:
        return {}
    examples = [dict(part.example) for part in resource_type.parts if part.example]
    local = {
        f"{example['resourceType']}/{example['id']}": f"#{example['id']}" for example in examples
    }
    own: JsonObject = _with_references(resource_type.example, local)
    written = dumps(own)
    # What is contained must be referred to (dom-3), which an entry of $register need not be.
    contained = [example for example in examples if dumps(f"#{example['id']}") in written]
    return {**own, "contained": contained}


def _with_references(node: Any, local: Mapping[str, str]) -> Any:
    """Return a copy with other references."""
    if isinstance(node, Mapping):
        return {name: _with_references(item, local) for name, item in node.items()}
    if isinstance(node, list):
        return [_with_references(item, local) for item in node]
    return local.get(node, node) if isinstance(node, str) else node


def _object(required: Iterable[str] = (), **properties: JsonObject) -> JsonObject:
    named = {"type": "object", "properties": properties, "additionalProperties": OPEN}
    return {**named, "required": [*required]} if required else named


def _form(required: Iterable[str] = (), **properties: JsonObject) -> JsonObject:
    """Return the schema of a form; generators cannot write one with further fields."""
    said = _object(required, **properties)
    del said["additionalProperties"]
    return said


# Bodies.


def _register_body(services: Services, type_name: str) -> JsonObject:
    return _fhir(ref(f"Register{type_name}"), example_of(services.types[type_name]))


def _create_body(services: Services, type_name: str) -> JsonObject:
    return _fhir(ref(type_name), _contained(services.types[type_name]))


def _validate_body(services: Services, type_name: str) -> JsonObject:
    return _fhir(ref(f"Validate{type_name}"), example_of(services.types[type_name]))


def _update_body(services: Services, type_name: str) -> JsonObject:
    resource_type = services.types[type_name]
    statuses = sorted(resource_type.update_statuses)
    change = {"status": statuses[0]}
    body = _fhir(ref(f"Update{type_name}"), {"resourceType": type_name, **change})
    body["description"] += " A JSON Patch is sent as `application/json-patch+json` (RFC 6902)."
    # Named here, the array of a JSON Patch would break every update of a client in Python.
    body["content"]["application/merge-patch+json"] = {
        "schema": ref("MergePatch"),
        "example": change,
    }
    return body


def _search_body(services: Services, type_name: str) -> JsonObject:
    is_audit = type_name == AUDIT_EVENT
    declared = (audited if is_audit else search_parameters)(services, type_name)
    fields = {
        record["name"]: {"description": record["description"], **record["schema"]}
        for record in declared
    }
    return {"required": True, "content": {FORM: {"schema": _form(**fields)}}}


def _token_request(_services: Services, _type_name: str) -> JsonObject:
    # The same fields as JSON are taken too; a client would be made of only one of the two.
    return {"required": True, "content": {FORM: {"schema": ref("TokenRequest")}}}


def _revocation_request(_services: Services, _type_name: str) -> JsonObject:
    return {"required": True, "content": {FORM: {"schema": ref("RevocationRequest")}}}


def _fhir(schema: JsonObject, example: JsonObject) -> JsonObject:
    """Return a body of FHIR. XML is named in words: generators cannot write it, and fail."""
    said = {"schema": schema, **({"example": example} if example else {})}
    text = f"In JSON, or the same in XML as `{FHIR_XML}`."
    return {"required": True, "description": text, "content": {FHIR_JSON: said}}


def _batch_body(services: Services, _type_name: str) -> JsonObject:
    searched = next(iter(services.types), "AuditEvent")  # the latter is there without any plugin
    request = {"method": "GET", "url": f"{searched}?_count=1"}
    example = {"resourceType": "Bundle", "type": "batch", "entry": [{"request": request}]}
    return {
        "required": True,
        "description": "A Bundle of the type `batch`, in JSON.",
        "content": {FHIR_JSON: {"schema": ref("Batch"), "example": example}},
    }


_BODIES: dict[str, Callable[[Services, str], JsonObject]] = {
    "batch": _batch_body,
    "create": _create_body,
    "register": _register_body,
    "revocation": _revocation_request,
    "search": _search_body,
    "token": _token_request,
    "update": _update_body,
    "validate": _validate_body,
}


# Schemas.


def _registration(resource_type: ResourceType) -> dict[str, JsonObject]:
    """Return the schema of a body of ``$register``, and those of its entries."""
    name = f"Register{resource_type.name}"
    parts = resource_type.parts
    required = [resource_type.entry_name, *(part.name for part in parts if part.required)]
    repeating = [part.name for part in parts if part.repeats]
    text = f"One entry each; required: {', '.join(required)}."
    if repeating:
        text += f" Any number of each: {', '.join(repeating)}."
    return _parameters(
        name,
        {resource_type.entry_name: resource_type.name, **{part.name: part.type for part in parts}},
        description=f"A {resource_type.name} with what belongs to it.",
        parameter={"description": text, "minItems": len(required)},
    )


def _registered(resource_type: ResourceType) -> dict[str, JsonObject]:
    """Return the schema of an answer of ``$register``, and those of its entries."""
    return _parameters(
        f"Registered{resource_type.name}",
        {resource_type.entry_name: resource_type.name, "issues": "OperationOutcome"},
        references=[part.name for part in resource_type.repeating],
        description="The resource in summary, then the issues found in it.",
        parameter={"minItems": 1},
    )


def _parameters(
    name: str,
    entries: Mapping[str, str],
    *,
    references: Iterable[str] = (),
    description: str,
    parameter: JsonObject,
) -> dict[str, JsonObject]:
    """Return the schema of Parameters with these entries and types, and those of the entries.

    ``references`` are the names of entries that only refer to a resource.
    """
    named = {
        entry: _object(("name", "resource"), name=constant(entry), resource=ref(kind))
        for entry, kind in entries.items()
    } | {
        entry: _object(
            ("name", "valueReference"), name=constant(entry), valueReference=ref("Reference")
        )
        for entry in references
    }
    items = one_of({entry: f"{name}.{entry}" for entry in named}, by="name")
    whole = _object(
        ("resourceType", "parameter"),
        resourceType=constant("Parameters"),
        parameter={"type": "array", **parameter, "items": items},
    )
    return {
        name: {"description": description, **whole},
        **{f"{name}.{entry}": schema for entry, schema in named.items()},
    }


def _choices(type_name: str) -> dict[str, JsonObject]:
    """Return what is one of several, by a name that clients have for it in each language."""
    registered = f"Registered{type_name}"
    outcome = {"OperationOutcome": "OperationOutcome"}
    tried = (f"Register{type_name}", type_name, "Parameters")
    return {
        f"{type_name}OrOutcome": one_of({type_name: type_name, **outcome}, by="resourceType"),
        f"{registered}OrOutcome": one_of({"Parameters": registered, **outcome}, by="resourceType"),
        f"Validate{type_name}": {"anyOf": [ref(name) for name in tried]},
    }


def _update(resource_type: ResourceType, schema: JsonObject) -> JsonObject:
    """Return the schema of an update in FHIR's own form: the fields that can be updated."""
    fields = {
        name: property_
        for name, property_ in schema["properties"].items()
        if element_of(name, resource_type.updatable) in resource_type.updatable
    }
    said = _object(("resourceType",), resourceType=constant(resource_type.name), **fields)
    return {"description": "The fields to replace, at least one.", "minProperties": 2, **said}


_PARAMETER = _object(("name",), name=_TEXT, resource=ref(ANY_RESOURCE))
_BATCH_REQUEST = _object(
    ("method", "url"),
    method={"type": "string", "enum": ["GET", "HEAD", "POST", "PATCH"]},
    url={"description": "Relative to the FHIR base.", **_TEXT},
    ifMatch=_TEXT,
    ifNoneMatch=_TEXT,
    ifModifiedSince=_TEXT,
    ifNoneExist=_TEXT,
)
_BATCH_RESPONSE = _object(
    ("status",),
    status=_TEXT,
    location=_TEXT,
    etag=_TEXT,
    lastModified=_TEXT,
    outcome=ref("OperationOutcome"),
)
_BATCH_ENTRY = _object(
    ("request",), fullUrl=_TEXT, resource=ref(ANY_RESOURCE), request=_BATCH_REQUEST
)
_ANSWERED_ENTRY = _object(("response",), resource=ref(ANY_RESOURCE), response=_BATCH_RESPONSE)

_OWN: dict[str, JsonObject] = {
    "Batch": _object(
        ("resourceType", "type"),
        resourceType=constant("Bundle"),
        type=constant("batch"),
        entry={"type": "array", "items": _BATCH_ENTRY},
    ),
    "BatchResponse": _object(
        ("resourceType", "type"),
        resourceType=constant("Bundle"),
        type=constant("batch-response"),
        entry={"type": "array", "items": _ANSWERED_ENTRY},
    ),
    "Health": _object(("status",), status={"type": "string", "enum": ["alive", "ready"]}),
    "MergePatch": {"description": "RFC 7396.", "type": "object", "minProperties": 1},
    "OAuthError": _object(("error", "error_description"), error=_TEXT, error_description=_TEXT),
    "Object": {"type": "object"},
    "Parameters": _object(
        ("resourceType", "parameter"),
        resourceType=constant("Parameters"),
        parameter={"type": "array", "minItems": 1, "items": _PARAMETER},
    ),
    "RevocationRequest": _form(
        ("token",),
        token={**_TEXT, "minLength": 1},
        token_type_hint={"description": "Ignored: there is one type.", **_TEXT},
        client_id=_TEXT,
        client_secret=_TEXT,
        **_ASSERTED,
    ),
    "Token": _object(
        ("access_token", "token_type", "expires_in"),
        access_token=_TEXT,
        token_type=constant("Bearer"),
        expires_in={"description": "Seconds.", "type": "integer"},
        scope=_TEXT,
    ),
    "TokenRequest": _form(
        ("grant_type",),
        grant_type=constant("client_credentials"),
        audience={"description": "May be left out with a client_assertion only.", **_TEXT},
        client_id=_TEXT,
        client_secret=_TEXT,
        scope=_TEXT,
        **_ASSERTED,
    ),
}
