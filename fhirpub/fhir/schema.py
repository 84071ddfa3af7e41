"""The one door to JSON Schema: a fast engine accepts, a patient one explains what it refused.

See ADR 13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any

import jsonschema
import jsonschema_rs

from fhirpub.errors import ConfigurationError, Issue
from fhirpub.fhir.definitions.schema_documents import (
    ANY,
    URN,
    Element,
    documents,
    element_at,
    forms_of_choices,
    types_of,
)
from fhirpub.fhir.schema_explanation import Explainer
from fhirpub.fhir.schema_fast import PartValidator, accepts, fast_validator
from fhirpub.fhir.schema_plain import PlainSchemas
from fhirpub.fhir.strict_json import JsonObject, in_plain_decimals
from fhirpub.problems import ContentProblem

_MAX_NAMES = 10
_NAME = re.compile("[A-Za-z]+")
_DEFINED = "#/$defs/"
_STOCK = jsonschema.Draft202012Validator


class Schemas:
    """The schemas of all resource types, compiled once.

    ``extra`` are further documents by type name, such as a plugin brings them. They may refer
    to ours (``urn:fhirpub:schemas:r4:datatypes#/$defs/HumanName``).
    Raises ConfigurationError if one of them cannot be used.
    """

    def __init__(self, extra: Mapping[str, Mapping[str, object]] | None = None) -> None:
        known = documents(extra or {})
        self.by_id: Mapping[str, JsonObject] = known
        """Every document by its ``$id``, those of plugins among them."""
        try:
            # One for all types: each can contain every other, so none is cheaper.
            registry = jsonschema_rs.Registry(list(known.items()))
            self._accepting = fast_validator({"$ref": ANY}, registry)
            parts = PartValidator(known, registry, self._accepting)
        except (ValueError, jsonschema_rs.ReferencingError) as wrong:
            said = str(wrong).partition("\n")[0]
            raise ConfigurationError(f"the schemas cannot be compiled: {said}") from None
        self.plain = PlainSchemas(known, without=extra or ())
        """Accepts what is valid and plain. Types with schemas of plugins are never plain, since
        these may leave open what an object holds."""
        self._documents = {name: known[key] for name, key in types_of(known).items()}
        self._stems = dict(forms_of_choices(list(known.values())))
        self._explainer = Explainer(known, self._stems, parts)
        primitives = known[f"{URN}datatypes"]["$defs"]
        self._of_primitive = lru_cache(maxsize=None)(lambda name: fast_validator(primitives[name]))
        self.fhirpath = lru_cache(maxsize=4096)(self._fhirpath)
        """Returns a place in names of JSON as FHIRPath: ``effectiveDateTime`` is ``effective``."""

    def document(self, type_name: str) -> Mapping[str, Any]:
        """Return the schema document of a type that is known."""
        return self._documents[type_name]

    def type_at(self, type_name: str, path: str) -> tuple[str, str]:
        """Return the type of the element at a dotted path of JSON's names, and its values' name.

        Both are empty if there is no such element. The second differs from the first for a
        ``code`` that is bound to a value set, such as ``diagnostic-report-status``.
        """
        document = node = self._documents[type_name]
        name = ""
        for step in path.split("."):
            element = node.get("properties", {}).get(step)
            if element is True:
                element = _repeated_primitive(node, step)
            if not isinstance(element, dict):
                return "", ""
            holder, _, name = element.get("items", element).get("$ref", "").partition(_DEFINED)
            document = self.by_id[holder] if holder else document
            node = document.get("$defs", {}).get(name, {})
        return str(node.get("title", name)), name

    def knows(self, type_name: str) -> bool:
        """Return whether there is a schema for the type."""
        return type_name in self._documents

    def element(self, type_name: str, path: str) -> Element | None:
        """Return what an element of a type is, dots go deeper; None if there is none."""
        return element_at(self.by_id, self.document(type_name), path)

    def problems(self, type_name: str, resource: JsonObject) -> Iterator[Issue]:
        """Yield what is wrong with the resource, at most ``MAX_ISSUES``; nothing if it is valid.

        The expressions are relative to the resource, without its type's name: ``name[0].given``.
        The type must be one that is known. Each step finds one problem.
        """
        if self.accepts(type_name, resource):
            return
        issue = None
        for issue in self.explain(type_name, resource):
            yield issue
        if issue is None:
            yield Issue.error(
                ContentProblem.ELEMENT_MALFORMED, "the resource is not valid FHIR R4"
            )

    def accepts(self, type_name: str, resource: JsonObject) -> bool:
        """Return the verdict of the fast engine."""
        if resource.get("resourceType") != type_name or not self.knows(type_name):
            return False
        return _is_valid(self._accepting, resource)

    def accepts_primitive(self, type_name: str, value: object) -> bool:
        """Return the verdict of the fast engine on a value of a primitive type."""
        return _is_valid(self._of_primitive(type_name), value)

    def explain(self, type_name: str, resource: JsonObject) -> Iterator[Issue]:
        """Yield the first problems that the slow engine finds, at most ``MAX_ISSUES``."""
        return self._explainer.explain(type_name, in_plain_decimals(resource))

    def _fhirpath(self, place: str) -> str:
        return _NAME.sub(lambda name: self._stems.get(name[0], name[0]), place)


@cache
def own_schemas() -> Schemas:
    """Return the schemas without further documents, which are compiled once in a process."""
    return Schemas()


def _is_valid(engine: jsonschema_rs.Validator, instance: object) -> bool:
    """Return the verdict of the fast engine, to which a SentDecimal is no number."""
    if accepts(engine, instance):
        return True
    plain = in_plain_decimals(instance)
    return plain is not instance and accepts(engine, plain)


def schema_problems(type_name: str, document: object) -> list[str]:
    """Return everything that keeps a document from being the schema of a type, in sentences."""
    if not isinstance(document, Mapping):
        kind = type(document).__name__
        return [f"the schema for {type_name} must be a JSON Schema as a dict, not {kind}"]
    found = [
        f"the schema for {type_name} is not a JSON Schema at "
        f"{'.'.join(map(str, error.absolute_path)) or 'its top'}: {error.message}"
        for error in islice(_STOCK(_STOCK.META_SCHEMA).iter_errors(document), _MAX_NAMES)
    ]
    if found:
        return list(dict.fromkeys(found))
    try:
        Schemas({type_name: document})
    except ConfigurationError as problem:
        return [str(problem)]
    return []


def _repeated_primitive(node: Mapping[str, Any], name: str) -> JsonObject | None:
    """Return the schema of a list of primitives, if nothing stands beside its items."""
    for rule in node.get("allOf", ()):
        found = rule.get("else", {}).get("properties", {}).get(name)
        if found:
            return dict(found)
    return None
