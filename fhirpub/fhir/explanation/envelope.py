"""Why an envelope is refused: what a body is in its place, and which entry was meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.explanation.unknown_names import MAX_SUGGESTIONS, PLAIN_NAME, suggest_name
from fhirpub.problems import ContentProblem
from fhirpub.suggestion import nearest

_ADVICE = {
    "string": "it was written as JSON twice",
    "array": "send each resource in a request of its own",
    "Bundle": "send each of its resources as this operation takes it",
    "resourceType": "every resource has the name of its type there",
}
"""What to do about some kinds of bodies, by the last word of the kind."""


def kind_of(body: Any, types: Collection[str]) -> str:
    """Return what a JSON value is: ``an array``, ``a Bundle``. It repeats none but R4's types."""
    if isinstance(body, dict):
        name = body.get("resourceType")
        if isinstance(name, str) and name in types:
            return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"
        return "an object " + ("of an unknown resourceType" if name else "without resourceType")
    if isinstance(body, list):
        return "an array"
    return "a string" if isinstance(body, str) else "no object"


def describe_kind(
    body: Any, types: Collection[str], wanted: str, *, advice: Mapping[str, str]
) -> str:
    """Return the sentence about a body that is not ``wanted``.

    ``types`` are the types of R4, and ``advice`` has what to do about kinds of it,
    by their last word: ``Bundle``, ``array``.
    """
    kind = kind_of(body, types)
    hints = {**_ADVICE, **advice}
    hint = hints.get(kind.rpartition(" ")[2], "")
    return f"the body must be {wanted}, and is {kind}{hint and ': '}{hint}"


def refuse_kind(
    body: Any,
    types: Collection[str],
    wanted: str,
    *,
    advice: Mapping[str, str],
    expression: str = "",
) -> InvalidContent:
    """Return the refusal of a body that is not ``wanted``, in the words of describe_kind."""
    said = describe_kind(body, types, wanted, advice=advice)
    return InvalidContent.because(
        said, expression=expression, details=ContentProblem.BODY_UNEXPECTED
    )


def entries_of(body: Any, types: Collection[str], *, advice: Mapping[str, str]) -> list[Any]:
    """Return the entries of Parameters; raises InvalidContent for another body."""
    if not isinstance(body, dict) or body.get("resourceType") != "Parameters":
        raise refuse_kind(body, types, "a Parameters resource", advice=advice)
    entries = body.get("parameter")
    if not isinstance(entries, list) or not entries:
        others = [item for item in body if item != "resourceType"] if entries is None else []
        rule = "must be an array of entries, each with a name and a resource"
        raise InvalidContent.because(
            f"{rule}{suggest_name(others, ['parameter'])}",
            expression="Parameters.parameter",
            details=ContentProblem.ENTRY_INVALID,
        )
    return entries


def wrong_entry(entry: Mapping[str, Any], type_name: str, types: Collection[str]) -> str:
    """Return the sentence about an entry that does not hold a resource of a type."""
    resource = entry.get("resource")
    said = f"must hold a {type_name} in resource, and has "
    if resource is None:
        return f"{said}no resource: a value or a reference does not stand for it"
    if isinstance(resource, dict) and "resourceType" not in resource and "reference" in resource:
        return f"{said}a Reference there: send the {type_name} itself"
    name = resource.get("resourceType") if isinstance(resource, dict) else None
    meant = isinstance(name, str) and nearest(name, [type_name]) and name != type_name
    return (
        f"{said}{kind_of(resource, types)} there{f': did you mean {type_name}?' if meant else ''}"
    )


def missing_entry(
    name: str, type_name: str, others: Iterable[tuple[Mapping[str, Any], str]]
) -> Issue:
    """Return the issue of a missing entry; it points to the one that was probably meant.

    ``others`` are the entries of other names with their places. Meant was one of nearly the same
    name, or with a resource of the type; the first ten are looked at.
    """
    said, at = f"an entry named {name} is required", "Parameters.parameter"
    for entry, place in islice(others, MAX_SUGGESTIONS):
        other, resource = entry["name"], entry.get("resource")
        holds_it = isinstance(resource, dict) and resource.get("resourceType") == type_name
        if holds_it or nearest(other, [name]):
            shown = f" {other}" if PLAIN_NAME.fullmatch(other) else ""
            said, at = f"{said}: should this entry{shown} be named so?", f"{place}.name"
            break
    return Issue.error(ContentProblem.ENTRY_MISSING, said, at)
