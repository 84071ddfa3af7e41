"""The service as it describes itself, from the enabled types: it cannot drift (D-1 to D-16)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import fhirpub
from fhirpub.fhir.outcome import CODE_SYSTEM, system_of_problems
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.indexing.resolution import ResolvedParameter
from fhirpub.interactions.operations.definitions import definitions_of, operations_of
from fhirpub.interactions.patch_formats import FORMS
from fhirpub.plugin_api import ResourceType
from fhirpub.plugin_api.search import DEFINITIONS
from fhirpub.problems import ALL
from fhirpub.storage.criteria import IDENTIFIER

ID = "fhirpub"
FHIR_VERSION = "4.0.1"
_OWN_TYPES = ("CapabilityStatement", "CodeSystem", "OperationDefinition")
_READING = ("read", "vread", "history-instance", "history-type", "search-type")
_BASE_PROFILE = "http://hl7.org/fhir/StructureDefinition"
_SECURITY_SERVICES = "http://terminology.hl7.org/CodeSystem/restful-security-service"
_OF_EVERY_TYPE = (
    {
        "name": "_id",
        "definition": f"{DEFINITIONS}/Resource-id",
        "type": "token",
        "documentation": "The logical id; :not and :missing",
    },
    {
        "name": "_lastUpdated",
        "definition": f"{DEFINITIONS}/Resource-lastUpdated",
        "type": "date",
        "documentation": "When the version was made; all prefixes",
    },
    {
        "name": "identifier",
        "definition": f"{DEFINITIONS}/clinical-identifier",
        "type": "token",
        "documentation": "The business identifier: system|value, value, or system|; "
        ":not, :missing and :of-type",
    },
)
_BATCH = (
    "Each entry is processed on its own, as the single request that it stands for. References "
    "between entries are not resolved. JSON only."
)
_DOCUMENTATION = {
    "token": "system|code, code, system| or |code; :not and :missing",
    "date": "All prefixes; :missing",
    "number": "A number; all prefixes; :missing",
    "quantity": "A number, number|system|code, converted by UCUM, or number||unit; all prefixes; "
    ":missing",
    "string": "The beginning of a text, without case and accents; :exact, :contains and :missing",
    "uri": "A URI; :below, :above and :missing",
    "composite": "Two values of one element, with a dollar sign between them: code$value",
    "reference": "An id, Type/id or a URL; :missing and :[type]",
}


def statement(context: Context, further: Sequence[JsonObject] = ()) -> tuple[str, bytes]:
    """Return the CapabilityStatement and its entity tag.

    ``further`` is what can be done with types that are no business of the interactions.
    """
    body = dumps(_statement(context, further))
    return f'W/"{hashlib.sha256(body).hexdigest()[:16]}"', body


def own_resources(context: Context, statement_body: bytes) -> dict[tuple[str, str], bytes]:
    """Return our own readable resources by type and id."""
    own = {("CapabilityStatement", ID): statement_body}
    for resource_type in context.types.values():
        for definition in definitions_of(resource_type, context):
            own["OperationDefinition", definition["id"]] = dumps(definition)
    own["CodeSystem", CODE_SYSTEM] = dumps(_problems(context))
    return own


def search_parameters_of(type_name: str, context: Context) -> list[JsonObject]:
    """Return what a type can be searched by, as the CapabilityStatement declares it."""
    parameters = context.searched[type_name].parameters.items()
    return [*_OF_EVERY_TYPE, *(_parameter(one) for name, one in parameters if name != IDENTIFIER)]


def _statement(context: Context, further: Sequence[JsonObject]) -> JsonObject:
    types = list(context.types.values())
    members = [name for name in context.members if name not in context.types]
    parts = [name for name in context.part_types if name not in context.members]
    if context.has_patients:
        parts.remove(PATIENT)
    return {
        "resourceType": "CapabilityStatement",
        "id": ID,
        "url": f"{context.fhir_url}/CapabilityStatement/{ID}",
        "version": fhirpub.__version__,
        "name": "Fhirpub",
        "title": "Diagnostic Report Publishing Service",
        "status": "active",
        "date": fhirpub.RELEASED,
        "publisher": "fhirpub",
        "kind": "instance",
        "software": {"name": "fhirpub", "version": fhirpub.__version__},
        "implementation": {
            "description": f"Registers, returns, updates and finds {', '.join(context.types)}",
            "url": context.fhir_url,
        },
        "fhirVersion": FHIR_VERSION,
        "format": ["json", "xml"],
        "patchFormat": _media_types_of("merge-patch", "json-patch"),
        "rest": [
            {
                "mode": "server",
                "security": {
                    "service": [
                        {
                            "coding": [
                                {"system": _SECURITY_SERVICES, "code": code}
                                for code in ("OAuth", "SMART-on-FHIR")
                            ],
                            "text": "OAuth 2.0 client credentials",
                        }
                    ],
                    "description": f"Ask for a token at {context.config.base_url}/oauth/token",
                },
                "resource": [
                    *(_resource(resource_type, context) for resource_type in types),
                    *(_member(name, context) for name in members),
                    *(_readable(name, "read", "vread") for name in parts),
                    *([_patient(context)] if context.has_patients else ()),
                    *further,
                    *(_readable(name, "read") for name in ("Binary", *_OWN_TYPES)),
                ],
                "interaction": [{"code": "batch", "documentation": _BATCH}],
            }
        ],
    }


def _resource(resource_type: ResourceType, context: Context) -> JsonObject:
    """Return what a type has that is registered alone."""
    definitions = f"{context.fhir_url}/OperationDefinition/{resource_type.name}"
    return {
        "type": resource_type.name,
        "profile": resource_type.canonical,
        "interaction": [
            *({"code": code} for code in (*_READING[:-1], "create", _READING[-1])),
            {"code": "patch", "documentation": _patch_documentation(resource_type)},
        ],
        "versioning": "versioned",
        "readHistory": True,
        "updateCreate": False,
        "conditionalCreate": True,
        "conditionalRead": "full-support",
        "conditionalUpdate": False,
        "conditionalDelete": "not-supported",
        **_found(resource_type.name, context),
        "operation": [
            {"name": code, "definition": f"{definitions}-{code}"}
            for code in (
                *operations_of(resource_type),
                *(each.operation.code for each in context.operations.get(resource_type.name, ())),
            )
        ],
    }


def _member(type_name: str, context: Context) -> JsonObject:
    """Return what a type has whose resources come with others (ADR 24)."""
    return {
        **_readable(type_name, *_READING),
        "versioning": "versioned",
        "readHistory": True,
        "conditionalRead": "full-support",
        **_found(type_name, context),
    }


def _patient(context: Context) -> JsonObject:
    """Return what patients have, which parts of several resources can share (ADR 26)."""
    return {
        **_readable(PATIENT, "read", "vread", "history-instance", "search-type"),
        "versioning": "versioned",
        "readHistory": True,
        "conditionalRead": "full-support",
        **_found(PATIENT, context),
    }


def _found(type_name: str, context: Context) -> JsonObject:
    """Return how resources of a type are found, and what is included in a search."""
    included = [f"{type_name}:{name}" for name in context.searched[type_name].includable()]
    found = {
        "searchInclude": included,
        "searchRevInclude": list(reverse_includes(type_name, context)),
        "searchParam": search_parameters_of(type_name, context),
    }
    return {name: value for name, value in found.items() if value}


def reverse_includes(type_name: str, context: Context) -> Iterator[str]:
    """Yield the reference parameters that declarations show to lead to a type."""
    elements = {
        part.referred_by
        for resource_type in context.types.values()
        for part in resource_type.parts
        if part.type == type_name
    }
    for name, searched in context.searched.items():
        within = searched.member.acyclic if searched.member and name == type_name else ()
        for parameter in searched.includable():
            known = searched.parameters[parameter]
            if known.target in ("", type_name) and {*elements, *within} & {*known.parameter.paths}:
                yield f"{name}:{parameter}"


def _patch_documentation(resource_type: ResourceType) -> str:
    """Return the form of a patch that patchFormat cannot name.

    There, ``application/fhir+json`` and ``application/fhir+xml`` would mean FHIRPath Patch.
    """
    name, media = resource_type.name, " or ".join(_media_types_of("fhir"))
    return (
        f"Besides the types of patchFormat, the body may be a {name} as {media} that holds only "
        "the elements to update: each replaces the whole element. FHIRPath Patch (Parameters) is "
        f"refused. Elements that can be updated: {', '.join(sorted(resource_type.updatable))}."
    )


def _media_types_of(*forms: str) -> list[str]:
    return [media for media, form in FORMS.items() if form in forms]


def _parameter(known: ResolvedParameter) -> JsonObject:
    declared = known.parameter
    said = {"name": declared.name, "definition": declared.definition, "type": declared.type}
    named = {name: value for name, value in said.items() if value}
    return named | {"documentation": _DOCUMENTATION[declared.type]}


def _readable(type_name: str, *interactions: str) -> JsonObject:
    return {
        "type": type_name,
        "profile": f"{_BASE_PROFILE}/{type_name}",
        "interaction": [{"code": code} for code in interactions],
    }


def _problems(context: Context) -> JsonObject:
    """Return the codes of ``issue.details``: ours, and those that the types declare."""
    concepts = [
        {
            "code": item.value,
            "display": item.display,
            "definition": f"{item.meaning} {item.remedy}",
        }
        for item in ALL
    ]
    for resource_type in context.types.values():
        concepts += [
            {"code": code, "definition": meaning}
            for code, meaning in resource_type.problems.items()
        ]
    return {
        "resourceType": "CodeSystem",
        "id": CODE_SYSTEM,
        "url": system_of_problems(context.fhir_url),
        "version": fhirpub.__version__,
        "name": "FhirpubProblem",
        "title": "Problems that an OperationOutcome reports",
        "status": "active",
        "date": fhirpub.RELEASED,
        "publisher": "fhirpub",
        "description": "The codes of OperationOutcome.issue.details. A code is never renamed.",
        "caseSensitive": True,
        "content": "complete",
        "count": len(concepts),
        "concept": concepts,
    }
