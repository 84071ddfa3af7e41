"""FHIR's own rules between the elements of one resource, those that a schema cannot express.

Each is named by its key in the R4 definitions. A problem is a 400, as all that is wrong by FHIR
alone (R-A).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.elements import objects_in
from fhirpub.fhir.narrative import narrative_problem
from fhirpub.fhir.strict_json import NUMBERS, JsonObject
from fhirpub.fhir.times import is_after
from fhirpub.problems import ContentProblem

RELATIVE_REFERENCE = re.compile(
    r"(?P<type>[A-Z][A-Za-z]+)/[A-Za-z0-9.-]{1,64}(?:/_history/[A-Za-z0-9.-]{1,64})?"
)
_DEFINITIONS = "http://hl7.org/fhir/StructureDefinition/"
_KINDS = {"div": ContentProblem.NARRATIVE_INVALID, "reference": ContentProblem.REFERENCE_WRONG}
"""Kinds of problem by the element that breaks a rule."""
_REFERENCE_RANGE = re.compile(r"(?:^|\.)referenceRange(?:\[\d+\])?$")
"""Of an Observation; it is no Range, and R4 has no rule about its order."""
_WITH_DATA = frozenset({"contentType", "origin", "who"})
"""Names of which one stands beside ``data``: in Attachment, in SampledData, in Signature."""


def broken_invariants(
    resource: JsonObject,
    targets: Sequence[JsonObject],
    place_of: Callable[[JsonObject], str],
    leading: Collection[str],
) -> Iterator[Issue]:
    """Return what breaks FHIR's invariants, with places below the resource.

    ``targets`` are its objects to look at (``Entry.rule_targets``). ``leading`` are the
    literals of references that lead to what is contained, or came along.
    """
    leading = {*leading, "#"}
    for element in targets:
        for name, problem in _problems(element, resource, leading):
            at = ".".join(filter(None, (place_of(element), name)))
            kind = _KINDS.get(name, ContentProblem.INVARIANT_BROKEN)
            yield Issue.error(kind, problem, at, code="exception")
        if "high" in element and _has_reversed_limits(element):
            at = place_of(element)
            if not _REFERENCE_RANGE.search(at):
                rule = "low must not be more than high (rng-2)"
                yield Issue.error(ContentProblem.INVARIANT_BROKEN, rule, at, code="exception")


def repeated_ids(resource: JsonObject) -> Iterator[Issue]:
    """Return the contained resources whose id another one has, so that no reference is clear.

    Asked of what is new alone: what was stored before must stay open to updates.
    """
    known: set[str] = set()
    for index, one in _objects(resource.get("contained")):
        if one.get("id") in known:
            rule = "must not be the id of another contained resource"
            yield Issue.error(ContentProblem.ID_REPEATED, rule, f"contained[{index}].id")
        known.add(str(one.get("id")))


def mistyped_references(
    targets: Sequence[JsonObject],
    place_of: Callable[[JsonObject], str],
    types: Mapping[str, str],
) -> Iterator[Issue]:
    """Return the references whose ``type`` is not that of what they lead to (D-276).

    ``types`` has the types of what came along, by the literals that lead there; a relative
    reference names its own. What an absolute one leads to is not known. Asked, like
    :func:`repeated_ids`, of what is new alone.
    """
    for element in targets:
        literal, said = element.get("reference"), element.get("type")
        if not (isinstance(literal, str) and isinstance(said, str)):
            continue
        relative = RELATIVE_REFERENCE.fullmatch(literal)
        known = relative["type"] if relative else types.get(literal, "")
        if known and said.removeprefix(_DEFINITIONS) != known:
            rule = f"must be {known}, which the reference leads to, or be left out"
            at = f"{place_of(element)}.type"
            yield Issue.error(ContentProblem.REFERENCE_WRONG, rule, at, code="exception")


def types_of_contained(resource: JsonObject) -> dict[str, str]:
    """Return the types of contained resources by the literals that lead to them."""
    return {
        f"#{one.get('id')}": one["resourceType"]
        for _index, one in _objects(resource.get("contained"))
    }


def _problems(
    each: JsonObject, resource: JsonObject, leading: Collection[str]
) -> Iterator[tuple[str, str]]:
    if "div" in each:
        problem = narrative_problem(str(each["div"]))
        if problem:
            yield "div", f"{problem} (txt-1, txt-2)"
    if "extension" in each:
        yield from _extensions(each)
    if isinstance(each.get("data"), str) and _WITH_DATA.isdisjoint(each):
        yield "contentType", "is required beside data (att-1)"
    if "reference" in each:
        yield from _local_reference(each, leading)
    if "contained" in each:
        yield from _contained(each, resource)
    if "end" in each and "start" in each and _is_reversed(each["start"], each["end"]):
        yield "", "start must not be after end (per-1)"


def _extensions(each: JsonObject) -> Iterator[tuple[str, str]]:
    for index, extension in _objects(each["extension"]):
        has_value = any(name.lstrip("_").startswith("value") for name in extension)
        if has_value == ("extension" in extension):
            yield f"extension[{index}]", "must have either a value or extensions (ext-1)"


def _local_reference(each: JsonObject, leading: Collection[str]) -> Iterator[tuple[str, str]]:
    target = each["reference"]
    if isinstance(target, str) and target.startswith("#") and target not in leading:
        yield "reference", "must be # and the id of a contained resource (ref-1)"


def _contained(each: JsonObject, resource: JsonObject) -> Iterator[tuple[str, str]]:
    if each is not resource:
        yield "contained", "a contained resource must not contain others (dom-2)"
        return
    referred = set(local_in(resource))
    for index, one in _objects(each["contained"]):
        meta = one.get("meta")
        if isinstance(meta, dict) and {"versionId", "lastUpdated", "security"} & set(meta):
            yield f"contained[{index}].meta", "must not have version or security (dom-4, dom-5)"
        if f"#{one.get('id')}" not in referred and "#" not in local_in(one):
            yield (
                f"contained[{index}]",
                "must be referred to from its container, by # and its id (dom-3)",
            )


def _objects(value: Any) -> Iterator[tuple[int, JsonObject]]:
    """Return the objects of a list; in contained resources of other types anything may stand."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield index, item


def local_in(resource: JsonObject) -> Iterator[str]:
    """Return what leads to contained resources: references, and canonicals, uris and urls."""
    for item in objects_in(resource):
        for value in item.values():
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, str) and one.startswith("#"):
                    yield one


def _is_reversed(start: Any, end: Any) -> bool:
    return isinstance(start, str) and isinstance(end, str) and is_after(start, end)


def _has_reversed_limits(element: JsonObject) -> bool:
    """Return whether low is more than high; different units are not compared."""
    low, high = element.get("low"), element["high"]
    if not (isinstance(low, dict) and isinstance(high, dict)):
        return False
    least: Any = low.get("value")
    most: Any = high.get("value")
    if type(least) not in NUMBERS or type(most) not in NUMBERS:
        return False
    same_unit = all(low.get(name) == high.get(name) for name in ("system", "code", "unit"))
    return same_unit and bool(least > most)
