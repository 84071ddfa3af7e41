"""Hooks of schemathesis: they skip repeated mistakes and make registrations succeed."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from typing import Any

import schemathesis

from fhirpub.config.loader import variable

_ALL = 25
_EVERY = 1 if variable("HYPOTHESIS") == "long" else 100
_FHIR_JSON = "application/fhir+json"
_DEPTH = 3
"""In a shorter run, how many elements deep the bodies of resources are described."""
_seen: Counter[str] = Counter()
_numbers = itertools.count()


@schemathesis.hook
def before_load_schema(_context: Any, raw_schema: dict[str, Any]) -> None:
    """Describe the bodies of whole resources less deeply: their fields are many thousand cases.

    The responses are described as ever.
    """
    if _EVERY == 1:
        return
    for item in raw_schema["paths"].values():
        for name in _resources_of(item.get("post", {})):
            content = item["post"]["requestBody"]["content"][name]
            content["schema"] = _shallow(content["schema"], raw_schema, _DEPTH)


def _resources_of(operation: dict[str, Any]) -> list[str]:
    """Return in which media types the body of an operation is a resource."""
    content = operation.get("requestBody", {}).get("content", {})
    return [name for name, item in content.items() if "$ref" in item.get("schema", {})]


def _shallow(schema: Any, document: dict[str, Any], depth: int) -> Any:
    """Return a schema without references, of which what lies deeper than this may be anything."""
    if isinstance(schema, list):
        return [_shallow(item, document, depth) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        if depth == 0:
            return {"type": "object"}
        target = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return _shallow(target, document, depth - 1)
    return {name: _shallow(item, document, depth) for name, item in schema.items()}


@schemathesis.hook
def filter_case(_context: Any, case: Any) -> bool:
    """Keep the first cases of an operation, then every hundredth: R4 has many fields.

    Answers in XML are described in words, and have tests of their own (test_xml.py).
    """
    if "xml" in str((case.query or {}).get("_format", "")):
        return False
    _seen[case.operation.label] += 1
    number = _seen[case.operation.label]
    return number <= _ALL or number % _EVERY == 0


@schemathesis.hook
def map_case(_context: Any, case: Any) -> Any:
    """Start a walk with a registration that succeeds, which no random body does; wait for nothing.

    To wait for an event that does not come would take up to half a minute each time.
    """
    makes = case.operation.definition.raw.get("operationId", "").startswith(("register", "create"))
    if makes and case.meta.phase.name.value == "stateful":
        case.media_type, case.body = _FHIR_JSON, _fresh(case.operation)
        case.headers.pop("If-None-Exist", None)
    if str((case.query or {}).get("wait", "")).isdecimal():
        case.query["wait"] = "0"
    return case


def _fresh(operation: Any) -> Any:
    """Return the example of an operation with an identifier of its own."""
    content = operation.definition.raw["requestBody"]["content"][_FHIR_JSON]
    body = copy.deepcopy(content["example"])
    resource = body["parameter"][-1]["resource"] if "parameter" in body else body
    resource["identifier"][0]["value"] = f"walk-{next(_numbers)}"
    return body
