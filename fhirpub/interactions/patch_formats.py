"""The forms of an update's body, each turned into the fields that it names (D-105).

FHIR's own partial resource, JSON merge patch (RFC 7396), JSON Patch (RFC 6902): in each the same
fields may be updated, and the result is validated by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jsonpatch import (
    JsonPatch,
    JsonPatchException,
    JsonPatchTestFailed,
    JsonPointer,
    JsonPointerException,
)

from fhirpub.errors import BrokenRule, InvalidContent, Issue, TooLarge
from fhirpub.fhir.document import attachments_of, is_marker
from fhirpub.fhir.elements import element_of
from fhirpub.fhir.explanation.patch_body import refuse_patch
from fhirpub.fhir.strict_json import MAX_DEPTH, JsonObject, in_decimals, refuse_excess
from fhirpub.fhir.xml.tables import tables
from fhirpub.plugin_api import ResourceType
from fhirpub.problems import ContentProblem, OperationProblem

Form = Literal["fhir", "merge-patch", "json-patch"]
FORMS: Mapping[str, Form] = {
    "application/fhir+json": "fhir",
    "application/fhir+xml": "fhir",
    "application/merge-patch+json": "merge-patch",
    "application/json-patch+json": "json-patch",
}
"""The form of a body by its media type."""

_MAX_OPERATIONS = 1_000
_UNKNOWN = "(unknown)"
_BYTES_OF_A_VALUE = 64
_MAX_COPIED = 131_072
"""Bytes that the operations of a JSON Patch may copy: copies of copies grow with each."""
OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_MEMBERS = {
    **dict.fromkeys(("add", "replace", "test"), ("value",)),
    **dict.fromkeys(("move", "copy"), ("from",)),
}


@dataclass(frozen=True, slots=True)
class Fields:
    """The members that an update names, with their extensions' (``_status``), and their values.

    One that is named and has no value is taken away. What stays of a document that is kept is its
    marker (`fhir/document.py`). Fields that cannot be updated are not among them.
    """

    names: frozenset[str]
    values: JsonObject
    refused: tuple[Issue, ...] = ()
    """The issues of the fields that are named and cannot be updated."""

    def merge(self, before: JsonObject) -> JsonObject:
        """Return the resource with these fields in place of its own."""
        kept = {name: value for name, value in before.items() if name not in self.names}
        return {**kept, **self.values}


def fields_of(
    form: Form, content: Any, before: JsonObject, resource_type: ResourceType, *, most: int
) -> Fields:
    """Return the fields of a resource that a body changes, at least one.

    ``most`` bounds what a JSON Patch may copy, in bytes. Raises InvalidContent for the
    envelope, BrokenRule if no field that is named can be updated, and for operations that fail.
    """
    if form == "json-patch":
        fields = _json_patch(content, before, resource_type, most)
    elif form == "merge-patch":
        fields = _merge_patch(content, before, resource_type)
    else:
        fields = _partial_resource(content, before, resource_type)
    if not fields.names:
        if fields.refused:
            raise BrokenRule(fields.refused)
        raise InvalidContent.because(
            f"names no field to update; fields that can: {_updatable(resource_type)}",
            expression=resource_type.name,
            details=OperationProblem.UPDATE_EMPTY,
        )
    return fields


def _partial_resource(patch: Any, before: JsonObject, resource_type: ResourceType) -> Fields:
    """Each field replaces the whole field, with its extensions."""
    name = resource_type.name
    if not isinstance(patch, dict) or patch.get("resourceType") != name:
        raise refuse_patch(patch, tables().resources, f"a {name} with the fields to update", name)
    named = {item: value for item, value in patch.items() if item != "resourceType"}
    refused = _refuse_others(named, resource_type)
    values = {item: named[item] for item in _updatable_of(named, resource_type)}
    alone = [item[1:] for item in values if item.startswith("_") and item[1:] not in values]
    if alone:
        rule = "needs a value beside its extensions: a field is replaced whole"
        problem = ContentProblem.ELEMENT_REQUIRED
        raise InvalidContent(Issue.error(problem, rule, f"{name}.{item}") for item in alone)
    fields = resource_type.updatable
    replaced = {element_of(item, fields) for item in values}
    gone = {item for item in before if element_of(item, fields) in replaced}
    return Fields(frozenset(gone | values.keys()), values, refused)


def _merge_patch(patch: Any, before: JsonObject, resource_type: ResourceType) -> Fields:
    """Objects are merged, null takes away, all else is replaced."""
    name = resource_type.name
    if not isinstance(patch, dict) or patch.get("resourceType", name) != name:
        raise refuse_patch(
            patch, tables().resources, f"an object with the fields of a {name} to update", name
        )
    named = {item: value for item, value in patch.items() if item != "resourceType"}
    names = _updatable_of(named, resource_type)
    values = {
        item: _merged(before.get(item), named[item]) for item in names if named[item] is not None
    }
    refused = _refuse_others(named, resource_type)
    kept_apart = list(_documents_kept_apart(before, values, resource_type))
    if kept_apart:
        raise BrokenRule([*refused, *kept_apart])
    return Fields(frozenset(names), values, refused)


def _merged(target: Any, patch: Any) -> Any:
    """Return what a merge patch makes of a value (RFC 7396 section 2)."""
    if not isinstance(patch, dict):
        return patch
    kept = target if isinstance(target, dict) else {}
    merged = {name: value for name, value in kept.items() if name not in patch}
    for name, value in patch.items():
        if value is not None:
            merged[name] = _merged(kept.get(name), value)
    return merged


def _json_patch(
    operations: Any, before: JsonObject, resource_type: ResourceType, most: int
) -> Fields:
    """The operations one after the other; the fields that they write to are those named."""
    name = resource_type.name
    if not isinstance(operations, list):
        raise refuse_patch(operations, tables().resources, "an array of operations", name)
    if len(operations) > _MAX_OPERATIONS:
        raise InvalidContent.because(
            f"the body must be a list of at most {_MAX_OPERATIONS} operations",
            expression=name,
            details=OperationProblem.PATCH_MALFORMED,
        )
    malformed = list(_check_operations(operations, name))
    if malformed:
        raise InvalidContent(malformed)
    written = list(dict.fromkeys(root for item in operations for root in _changed_members(item)))
    refused = _refuse_others(written, resource_type)
    after, copied = in_decimals(before), 0
    for number, operation in enumerate(in_decimals(operations), start=1):
        if operation["op"] == "copy":
            copied += _weight(JsonPointer(operation["from"]).resolve(after, None))
            if copied > min(most, _MAX_COPIED):
                raise TooLarge.because(
                    "the operations make the resource too large",
                    details=ContentProblem.BODY_TOO_LARGE,
                )
        after = _apply(operation, after, at=name, number=number, refused=refused)
    refuse_excess(after)
    kept_apart = list(_documents_kept_apart(before, after, resource_type))
    if kept_apart:
        raise BrokenRule([*refused, *kept_apart])
    names = _updatable_of(written, resource_type)
    values = {item: after[item] for item in names if item in after}
    return Fields(frozenset(names), values, refused)


def _check_operations(operations: Iterable[Any], name: str) -> Iterator[Issue]:
    """Report malformed operations (RFC 6902 section 4), each by its number from 1."""
    for number, operation in enumerate(operations, start=1):
        wrong = _what_is_wrong(operation)
        if wrong:
            rule = f"operation {number} {wrong}"
            yield Issue.error(OperationProblem.PATCH_MALFORMED, rule, name)


def _what_is_wrong(operation: Any) -> str:
    if not isinstance(operation, dict) or operation.get("op") not in OPERATIONS:
        return f"must be an object whose op is one of {', '.join(OPERATIONS)}"
    members = ("path", *_MEMBERS.get(operation["op"], ()))
    missing = [member for member in members if member not in operation]
    if missing:
        return f"lacks {' and '.join(missing)}"
    for name in ("path", "from"):
        if name in members and not _is_pointer(operation[name]):
            return f"has no JSON Pointer as {name}"
    return ""


def _is_pointer(text: Any) -> bool:
    try:
        return isinstance(text, str) and text.count("/") <= MAX_DEPTH and bool(JsonPointer(text))
    except JsonPointerException:
        return False


def _changed_members(operation: Mapping[str, Any]) -> Iterator[str]:
    """Return the members of the resource that an operation changes; "" is all of it."""
    if operation["op"] != "test":
        yield _root(operation["path"])
    if operation["op"] == "move":
        yield _root(operation["from"])


def _root(pointer: str) -> str:
    parts: list[str] = JsonPointer(pointer).parts
    return parts[0] if parts else ""


def _apply(
    operation: Mapping[str, Any],
    resource: JsonObject,
    *,
    at: str,
    number: int,
    refused: Iterable[Issue],
) -> JsonObject:
    try:
        after: JsonObject = JsonPatch([operation]).apply(resource, in_place=True)
    except JsonPatchTestFailed:
        failed = "the test failed; what a document holds cannot be tested"
    except (JsonPatchException, JsonPointerException, RecursionError):
        failed = "there is nothing at its path, or not what it takes"
    else:
        return after
    rule = f"operation {number}: {failed}"
    raise BrokenRule([*refused, Issue.error(OperationProblem.PATCH_FAILED, rule, at)])


def _weight(value: Any) -> int:
    """Return about how many bytes a value takes: copies of copies grow fast."""
    weight, rest = 0, [value]
    for item in rest:  # grows while it is read
        weight += _BYTES_OF_A_VALUE + (len(item) if isinstance(item, str) else 0)
        if isinstance(item, dict):
            rest += item.values()
        elif isinstance(item, list):
            rest += item
    return weight


def _documents_kept_apart(
    before: JsonObject, after: JsonObject, resource_type: ResourceType
) -> Iterator[Issue]:
    """A document that stays may change its place in the list, but not leave its attachment.

    Nor may its hash change: there are no data to compare it with.
    """
    known = {
        (element["data"], repr(element.get("hash")))  # what takes its place may be of any type
        for _at, element in attachments_of(before, resource_type.attachments)
        if is_marker(element.get("data"))
    }
    proper = 0
    for at, element in attachments_of(after, resource_type.attachments):
        if not is_marker(element.get("data")):
            continue
        proper += 1
        if (element["data"], repr(element.get("hash"))) not in known:
            rule = "belongs to data that stay as they are: replace the whole attachment"
            place = f"{resource_type.name}.{at}.hash"
            yield Issue.error(OperationProblem.ATTACHMENT_DIVIDED, rule, place)
    if proper != _markers_in(after):
        rule = "the data of a document cannot be moved or copied by themselves"
        yield Issue.error(OperationProblem.ATTACHMENT_DIVIDED, rule, resource_type.name)


def _markers_in(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_markers_in, value.values()))
    if isinstance(value, list):
        return sum(map(_markers_in, value))
    return int(is_marker(value))


def _updatable_of(names: Iterable[str], resource_type: ResourceType) -> list[str]:
    """Return those of the members that can be updated."""
    updatable = resource_type.updatable
    without_siblings = {f"_{path.partition('.')[0]}" for path in resource_type.attachments}
    return [
        item
        for item in names
        if item not in without_siblings and element_of(item, updatable) in updatable
    ]


def _refuse_others(names: Iterable[str], resource_type: ResourceType) -> tuple[Issue, ...]:
    """Return the issues of fields that cannot be updated."""
    names = list(names)
    updatable = set(_updatable_of(names, resource_type))
    name, fields = resource_type.name, _updatable(resource_type)
    return tuple(
        Issue.error(
            OperationProblem.ELEMENT_NOT_UPDATABLE,
            f"{item} cannot be updated; fields that can: {fields}",
            name if item == _UNKNOWN else f"{name}.{item.removeprefix('_')}",
        )
        for item in map(_speakable, (item for item in names if item not in updatable))
    )


def _updatable(resource_type: ResourceType) -> str:
    return ", ".join(sorted(resource_type.updatable))


def _speakable(name: str) -> str:
    """Return the name of a property if it can be shown, which a name of FHIR always can."""
    return name if name.isidentifier() and name.isascii() and len(name) <= 64 else _UNKNOWN
