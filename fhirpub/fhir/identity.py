"""What identifies must be clear: absolute URIs, well-formed urn:oid and urn:uuid, ids used once.

A resource that breaks one of these rules is refused, as HL7's validator does (D-54): a reader
could take another code system, profile or element for the one that is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from fhirpub.errors import Issue
from fhirpub.fhir.elements import objects_in
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.problems import ContentProblem

_WEB = ("http://", "https://")
_URN = ("urn:oid:", "urn:uuid:")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]")
_OID = re.compile(r"[0-2](?:\.(?:0|[1-9][0-9]*))+")
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BLANK = re.compile(r"[\x00-\x20]")
_CANONICALS = frozenset({"instantiatesCanonical", "profile", "valueCanonical"})
_URIS_AS_VALUES = "urn:ietf:rfc:3986"
_OF_TELECOM = frozenset({"phone", "fax", "email", "pager", "url", "sms", "other"})
"""``system`` of a ContactPoint is a code, not a URI."""


def identity_problems(
    identified: Sequence[JsonObject],
    targets: Sequence[JsonObject],
    place_of: Callable[[JsonObject], str],
) -> Iterator[Issue]:
    """Return the URIs of a resource that identify nothing clearly, with places below it.

    ``identified`` and ``targets`` are its objects to look at (``Entry``).
    Asked of what is new alone: what was stored before must stay open to updates.
    """
    for element in identified:
        system = element.get("system")
        if type(system) is str and not system.startswith(_WEB):
            for name, rule in _of_system(system, element):
                yield _error(rule, place_of(element), name)
        for name in _CANONICALS.intersection(element):
            yield from _of_canonicals(element, name, place_of)
    for element in targets:
        literal = element.get("reference")
        if type(literal) is str and (rule := _reference_problem(literal)):
            yield _error(rule, place_of(element), "reference")
        if "extension" in element:
            yield from _of_extensions(element, place_of)


def repeated_element_ids(
    resource: JsonObject,
    identified: Sequence[JsonObject],
    place_of: Callable[[JsonObject], str],
) -> Iterator[Issue]:
    """Return the elements whose id another one in the same resource has."""
    ids = [element["id"] for element in identified if "id" in element]
    if len(ids) == 1 or len({*map(str, ids)}) == len(ids):
        return
    contained = [one for one in resource.get("contained", ()) if isinstance(one, dict)]
    for one in ({**resource, "contained": ()}, *contained):
        known: set[str] = set()
        for element in objects_in(one)[1:]:
            element_id = element.get("id")
            if isinstance(element_id, str) and element_id in known:
                rule, at = "must not be the id of another element", f"{place_of(element)}.id"
                yield Issue.error(ContentProblem.ID_REPEATED, rule, at)
            known.add(str(element_id))


def _of_system(system: str, element: JsonObject) -> Iterator[tuple[str, str]]:
    if system not in _OF_TELECOM and (rule := _uri_problem(system)):
        yield "system", rule
    if system == _URIS_AS_VALUES:
        value = element.get("value")
        if type(value) is str and not _ABSOLUTE.match(value):
            yield "value", f"must be an absolute URI, which the system {system} means"


def _of_canonicals(
    element: JsonObject, name: str, place_of: Callable[[JsonObject], str]
) -> Iterator[Issue]:
    value = element[name]
    for index, canonical in enumerate(value if isinstance(value, list) else (value,)):
        if type(canonical) is not str or canonical.startswith(("#", *_WEB)):
            continue
        if rule := _uri_problem(canonical.partition("|")[0]):
            at = f"{name}[{index}]" if isinstance(value, list) else name
            yield _error(rule, place_of(element), at)


def _of_extensions(element: JsonObject, place_of: Callable[[JsonObject], str]) -> Iterator[Issue]:
    """Return the extensions without a clear url; one in another may have a name instead."""
    extensions = element["extension"]
    is_nested = "url" in element and "contentType" not in element
    for extension in extensions if isinstance(extensions, list) else ():
        url = extension.get("url") if isinstance(extension, dict) else None
        if type(url) is not str or url.startswith(_WEB):
            continue
        rule = _urn_problem(url) if is_nested else _uri_problem(url)
        if rule:
            yield _error(rule, place_of(extension), "url")


def _uri_problem(uri: str) -> str:
    if uri.startswith(("oid:", "uuid:")):
        return "must begin with urn:oid: or urn:uuid:"
    if not _ABSOLUTE.match(uri):
        return "must be an absolute URI, such as https://lab.example/codes or urn:oid:2.999.1"
    return _urn_problem(uri)


def _reference_problem(literal: str) -> str:
    if _BLANK.search(literal):
        return "must not have white space"
    return _urn_problem(literal) if literal.startswith(_URN) else ""


def _urn_problem(uri: str) -> str:
    if uri.startswith("urn:oid:"):
        is_oid = _OID.fullmatch(uri.removeprefix("urn:oid:"))
        return "" if is_oid else "must be a whole OID after urn:oid:"
    if uri.startswith("urn:uuid:"):
        uuid = uri.removeprefix("urn:uuid:").partition("#")[0]
        return "" if _UUID.fullmatch(uuid) else "must be a UUID in lower case after urn:uuid:"
    return ""


def _error(rule: str, *places: str) -> Issue:
    at = ".".join(filter(None, places))
    return Issue.error(ContentProblem.URI_INVALID, rule, at)
