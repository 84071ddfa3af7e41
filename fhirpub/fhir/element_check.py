"""Checks resources of types without a schema against the element tables of R4 (D-251)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.explanation.advice import example_of
from fhirpub.fhir.explanation.unknown_names import describe_unknown_names
from fhirpub.fhir.narrative import parse
from fhirpub.fhir.strict_json import NUMBERS, JsonObject
from fhirpub.fhir.xml.tables import (
    BOOLEAN,
    DECIMAL,
    INTEGERS,
    OF_PRIMITIVE,
    RESOURCE,
    XHTML,
    Element,
    tables,
)
from fhirpub.problems import ContentProblem

IsOfType = Callable[[str, Any], bool]
"""Returns whether a value is valid for a primitive type, given by its name."""


def element_problems(resource: JsonObject, *, is_of_type: IsOfType) -> Iterator[Issue]:
    """Yield what is wrong with the elements of a resource, each issue at its FHIRPath.

    An element must exist in R4, be of its type, and occur as often as R4 requires and allows.
    Codes are not looked up.
    """
    return _Check(is_of_type).resource(resource, "")


class _Check:
    """One walk through a resource along the tables."""

    def __init__(self, is_of_type: IsOfType) -> None:
        self._is_of_type = is_of_type
        self._objects = tables().objects
        self._composed = {*self._objects, RESOURCE, XHTML}

    def resource(self, value: Any, at: str) -> Iterator[Issue]:
        name = value.get("resourceType") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in tables().resources:
            yield _error("must be a resource of FHIR R4", at)
            return
        yield from self._members(value, name, at, ("resourceType",))

    def _members(
        self, value: JsonObject, path: str, at: str, checked: tuple[str, ...]
    ) -> Iterator[Issue]:
        known = self._objects[path]
        names = dict.fromkeys(name.removeprefix("_") for name in value if name not in checked)
        unknown = [name for name in names if name not in known]
        if unknown:
            said = describe_unknown_names("properties", unknown)
            yield _error(said, at, ContentProblem.ELEMENT_UNKNOWN)
        present = [known[name] for name in names if name in known]
        yield from _count_problems(present, known, at)
        for element in present:
            here = f"{at}.{element.place}" if at else element.place
            yield from self._values(element, value, here)

    def _values(self, element: Element, holder: JsonObject, at: str) -> Iterator[Issue]:
        value, sibling = holder.get(element.name), holder.get(f"_{element.name}")
        if not element.many:
            yield from self._value(element, value, sibling, at)
        elif not all(item is None or isinstance(item, list) for item in (value, sibling)):
            example = example_of(element.type, repeats=True)
            yield _error(f"must be an array, because it may repeat{example}", at)
        else:
            pairs = zip_longest(value or (), sibling or ())
            for index, (item, beside) in enumerate(pairs):
                yield from self._value(element, item, beside, f"{at}[{index}]")

    def _value(self, element: Element, value: Any, sibling: Any, at: str) -> Iterator[Issue]:
        if element.type not in self._composed:
            yield from self._primitive(element.type, value, sibling, at)
        elif sibling is not None:
            yield _error("is no primitive: it has no sibling", at)
        elif element.type == RESOURCE:
            yield from self.resource(value, at)
        elif element.type == XHTML:
            yield from _narrative_problems(value, at)
        else:
            yield from self._object(value, element.type, at)

    def _primitive(self, type_name: str, value: Any, sibling: Any, at: str) -> Iterator[Issue]:
        has_value = value is not None
        if has_value and not (
            _is_json_of(type_name, value) and self._is_of_type(type_name, value)
        ):
            yield _error(f"must be a valid {type_name}", at, ContentProblem.VALUE_INVALID)
        if sibling is not None or not has_value:
            yield from self._object(sibling, OF_PRIMITIVE, at, has_value=has_value)

    def _object(
        self, value: Any, path: str, at: str, *, has_value: bool = False
    ) -> Iterator[Issue]:
        """Check an object, or the sibling of a primitive that may have a value."""
        if not isinstance(value, dict):
            once = isinstance(value, list)
            rule = f"must be an object{example_of(path)}"
            yield _error("must not be an array" if once else rule, at)
        elif not value and not has_value:
            yield _error("must not be an empty object", at, ContentProblem.VALUE_EMPTY)
        elif value.keys() == {"id"} and not has_value:
            yield _error("needs more than an id", at, ContentProblem.VALUE_EMPTY)
        elif path == "Extension" and not self._is_of_type("uri", value.get("url")):
            yield _error("needs a url, which must be a valid uri", at, ContentProblem.URI_INVALID)
        else:
            # In XML these are attributes, which the tables leave out.
            attributes = ("id", "url") if path == "Extension" else ("id",)
            if not all(isinstance(value[name], str) for name in attributes if name in value):
                yield _error("has an id that is no string", at)
            yield from self._members(value, path, at, attributes)


def _count_problems(
    present: list[Element], known: Mapping[str, Element], at: str
) -> Iterator[Issue]:
    counts = Counter(element.place for element in present)
    required = {element.place for element in known.values() if element.required}
    for place in sorted(required - counts.keys()):
        here = f"{at}.{place}" if at else place
        yield _error("is required", here, ContentProblem.ELEMENT_REQUIRED)
    for place, count in counts.items():
        if count > 1:
            rule = "must be given in one of its forms only: leave out the others"
            yield _error(rule, f"{at}.{place}" if at else place)


def _is_json_of(type_name: str, value: object) -> bool:
    """Return whether a value has the JSON type of a primitive (R4, 2.1.28.0)."""
    if type_name == BOOLEAN:
        return isinstance(value, bool)
    if type_name in INTEGERS:
        return type(value) is int
    if type_name == DECIMAL:
        return type(value) in NUMBERS
    return isinstance(value, str)


def _narrative_problems(div: Any, at: str) -> Iterator[Issue]:
    try:
        parse(str(div))
    except ValueError as malformed:
        yield _error(str(malformed), at, ContentProblem.NARRATIVE_INVALID)


def _error(
    rule: str, at: str, details: ContentProblem = ContentProblem.ELEMENT_MALFORMED
) -> Issue:
    return Issue.error(details, rule, at)
