"""The fast JSON Schema engine, its own keywords, and its verdicts on parts (ADR 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from fhirpub.fhir.definitions.schema_documents import ANY, URN, types_of
from fhirpub.fhir.schema_predicates import is_base64, is_distinct, is_paired
from fhirpub.fhir.strict_json import JsonObject

_LIST = "[]"
_WHOLES: Mapping[str, tuple[JsonObject, str]] = {
    f"{URN}Bundle#/$defs/Bundle.entry": (
        {"resourceType": "Bundle", "type": "collection"},
        "entry",
    ),
    f"{URN}Parameters#/$defs/Parameters.parameter": (
        {"resourceType": "Parameters"},
        "parameter",
    ),
}
"""Resources that are valid with a list of valid parts, and the name of the list."""


def fast_validator(
    schema: JsonObject, registry: jsonschema_rs.Registry | None = None
) -> jsonschema_rs.Validator:
    """Return a compiled schema; its patterns run in linear time, whatever a client sends."""
    return jsonschema_rs.Draft202012Validator(
        schema,
        registry=registry,
        keywords={
            "fhirBase64": _FhirBase64,
            "fhirDistinct": _FhirDistinct,
            "fhirInteger": _FhirInteger,
            "fhirPaired": _FhirPaired,
        },
        pattern_options=jsonschema_rs.RegexOptions(),
        offline=True,
    )


class _FhirPaired:
    def __init__(self, _parent: object, name: str, _path: object) -> None:
        self._name = name

    def validate(self, instance: Any) -> None:
        if isinstance(instance, dict) and not is_paired(instance, self._name):
            raise ValueError(self._name)


class _FhirDistinct:
    def __init__(self, _parent: object, name: str, _path: object) -> None:
        self._name = name

    def validate(self, instance: Any) -> None:
        if isinstance(instance, dict) and not is_distinct(instance, self._name):
            raise ValueError(self._name)


class _FhirBase64:
    def __init__(self, _parent: object, _value: object, _path: object) -> None:
        """Take what the engine gives; there is nothing to remember."""

    def validate(self, instance: object) -> None:
        if isinstance(instance, str) and not is_base64(instance):
            raise ValueError("not base64")


class _FhirInteger:
    def __init__(self, _parent: object, _value: object, _path: object) -> None:
        """Take what the engine gives; there is nothing to remember."""

    def validate(self, instance: object) -> None:
        if type(instance) is not int:
            raise ValueError("not an integer")


def accepts(engine: jsonschema_rs.Validator, instance: object) -> bool:
    """Return the verdict of a validator."""
    try:
        return engine.is_valid(instance)
    except ValueError:  # a lone surrogate, which the reader of requests refuses earlier
        return False


class PartValidator:
    """Validates parts of resources by the references that the schemas have for them.

    One compiled schema serves all references: each on its own would hold the data types once
    more, of up to three megabytes, and one that leads to resources all their types, of 37.
    """

    def __init__(
        self,
        known: Mapping[str, JsonObject],
        registry: jsonschema_rs.Registry,
        accepting: jsonschema_rs.Validator,
    ) -> None:
        """Compile what the documents refer to; ``accepting`` validates resources of any type."""
        self._accepting = accepting
        self._types = {key: name for name, key in types_of(known).items()}
        graph = {
            reference: {*_references_in(_target(known, reference), inside=False)}
            for reference in {*_references_in([*known.values()], inside=True)}
        }
        self._holders = _leading_to(ANY, graph)
        parts: JsonObject = {}
        for reference in graph.keys() - self._holders:
            target = {"$ref": reference}
            parts[reference] = target
            parts[reference + _LIST] = {"type": "array", "items": target}
        self._parts = fast_validator({"properties": parts}, registry)

    def accepts(self, reference: str, instance: Any, *, in_array: bool = False) -> bool:
        """Return whether a part, or each part of a list, is valid; False if that is not known.

        Raises ValueError for a lone surrogate.
        """
        if reference not in self._holders:
            name = reference + _LIST if in_array else reference
            return self._parts.is_valid({name: instance})
        items = instance if in_array else [instance]
        if reference in _WHOLES:
            whole, name = _WHOLES[reference]
            return self._accepting.is_valid({**whole, name: items})
        if reference.partition("#")[0] == ANY:
            return all(map(self._accepting.is_valid, items))
        return reference in self._types and all(
            _type_of(item) == self._types[reference] and self._accepting.is_valid(item)
            for item in items
        )


def _leading_to(goal: str, graph: Mapping[str, set[str]]) -> set[str]:
    """Return a reference and those from which it can be reached."""
    found = {goal}
    while more := {name for name, below in graph.items() if name not in found and below & found}:
        found |= more
    return found


def _references_in(node: Any, *, inside: bool) -> Iterator[str]:
    """Yield the references of a schema, with or without those ``inside`` its definitions."""
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            yield reference
        node = [member for name, member in node.items() if inside or name != "$defs"]
    if isinstance(node, list):
        for member in node:
            yield from _references_in(member, inside=inside)


def _target(known: Mapping[str, JsonObject], reference: str) -> Any:
    key, _, place = reference.partition("#")
    node: Any = known.get(key, {})
    for name in filter(None, place.split("/")):
        node = node.get(name, {}) if isinstance(node, dict) else {}
    return node


def _type_of(item: Any) -> Any:
    return item.get("resourceType") if isinstance(item, dict) else None
