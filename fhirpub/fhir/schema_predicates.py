"""Rules of FHIR that JSON Schema has no keyword for, as predicates on JSON values (ADR 13)."""

from __future__ import annotations

from fhirpub.fhir.document import decode, is_marker
from fhirpub.fhir.strict_json import JsonObject


def is_base64(text: str) -> bool:
    """Return whether a string is base64, or stands for a document that was."""
    return is_marker(text) or not text or decode(text) is not None


def is_paired(resource: JsonObject, name: str) -> bool:
    """Return whether a primitive and its sibling have something at each position."""
    values, elements = resource.get(name), resource.get(f"_{name}")
    if not isinstance(elements, list):
        return name in resource or not isinstance(elements, dict) or "extension" in elements
    if name not in resource:
        values = [None] * len(elements)
    if not isinstance(values, list):
        return True  # another keyword says what is wrong
    return len(values) == len(elements) and all(
        value is not None or (isinstance(element, dict) and "extension" in element)
        for value, element in zip(values, elements, strict=True)
    )


def is_distinct(resource: JsonObject, name: str) -> bool:
    """Return whether no item of an element has a code of the resource itself."""
    items = resource.get(name)
    if not isinstance(items, list):
        return True  # another keyword says what is wrong
    own = _codes(resource)
    return not any(own & _codes(item) for item in items if isinstance(item, dict))


def _codes(each: JsonObject) -> set[tuple[str, str]]:
    """Return the codes that an object is of, each with its system; of anything, valid or not."""
    concept = each.get("code")
    codings = concept.get("coding") if isinstance(concept, dict) else ()
    return {
        (str(one.get("system", "")), str(one["code"]))
        for one in (codings if isinstance(codings, list) else ())
        if isinstance(one, dict) and "code" in one
    }
