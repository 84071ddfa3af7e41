"""Hooks of schemathesis: they skip repeated mistakes and make registrations succeed."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from typing import Any

import schemathesis

from fhirpub.config.loader import variable

_ALL = 40
_EVERY = 1 if variable("HYPOTHESIS") == "long" else 100
_FHIR_JSON = "application/fhir+json"
_seen: Counter[str] = Counter()
_numbers = itertools.count()


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
