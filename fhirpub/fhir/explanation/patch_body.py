"""Why the body of an update is refused: which form of patch it is, and how that is sent."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fhirpub.errors import InvalidContent
from fhirpub.fhir.explanation.envelope import describe_kind
from fhirpub.problems import OperationProblem

_FHIRPATH = "FHIRPath Patch is not supported: send the fields to update as a"
_OPERATION = "a JSON Patch is an array, also of one operation"
_MERGE = "a merge patch has the Content-Type application/merge-patch+json"


def refuse_patch(body: Any, types: Collection[str], wanted: str, type_name: str) -> InvalidContent:
    """Return the refusal of a body that is not the form of a patch that its type promises."""
    advice = {
        "array": "a JSON Patch has the Content-Type application/json-patch+json",
        "Parameters": f"{_FHIRPATH} {type_name}, or a merge patch or a JSON Patch",
        "resourceType": _OPERATION if isinstance(body, dict) and "op" in body else _MERGE,
        type_name: f"its Content-Type is application/fhir+json; {_MERGE}",
    }
    said = describe_kind(body, types, wanted, advice=advice)
    return InvalidContent.because(
        said, expression=type_name, details=OperationProblem.PATCH_OF_OTHER_FORM
    )
