"""The one door to JSON Schema: a fast engine accepts, a patient one explains what it refused.

See ADR 13.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema
import jsonschema_rs
from jsonschema.exceptions import ValidationError
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from fhirpub.errors import ConfigurationError, Issue
from fhirpub.fhir.definitions.schema_documents import (
    ANY,
    SAID,
    URN,
    Element,
    documents,
    element_at,
    forms_of_choices,
    types_of,
)
from fhirpub.fhir.document import decode, is_marker
from fhirpub.fhir.strict_json import JsonObject

MAX_PROBLEMS = 100
"""Issues about one resource; who has more will come back."""
MAX_EXPLAINED_VALUES = 2_000
"""Values in a resource that is explained problem by problem: 30 µs each, on the event loop."""

_LARGEST_STRING = 1_048_576
_MAX_NAMES = 10
_NAME = re.compile("[A-Za-z]+")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_DEFINED = "#/$defs/"
_STOCK = jsonschema.Draft202012Validator

Errors = Iterator[ValidationError]


class Schemas:
    """The schemas of all resource types, compiled once.

    ``extra`` are further documents by type name, such as a plugin brings them. They may refer
    to ours (``urn:fhirpub:schemas:r4:datatypes#/$defs/HumanName``).
    Raises ConfigurationError if one of them cannot be used.
    """

    def __init__(self, extra: Mapping[str, Mapping[str, object]] | None = None) -> None:
        known = documents(extra or {})
        self.by_id: Mapping[str, JsonObject] = known
        """Every document by its ``$id``, those of plugins among them."""
        try:
            self._accepting = _accepting(known)
        except (ValueError, jsonschema_rs.ReferencingError) as wrong:
            said = str(wrong).partition("\n")[0]
            raise ConfigurationError(f"the schemas cannot be compiled: {said}") from None
        registry: Registry[Any] = Registry().with_resources(
            (key, DRAFT202012.create_resource(element)) for key, element in known.items()
        )
        self._explaining = {
            type_name: _Explaining(known[key], registry=registry)
            for type_name, key in types_of(known).items()
        }
        self._documents = {name: known[key] for name, key in types_of(known).items()}
        self._stems = dict(forms_of_choices(list(known.values())))
        primitives = known[f"{URN}datatypes"]["$defs"]
        self._of_primitive = lru_cache(maxsize=None)(lambda name: _engine(primitives[name]))
        self.fhirpath = lru_cache(maxsize=4096)(self._fhirpath)
        """Returns a place in names of JSON as FHIRPath: ``effectiveDateTime`` is ``effective``."""

    def document(self, type_name: str) -> Mapping[str, Any]:
        """Return the schema document of a type that is known."""
        return self._documents[type_name]

    def type_at(self, type_name: str, path: str) -> tuple[str, str]:
        """Return the type of the element at a dotted path of JSON's names, and its values' name.

        Both are empty if there is no such element. The second differs from the first for a
        ``code`` that is bound to a value set, such as ``diagnostic-report-status``.
        """
        document = node = self._documents[type_name]
        name = ""
        for step in path.split("."):
            element = node.get("properties", {}).get(step)
            if not isinstance(element, dict):
                return "", ""
            holder, _, name = element.get("items", element).get("$ref", "").partition(_DEFINED)
            document = self.by_id[holder] if holder else document
            node = document.get("$defs", {}).get(name, {})
        return str(node.get("title", name)), name

    def knows(self, type_name: str) -> bool:
        """Return whether there is a schema for the type."""
        return type_name in self._explaining

    def element(self, type_name: str, path: str) -> Element | None:
        """Return what an element of a type is, dots go deeper; None if there is none."""
        return element_at(self.by_id, self.document(type_name), path)

    def problems(self, type_name: str, resource: JsonObject) -> list[Issue]:
        """Return everything that is wrong with the resource, or nothing when it is valid.

        The expressions are relative to the resource, without its type's name: ``name[0].given``.
        The type must be one that is known.
        """
        if self.accepts(type_name, resource):
            return []
        found = self.explain(type_name, resource)
        return found or [Issue("error", "exception", "the resource is not valid FHIR R4")]

    def accepts(self, type_name: str, resource: JsonObject) -> bool:
        """Return the verdict of the fast engine."""
        if resource.get("resourceType") != type_name or not self.knows(type_name):
            return False
        try:
            return self._accepting.is_valid(resource)
        except ValueError:  # a lone surrogate, which the reader of requests refuses earlier
            return False

    def accepts_primitive(self, type_name: str, value: object) -> bool:
        """Return the verdict of the fast engine on a value of a primitive type."""
        return self._of_primitive(type_name).is_valid(value)

    def explain(self, type_name: str, resource: JsonObject) -> list[Issue]:
        """Return the first problems that the patient engine finds."""
        if _holds_more_than(MAX_EXPLAINED_VALUES, resource):
            return self._places(resource)
        errors = self._explaining[type_name].iter_errors(resource)
        try:
            return list(islice(self._distinct(errors), MAX_PROBLEMS))
        except RecursionError:
            return self._places(resource)

    def _fhirpath(self, place: str) -> str:
        return _NAME.sub(lambda name: self._stems.get(name[0], name[0]), place)

    def _distinct(self, errors: Iterable[ValidationError]) -> Iterator[Issue]:
        seen: set[Issue] = set()
        for error in errors:
            place = self._expression(error.relative_path)
            issue = Issue("error", "exception", _sentence(error), place)
            if issue not in seen:
                seen.add(issue)
                yield issue

    def _places(self, resource: JsonObject) -> list[Issue]:
        """Return where the fast engine sees problems, without saying which."""
        said = "is not valid FHIR R4 (the resource is too large for a closer explanation)"
        errors = islice(self._accepting.iter_errors(resource), MAX_PROBLEMS)
        places = dict.fromkeys(self._expression(error.instance_path) for error in errors)
        return [Issue("error", "exception", said, place) for place in places]

    def _expression(self, path: Iterable[str | int]) -> str:
        """Return a path of JSON as FHIRPath, up to the first name that may not be repeated."""
        expression = ""
        for part in path:
            if isinstance(part, int):
                expression += f"[{part}]"
            elif _PLAIN_NAME.fullmatch(part) is None:
                break
            else:
                name = part.removeprefix("_")
                expression += f".{self._stems.get(name, name)}"
        return expression.removeprefix(".")


def schema_problems(type_name: str, document: object) -> list[str]:
    """Return everything that keeps a document from being the schema of a type, in sentences."""
    if not isinstance(document, Mapping):
        kind = type(document).__name__
        return [f"the schema for {type_name} must be a JSON Schema as a dict, not {kind}"]
    meta = _STOCK(_STOCK.META_SCHEMA)
    found = [
        f"the schema for {type_name} is not a JSON Schema at "
        f"{'.'.join(map(str, error.absolute_path)) or 'its top'}: {error.message}"
        for error in islice(meta.iter_errors(document), _MAX_NAMES)
    ]
    if found:
        return list(dict.fromkeys(found))
    try:
        Schemas({type_name: document})
    except ConfigurationError as problem:
        return [str(problem)]
    return []


def _holds_more_than(limit: int, resource: JsonObject) -> bool:
    waiting: list[object] = [resource]
    for _ in range(limit + 1):
        if not waiting:
            return False
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return True


# The fast engine, and the keywords of ours that it is taught.


def _accepting(known: Mapping[str, JsonObject]) -> jsonschema_rs.Validator:
    """Return one validator for all types: each can contain every other, so none is cheaper."""
    return _engine({"$ref": ANY}, jsonschema_rs.Registry(list(known.items())))


def _engine(
    schema: JsonObject, registry: jsonschema_rs.Registry | None = None
) -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(
        schema,
        registry=registry,
        keywords={
            "fhirBase64": _FhirBase64,
            "fhirDistinct": _FhirDistinct,
            "fhirInteger": _FhirInteger,
            "fhirPaired": _FhirPaired,
        },
        pattern_options=jsonschema_rs.RegexOptions(),  # linear, whatever a client sends
        offline=True,
    )


class _FhirPaired:
    def __init__(self, _parent: object, name: str, _path: object) -> None:
        self._name = name

    def validate(self, instance: Any) -> None:
        if isinstance(instance, dict) and not _is_paired(instance, self._name):
            raise ValueError(self._name)


class _FhirDistinct:
    def __init__(self, _parent: object, name: str, _path: object) -> None:
        self._name = name

    def validate(self, instance: Any) -> None:
        if isinstance(instance, dict) and not _is_distinct(instance, self._name):
            raise ValueError(self._name)


class _FhirBase64:
    def __init__(self, _parent: object, _value: object, _path: object) -> None:
        """Take what the engine gives; there is nothing to remember."""

    def validate(self, instance: object) -> None:
        if isinstance(instance, str) and not _is_base64(instance):
            raise ValueError("not base64")


class _FhirInteger:
    def __init__(self, _parent: object, _value: object, _path: object) -> None:
        """Take what the engine gives; there is nothing to remember."""

    def validate(self, instance: object) -> None:
        if type(instance) is not int:
            raise ValueError("not an integer")


def _is_base64(text: str) -> bool:
    """Return whether a string is base64, or stands for a document that was."""
    return is_marker(text) or not text or decode(text) is not None


def _is_paired(resource: JsonObject, name: str) -> bool:
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


def _is_distinct(resource: JsonObject, name: str) -> bool:
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


# The patient engine: its own keywords, but for those where we have more to say.


class _Said(ValidationError):
    """An error whose message is ours, and so holds nothing out of the resource."""


def _say_paired(_engine: object, name: str, instance: Any, _schema: object) -> Errors:
    if isinstance(instance, dict) and not _is_paired(instance, name):
        said = "needs a value or an extension at each position, and as many values as siblings"
        yield _Said(said, path=[name])


def _say_distinct(_engine: object, name: str, instance: Any, schema: JsonObject) -> Errors:
    if isinstance(instance, dict) and not _is_distinct(instance, name):
        yield _Said(schema[SAID], path=_title_of(schema))


def _say_required(_engine: object, names: Sequence[str], instance: Any, _schema: object) -> Errors:
    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield _Said("is required", path=[name])


def _say_base64(_engine: Any, _value: Any, instance: Any, _schema: JsonObject) -> Errors:
    if isinstance(instance, str) and not _is_base64(instance):
        yield ValidationError("not base64")


def _say_any_of(engine: Any, forms: Any, instance: Any, schema: JsonObject) -> Errors:
    if not any(engine.evolve(schema=form).is_valid(instance) for form in forms):
        yield _Said(schema.get(SAID, "is required"), path=_title_of(schema))


def _say_one_of(engine: Any, forms: Any, instance: Any, schema: JsonObject) -> Errors:
    valid = sum(engine.evolve(schema=form).is_valid(instance) for form in forms)
    if valid == 0:
        yield _Said("is required, in one of its forms", path=_title_of(schema))
    if valid > 1:
        yield _Said("must be given in one of its forms only", path=_title_of(schema))


def _title_of(schema: JsonObject) -> list[str]:
    title = str(schema.get("title", "")).removesuffix("[x]")
    return [title] if title else []


def _say_additional(engine: Any, allowed: Any, instance: Any, schema: JsonObject) -> Errors:
    if allowed is not False:
        yield from _STOCK.VALIDATORS["additionalProperties"](engine, allowed, instance, schema)
    elif isinstance(instance, dict):
        unknown = [name for name in instance if name not in schema.get("properties", {})]
        if unknown:
            yield _Said(describe_unknown_names("properties", unknown))


def describe_unknown_names(kind: str, names: Sequence[str]) -> str:
    """Return the sentence about unknown names of a kind; only plain ones are repeated."""
    plain = sorted(name for name in names if _PLAIN_NAME.fullmatch(name))[:_MAX_NAMES]
    more = len(names) - len(plain)
    if not plain:
        return f"has unknown {kind}"
    others = f" and {more} more" if more else ""
    return f"has {kind} that FHIR R4 does not have here: {', '.join(plain)}{others}"


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


_Explaining = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    _STOCK,
    validators={
        "additionalProperties": _say_additional,
        "anyOf": _say_any_of,
        "fhirBase64": _say_base64,
        "fhirDistinct": _say_distinct,
        "fhirPaired": _say_paired,
        "not": _unless_too_long("not"),
        "oneOf": _say_one_of,
        "pattern": _unless_too_long("pattern"),
        "required": _say_required,
    },
    type_checker=_STOCK.TYPE_CHECKER.redefine_many({"integer": _is_integer, "number": _is_number}),
)


# The sentences.

_SENTENCES = {
    "contains": "must hold at least one item that is not null",
    "minItems": "must not be an empty array",
    "minLength": "must not be an empty string",
}
_TYPES = {"array": "must be an array, because it may repeat", "object": "must be an object"}


def _sentence(error: ValidationError) -> str:
    """Return what is wrong, in words that hold nothing out of the resource."""
    keyword, schema = str(error.validator), error.schema
    if isinstance(error, _Said):
        return error.message
    if error.instance is None:
        return "must not be null"
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
