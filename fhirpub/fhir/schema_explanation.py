"""The slow JSON Schema engine, which finds each problem and describes it (ADR 13).

Its work is bounded whatever the resource: problems are found one after the other, and parts that
the fast engine accepts are skipped.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from fhirpub.errors import MAX_ISSUES, Issue
from fhirpub.fhir.definitions.schema_documents import SAID, types_of
from fhirpub.fhir.explanation.advice import advise, example_of
from fhirpub.fhir.explanation.kinds import kind_of_problem
from fhirpub.fhir.explanation.unknown_names import (
    MAX_SUGGESTIONS,
    PLAIN_NAME,
    describe_unknown_names,
    suggest_name,
)
from fhirpub.fhir.explanation.work import Work
from fhirpub.fhir.schema_fast import PartValidator
from fhirpub.fhir.schema_predicates import is_base64, is_distinct, is_paired
from fhirpub.fhir.strict_json import JsonObject

_MAX_EXAMINED = 10 * MAX_ISSUES
"""Errors of the engine, of which several may describe one problem."""
_MAX_REPEATED = 10
"""Errors in a row that are the same issue, such as those at places too long to be shown."""
_SLICE = 8
"""Items that are looked at one by one; longer arrays are halved until they are this short."""
_MAX_PATH_LENGTH = 300
_LARGEST_STRING = 1_048_576
_STOCK = jsonschema.Draft202012Validator

Errors = Iterator[ValidationError]


class Explainer:
    """Finds what is wrong with resources that the fast engine has refused."""

    def __init__(
        self, known: Mapping[str, JsonObject], stems: Mapping[str, str], parts: PartValidator
    ) -> None:
        """Prepare the documents, by ``$id``; ``stems`` has the stem of each form of a choice."""
        self._stems = stems
        self._names = {
            id(schema): name
            for document in known.values()
            for name, schema in document.get("$defs", {}).items()
        }
        self._parts = parts
        self._state = threading.local()
        registry: Registry[Any] = Registry().with_resources(
            (key, DRAFT202012.create_resource(document)) for key, document in known.items()
        )
        engine = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
            _STOCK,
            validators={**_VALIDATORS, "$ref": self._follow, "items": self._check_items},
            type_checker=_TYPES_OF_JSON,
        )
        self._engines = {
            type_name: engine(known[key], registry=registry)
            for type_name, key in types_of(known).items()
        }

    def explain(self, type_name: str, resource: JsonObject) -> Iterator[Issue]:
        """Yield the distinct problems of a resource, at most ``MAX_ISSUES``, as they are found.

        A pure computation: each step finds one problem.
        """
        work = Work(resource)
        errors = self._engines[type_name].iter_errors(resource)
        seen: set[Issue] = set()
        repeated = suggested = 0
        for _examined in range(_MAX_EXAMINED):
            self._state.work = work  # another resource may have been explained in between
            error = _next(errors)
            self._state.work = None
            if error is None or len(seen) == MAX_ISSUES:
                return
            place = self.expression(error.relative_path)
            said = _sentence(error)
            details = kind_of_problem(said)
            if suggested < MAX_SUGGESTIONS and (advice := self._advise(error)):
                suggested += 1
                said += advice
            issue = Issue.error(details, said, place)
            repeated = repeated + 1 if issue in seen else 0
            if repeated == _MAX_REPEATED:  # each takes as long as a new one, without a pause
                return
            if issue not in seen:
                seen.add(issue)
                yield issue

    def _advise(self, error: ValidationError) -> str:
        """Return the end of a sentence: what to write instead, or nothing."""
        if isinstance(error, _Unknown):
            found = suggest_name(error.names, error.known)
            return found or "; leave it out, or send it as an extension"
        schema: Any = error.schema
        if isinstance(error, _Said) or not isinstance(schema, Mapping):
            return ""
        if error.instance in (None, ""):
            return ""
        if error.validator == "type" and error.validator_value in ("array", "object"):
            return self._advise_on_shape(schema, error.instance)
        is_primitive = {"title", "description"} <= schema.keys()
        return advise(schema, error.instance) if is_primitive else ""

    def _advise_on_shape(self, schema: Mapping[str, Any], value: Any) -> str:
        if isinstance(value, list):
            return ": leave out the [ ]"
        if schema.get("type") == "object":
            return example_of(self._names.get(id(schema), ""))
        item = str(schema.get("items", {}).get("$ref", "")).rpartition("/")[2]
        example = "" if isinstance(value, dict) else example_of(item, repeats=True)
        return example or ": put [ ] around it"

    def expression(self, path: Iterable[str | int]) -> str:
        """Return a path of JSON as FHIRPath, up to the first name that may not be repeated."""
        expression = ""
        for part in path:
            if isinstance(part, int):
                step = f"[{part}]"
            elif PLAIN_NAME.fullmatch(part) is None:
                break
            else:
                name = part.removeprefix("_")
                step = f".{self._stems.get(name, name)}"
            if len(expression) + len(step) > _MAX_PATH_LENGTH:
                break
            expression += step
        return expression.removeprefix(".")

    def _accepts(self, reference: str, instance: Any, *, in_array: bool = False) -> bool | None:
        """Return the verdict of the fast engine; None if the work for this resource is used up."""
        if not self._state.work.spend(instance):
            return None
        try:
            return self._parts.accepts(reference, instance, in_array=in_array)
        except ValueError:  # a lone surrogate
            return False

    def _follow(self, engine: Any, reference: str, instance: Any, schema: JsonObject) -> Errors:
        """Go into what a reference defines, unless the fast engine accepts the value."""
        if isinstance(instance, dict) and instance and ":" in reference:
            verdict = self._accepts(reference, instance)
            if verdict is None:
                yield _Said("is not valid FHIR R4 (the resource is too large to explain it)")
            if verdict is not False:
                return
        yield from _STOCK.VALIDATORS["$ref"](engine, reference, instance, schema)

    def _check_items(self, engine: Any, items: Any, instance: Any, schema: JsonObject) -> Errors:
        """Go into the items of an array, halved until the fast engine accepts a part of it."""
        has_gaps = isinstance(items, dict) and "else" in items
        target = items["else"] if has_gaps else items
        reference = target.get("$ref", "") if isinstance(target, dict) else ""
        if not isinstance(instance, list) or len(instance) <= _SLICE or ":" not in reference:
            yield from _STOCK.VALIDATORS["items"](engine, items, instance, schema)
            return
        waiting = [(0, len(instance))]
        while waiting:
            start, end = waiting.pop()
            part = instance[start:end]
            if end - start <= _SLICE:
                for index, item in enumerate(part, start=start):
                    yield from engine.descend(item, items, path=index)
                continue
            checked = [item for item in part if item is not None] if has_gaps else part
            verdict = not checked or self._accepts(reference, checked, in_array=True)
            if verdict is None:
                yield _Said("is not valid FHIR R4 (the resource is too large to explain it)")
                return
            if not verdict:
                middle = (start + end) // 2
                waiting += [(middle, end), (start, middle)]


def _next(errors: Errors) -> ValidationError | None:
    try:
        return next(errors, None)
    except RecursionError:
        return None


class _Said(ValidationError):
    """An error whose message is ours, and so holds nothing out of the resource."""


class _Unknown(_Said):
    """An object with properties that are not among the known ones."""

    def __init__(self, names: Sequence[str], known: Iterable[str]) -> None:
        super().__init__(describe_unknown_names("properties", names))
        self.names, self.known = names, known


def _say_paired(_engine: object, name: str, instance: Any, _schema: object) -> Errors:
    if isinstance(instance, dict) and not is_paired(instance, name):
        said = "needs a value or an extension at each position, and as many values as siblings"
        yield _Said(said, path=[name])


def _say_distinct(_engine: object, name: str, instance: Any, schema: JsonObject) -> Errors:
    if isinstance(instance, dict) and not is_distinct(instance, name):
        yield _Said(schema[SAID], path=_title_of(schema))


def _say_required(_engine: object, names: Sequence[str], instance: Any, _schema: object) -> Errors:
    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield _Said("is required", path=[name])


def _say_base64(_engine: Any, _value: Any, instance: Any, _schema: JsonObject) -> Errors:
    if isinstance(instance, str) and not is_base64(instance):
        yield ValidationError("not base64")


def _say_any_of(engine: Any, forms: Any, instance: Any, schema: JsonObject) -> Errors:
    if not any(engine.evolve(schema=form).is_valid(instance) for form in forms):
        yield _Said(schema.get(SAID, "is required"), path=_title_of(schema))


def _say_contains(engine: Any, wanted: Any, instance: Any, schema: JsonObject) -> Errors:
    if wanted != _NOT_NULL:
        yield from _STOCK.VALIDATORS["contains"](engine, wanted, instance, schema)
    elif isinstance(instance, list) and all(item is None for item in instance):
        yield ValidationError("only null")


_NOT_NULL = {"not": {"type": "null"}}


def _say_one_of(engine: Any, forms: Any, instance: Any, schema: JsonObject) -> Errors:
    valid = sum(engine.evolve(schema=form).is_valid(instance) for form in forms)
    if valid == 0:
        yield _Said("is required, in one of its forms", path=_title_of(schema))
    if valid > 1:
        said = "must be given in one of its forms only: leave out the others"
        yield _Said(said, path=_title_of(schema))


def _title_of(schema: JsonObject) -> list[str]:
    title = str(schema.get("title", "")).removesuffix("[x]")
    return [title] if title else []


def _say_additional(engine: Any, allowed: Any, instance: Any, schema: JsonObject) -> Errors:
    if allowed is not False:
        yield from _STOCK.VALIDATORS["additionalProperties"](engine, allowed, instance, schema)
    elif isinstance(instance, dict):
        unknown = [name for name in instance if name not in schema.get("properties", {})]
        if unknown:
            yield _Unknown(unknown, schema.get("properties", {}))


def _unless_too_long(keyword: str) -> Any:
    """Return a keyword of the engine that does not read strings which maxLength refuses."""
    own = _STOCK.VALIDATORS[keyword]

    def checked(engine: Any, value: Any, instance: Any, schema: JsonObject) -> Errors:
        if not isinstance(instance, str) or len(instance) <= _LARGEST_STRING:
            yield from own(engine, value, instance, schema)

    return checked


def _is_integer(_checker: object, instance: object) -> bool:
    return type(instance) is int


def _is_number(_checker: object, instance: Any) -> bool:
    return _STOCK.TYPE_CHECKER.is_type(instance, "number") and math.isfinite(instance)


_TYPES_OF_JSON = _STOCK.TYPE_CHECKER.redefine_many({"integer": _is_integer, "number": _is_number})
_VALIDATORS: Mapping[str, Callable[..., Errors]] = {
    "additionalProperties": _say_additional,
    "anyOf": _say_any_of,
    "contains": _say_contains,
    "fhirBase64": _say_base64,
    "fhirDistinct": _say_distinct,
    "fhirPaired": _say_paired,
    "not": _unless_too_long("not"),
    "oneOf": _say_one_of,
    "pattern": _unless_too_long("pattern"),
    "required": _say_required,
}

_SENTENCES = {
    "contains": "must hold at least one item that is not null",
    "minItems": "must not be an empty array",
    "minLength": "must not be an empty string",
}
_HAS_FORM = frozenset({"enum", "pattern"})
_TYPES = {"array": "must be an array, because it may repeat", "object": "must be an object"}


def _sentence(error: ValidationError) -> str:
    """Return what is wrong, in words that hold nothing out of the resource."""
    keyword, schema = str(error.validator), error.schema
    if isinstance(error, _Said):
        return error.message
    if error.instance is None:
        return "must not be null: leave it out"
    if error.instance == "" and not (isinstance(schema, Mapping) and _HAS_FORM & schema.keys()):
        return "must not be an empty string: leave it out"
    if keyword == "minProperties":
        return "needs more than an id" if error.instance else "must not be an empty object"
    if keyword == "type" and error.validator_value in ("array", "object"):
        once = isinstance(error.instance, list)
        return "must not be an array" if once else _TYPES[str(error.validator_value)]
    return _message_of(schema) or _SENTENCES.get(keyword, "is not valid FHIR R4")


def _message_of(schema: object) -> str:
    """Return the sentence that a schema has for whatever it refuses."""
    if isinstance(schema, Mapping) and {"title", "description"} <= schema.keys():
        return f"must be a valid {schema['title']}: {schema['description']}"
    return str(schema.get(SAID, "")) if isinstance(schema, Mapping) else ""
