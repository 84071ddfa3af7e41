"""Less than the whole resource: ``_summary`` and ``_elements`` (R4 search, 3.1.1.5; D-100)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fhirpub.errors import InvalidSearch
from fhirpub.fhir.contained import with_contained
from fhirpub.fhir.definitions.schema_documents import forms_of_choices
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.versions import meta_of_subset
from fhirpub.problems import OperationProblem

_ALWAYS = frozenset({"resourceType", "id", "meta"})
_WHOLE = ("", "false")
_PARTS = ("true", "text", "data")


def is_subset(summary: str, elements: str) -> bool:
    """Return whether less than the whole is asked for."""
    return summary not in _WHOLE or bool(elements)


def check_subset(summary: str, elements: str) -> None:
    """Raise InvalidSearch for a summary that there is not, and for both parameters at once."""
    if summary not in (*_WHOLE, *_PARTS):
        raise _wrong("must be true, text, data or false")
    if elements and summary not in _WHOLE:
        raise _wrong("cannot go with _elements")


def _wrong(rule: str) -> InvalidSearch:
    problem = OperationProblem.PARAMETER_INVALID
    return InvalidSearch.because(rule, expression="_summary", details=problem)


def subset(
    resource: JsonObject, schema: Mapping[str, Any], *, summary: str, elements: str
) -> JsonObject:
    """Return the part of a resource that is asked for, tagged as such, with what it leads to.

    ``summary`` is true, text, data or false; ``elements`` names elements of the top level. What
    is mandatory stays, and what changes the meaning of the rest, such as doNotPerform.
    ``schema`` is the document of the type, which knows what is a summary.
    Raises InvalidSearch as :func:`check_subset` does.
    """
    check_subset(summary, elements)
    return with_contained(_part(resource, schema, summary, elements), resource)


def _part(
    resource: JsonObject, schema: Mapping[str, Any], summary: str, elements: str
) -> JsonObject:
    kept = _ALWAYS.union(schema.get("x-mandatory", ()), schema.get("x-modifier", ()))
    if elements:
        return _only(resource, kept | _properties_named(elements, schema))
    if summary == "text":
        return _only(resource, kept | {"text"})
    if summary == "data":
        return _only(resource, {item.lstrip("_") for item in resource} - {"text"})
    short = _only(resource, kept | frozenset(schema.get("x-summary", ())))
    summarized = {name: _summarize(value, name, schema) for name, value in short.items()}
    return {name: value for name, value in summarized.items() if value != []}


def _properties_named(elements: str, schema: Mapping[str, Any]) -> set[str]:
    """Return the properties of the elements: ``value`` and ``value[x]`` are all forms of it."""
    names = {part.strip().removesuffix("[x]") for part in elements.split(",")}
    forms = forms_of_choices(schema.get("allOf", []))
    return names | {form for form, stem in forms if stem in names}


def _only(resource: JsonObject, names: frozenset[str] | set[str]) -> JsonObject:
    kept = {name: value for name, value in resource.items() if name.lstrip("_") in names}
    return kept | {"meta": meta_of_subset(resource)}


def _summarize(value: Any, name: str, schema: Mapping[str, Any]) -> Any:
    """Leave out what is no summary in the nested elements of the type, and those without any."""
    nested = schema.get("$defs", {}).get(f"{schema['title']}.{name}", {}).get("x-summary")
    if nested is None or not isinstance(value, list):
        return value
    kept = [{key: item[key] for key in item if key.lstrip("_") in nested} for item in value]
    return [element for element in kept if element]
