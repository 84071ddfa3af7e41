"""The schema documents themselves, read, joined and looked through before an engine has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from fhirpub.errors import ConfigurationError
from fhirpub.fhir.strict_json import JsonObject

URN = "urn:fhirpub:schemas:r4:"
ANY = f"{URN}Resource"
"""The document of a resource of any type; all others can be reached from it."""
SAID = "x-said"
"""The text of a rule of FHIR, beside the keyword that asks for it."""

_BRANCHES = ("if", "then", "else")
_DIALECT = "$schema"


def documents(extra: Mapping[str, Mapping[str, object]]) -> dict[str, JsonObject]:
    """Return our documents and those of plugins (by type name), all by ``$id``.

    Without ``$schema``: it would make an engine leave our reading of the keywords for its own.
    """
    folder = resources.files("fhirpub.schemas") / "r4"
    files = [path for path in folder.iterdir() if path.name.endswith(".schema.json")]
    known: dict[str, JsonObject] = {}
    for file in files:
        document = json.loads(file.read_bytes())
        known[document["$id"]] = _with_absolute_references(
            _without_dialect(document), document["$id"]
        )
    for type_name, document in extra.items():
        _add(known, type_name, _without_dialect(document))
    return known


def types_of(known: Mapping[str, JsonObject]) -> dict[str, str]:
    """Return the ``$id`` of each resource type's document, by the type's name."""
    return {name: key for key, document in known.items() if (name := _type_of(document))}


def forms_of_choices(node: object) -> Iterator[tuple[str, str]]:
    """Yield each form of every ``x[x]`` with its stem: valueString in JSON, value in FHIRPath."""
    children: Iterable[object] = ()
    if isinstance(node, Mapping):
        children = node.values()
        stem, choice, _ = str(node.get("title", "")).partition("[x]")
        if choice:
            yield from ((name, stem) for name in _required_names(node.get("oneOf", ())))
    elif isinstance(node, list):
        children = node
    for child in children:
        yield from forms_of_choices(child)


@dataclass(frozen=True, slots=True)
class Element:
    """An element as a schema describes it.

    ``type`` is the name of its data type, the path of a nested element, the name of its list of
    codes, or empty where the schema does not refer to any (a primitive that repeats).
    """

    type: str
    repeats: bool
    codes: frozenset[str]


def element_at(
    known: Mapping[str, JsonObject], document: Mapping[str, Any], path: str
) -> Element | None:
    """Return what a dotted path leads to in a document, through data types; None if nowhere."""
    name, _, rest = path.partition(".")
    schema = document.get("properties", {}).get(name)
    if schema is None:
        return None
    items = schema.get("items", schema) if isinstance(schema, Mapping) else {}
    home, inside = _resolve(known, document, str(items.get("$ref", "")))
    if rest:
        return element_at(known, {**home, **inside}, rest)
    return Element(
        type=str(items.get("$ref", "")).rpartition("/")[2],
        repeats=items is not schema,
        codes=frozenset(inside.get("enum", ())),
    )


def _resolve(
    known: Mapping[str, JsonObject], document: Mapping[str, Any], reference: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the document that a reference leads to, and what stands there in it."""
    key, _, place = reference.partition("#/$defs/")
    home = known.get(key, document)
    return home, home.get("$defs", {}).get(place, {})


def _without_dialect(document: Mapping[str, object]) -> JsonObject:
    return {keyword: value for keyword, value in document.items() if keyword != _DIALECT}


def _with_absolute_references(node: Any, key: str) -> Any:
    """Return a document whose references name the document that they lead into."""
    if isinstance(node, dict):
        return {
            name: f"{key}{member}"
            if name == "$ref" and isinstance(member, str) and member.startswith("#")
            else _with_absolute_references(member, key)
            for name, member in node.items()
        }
    if isinstance(node, list):
        return [_with_absolute_references(member, key) for member in node]
    return node


def _type_of(document: JsonObject) -> str:
    kind = document.get("properties", {}).get("resourceType", {})
    return str(kind.get("const", ""))


def _add(known: dict[str, JsonObject], type_name: str, document: JsonObject) -> None:
    """Add a document, and the way to it from wherever a resource of any type may stand."""
    key = URN + type_name
    if key in known:
        raise ConfigurationError(f"there is a schema for {type_name} already")
    if document.get("$id", key) != key or _type_of(document) != type_name:
        raise ConfigurationError(
            f"the schema for {type_name} needs the $id {key},"
            f" and a property resourceType with the const {type_name}"
        )
    known[key] = _with_absolute_references({"$id": key, **document}, key)
    own = {"required": ["resourceType"], "properties": {"resourceType": {"const": type_name}}}
    others = {branch: known[ANY][branch] for branch in _BRANCHES}
    known[ANY] = {**known[ANY], "if": own, "then": {"$ref": key}, "else": others}


def _required_names(forms: Iterable[JsonObject]) -> Iterator[str]:
    for form in forms:
        yield from form.get("required", ())
        yield from _required_names(form.get("anyOf", ()))
