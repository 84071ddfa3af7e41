"""JSON Schemas made of the element tables of FHIR R4: ours, and those that plugins bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fhirpub.fhir.definitions.element_tables import ABSTRACT, Element, Tables
from fhirpub.fhir.definitions.schema_documents import SAID, URN
from fhirpub.fhir.definitions.value_schemas import (
    DATE,
    HASH,
    LIMITS,
    MONTH,
    OFFSET,
    STRING,
    STRING_SAID,
    TIME,
    URI,
    URI_SAID,
    YEAR,
    Schema,
    shape,
    text,
    whole,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DATATYPES = f"{URN}datatypes#/$defs/"
HERE = "#/$defs/"
NESTED = ("BackboneElement", "Element")
BARE = ("Extension.url", "Narrative.div")  # like every id: no ``_url`` or ``_div`` beside them
MANY_CODES = 40
MANY_TYPES = 8  # of a choice: asking for them one by one costs microseconds, so ask first for any


PRIMITIVES: dict[str, tuple[str, Schema]] = {
    "base64Binary": (
        "a string of base64 (RFC 4648 section 4) with correct padding",
        {"type": "string", "minLength": 1, "fhirBase64": True},
    ),
    "boolean": ("true or false, without quotation marks", {"type": "boolean"}),
    "canonical": (URI_SAID, URI),
    "code": (
        "a string without white space other than single spaces between its words",
        text(r"^ |  | $|[\u0000-\u001f]"),
    ),
    "date": ("YYYY, YYYY-MM or YYYY-MM-DD", shape(f"({YEAR}(-{MONTH})?|{DATE})", "0-9-")),
    "dateTime": (
        "YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDThh:mm:ss with an offset such as Z or +02:00",
        shape(f"({YEAR}(-{MONTH})?|({DATE})(T{TIME}{OFFSET})?)", "0-9TZ:.+-"),
    ),
    "decimal": ("a number, without quotation marks", {"type": "number"}),
    "id": (
        "1 to 64 of the characters A-Z, a-z, 0-9, hyphen and full stop",
        text("[^A-Za-z0-9.-]", maxLength=64),
    ),
    "instant": (
        "YYYY-MM-DDThh:mm:ss with an offset such as Z or +02:00",
        shape(f"({DATE})T{TIME}{OFFSET}", "0-9TZ:.+-"),
    ),
    "integer": ("a whole number of 32 bits, without fraction or exponent", whole(-(2**31))),
    "markdown": (STRING_SAID, STRING),
    "oid": (
        "urn:oid: and an object identifier",
        shape(r"urn:oid:[0-2](\.(0|[1-9][0-9]*))+", "a-z0-9:."),
    ),
    "positiveInt": ("a whole number from 1 to 2147483647", whole(1)),
    "string": (STRING_SAID, STRING),
    "time": ("hh:mm:ss without an offset", shape(TIME, "0-9:.")),
    "unsignedInt": ("a whole number from 0 to 2147483647", whole(0)),
    "uri": (URI_SAID, URI),
    "url": (URI_SAID, URI),
    "uuid": (
        "urn:uuid: and a UUID in lower case",
        shape("urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "a-z0-9:-"),
    ),
    "xhtml": ("a string that holds one XHTML div", STRING),
}


def reference(name: str, *, here: bool = False) -> Schema:
    """Return a reference to a data type, a primitive or a list of codes, maybe right here."""
    if name == "Resource":
        return {"$ref": URN + name}
    return {"$ref": f"{HERE if here else DATATYPES}{name}"}


def array_of(items: Schema) -> Schema:
    """Return the schema of an element that repeats: an array and never an empty one."""
    return {"type": "array", "minItems": 1, "items": items}


def array_with_gaps(items: Schema) -> Schema:
    """Return the schema of one of two parallel arrays: null may fill its gaps."""
    gaps = array_of({"if": {"type": "null"}, "else": items})
    return {**gaps, "contains": {"not": {"type": "null"}}}


def requires(name: str, *, primitive: bool) -> Schema:
    """Return the schema of an object that has the property, or its sibling with an underscore."""
    alone: Schema = {"required": [name]}
    return {"anyOf": [alone, {"required": [f"_{name}"]}]} if primitive else alone


def _if_there(name: str, rule: Schema) -> Schema:
    """Return a rule for objects that have an element, in whatever form if it is a choice."""
    stem, choice, _ = name.partition("[x]")
    absent = {"not": {"pattern": f"^_?{stem}{'[A-Z]' if choice else '$'}"}}
    return {"if": {"propertyNames": absent}, "else": rule}


@dataclass
class Shape:
    """An object's schema in the making, one element after the other."""

    properties: Schema = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    siblings: Schema = field(default_factory=dict)
    rules: list[Schema] = field(default_factory=list)

    def add(self, name: str, items: Schema, *, many: bool = False) -> None:
        """Add an element that has no sibling with an underscore."""
        self.properties[name] = array_of(items) if many else items

    def add_primitive(self, name: str, items: Schema, *, many: bool = False) -> None:
        """Add a primitive and its sibling, which carries the id and the extensions."""
        element, sibling, paired = reference("Element"), f"_{name}", {"fhirPaired": name}
        if not many:
            self.properties |= {name: items, sibling: element}
            self.siblings[sibling] = paired
            return
        self.properties |= {name: True, sibling: True}
        gaps = {name: array_with_gaps(items), sibling: array_with_gaps(element)}
        self.rules.append(
            {
                "if": {"required": [sibling]},
                "then": {"properties": gaps, **paired},
                "else": {"properties": {name: array_of(items)}},
            }
        )

    def add_choice(self, stem: str, types: Mapping[str, Schema], *, required: bool) -> None:
        """Add an ``x[x]`` element: at most one of its forms, exactly one where required."""
        forms: list[Schema] = []
        for type_name, schema in types.items():
            name, primitive = stem + type_name[0].upper() + type_name[1:], type_name in PRIMITIVES
            (self.add_primitive if primitive else self.add)(name, schema)
            forms.append(requires(name, primitive=primitive))
        none = [] if required else [{"not": {"anyOf": forms}}]
        rule: Schema = {"title": f"{stem}[x]", "oneOf": [*forms, *none]}
        absent = {"propertyNames": {"not": {"pattern": f"^_?{stem}[A-Z]"}}}
        gated = not required and len(types) > MANY_TYPES
        self.rules.append({"if": absent, "else": rule} if gated else rule)

    def add_needed(self, name: str, needed: str) -> None:
        """Add the rule that an element needs another beside it."""
        beside = {"title": needed, **requires(needed, primitive=self._is_primitive(needed))}
        self.rules.append({"dependentSchemas": {name: beside}})

    def add_any_of(self, key: str, names: Sequence[str]) -> None:
        """Add the rule that one of some elements must be there."""
        forms = [requires(name, primitive=self._is_primitive(name)) for name in names]
        said = f"must have {', '.join(names[:-1])} or {names[-1]} ({key})"
        self.rules.append({SAID: said, "anyOf": forms})

    def add_excluded(self, key: str, one: str, other: str) -> None:
        """Add the rule that an element must not stand beside another, which may be a choice."""
        said = f"must not stand beside {other.removesuffix('[x]')} ({key})"
        never = {SAID: said, "not": {}}
        names = [one, f"_{one}"] if self._is_primitive(one) else [one]
        rules = {name: _if_there(other, {"properties": {name: never}}) for name in names}
        self.rules.append({"dependentSchemas": rules})

    def add_distinct(self, key: str, one: str, items: str) -> None:
        """Add the rule that an element must not stand beside items with the object's own code."""
        said = f"must not stand beside a {items} of the same code ({key})"
        rule = {"title": one, SAID: said, "fhirDistinct": items}
        self.rules.append({"dependentSchemas": {items: _if_there(one, rule)}})

    def add_barred(self, key: str, name: str, inner: str, value: str) -> None:
        """Add the rule that an element of the items of an element must not have a value."""
        never = {SAID: f"must not be {value} ({key})", "not": {"const": value}}
        items = {"items": {"properties": {inner: never}}}
        self.rules.append({"properties": {name: items}})

    def add_limit(self, key: str, name: str, limit: str) -> None:
        """Add the rule that the value of an element keeps within a limit."""
        said, rule = LIMITS[limit]
        self.rules.append({"properties": {name: {SAID: f"{said} ({key})", **rule}}})

    def add_simple(self, name: str) -> None:
        """Add the rule that a quantity has no comparator."""
        never = {SAID: "must not stand here (sqty-1)", "not": {}}
        self.rules.append({"properties": {name: {"properties": {"comparator": never}}}})

    def _is_primitive(self, name: str) -> bool:
        return f"_{name}" in self.properties

    def schema(self, *, root: bool, sibling: bool) -> Schema:
        """Return the finished schema.

        An element needs more than an id, unless it is the ``root`` of a resource, or the
        ``sibling`` of a primitive, which has its value elsewhere.
        """
        more = {} if root or sibling else {"id": {"minProperties": 2}}
        depends = {**more, **self.siblings}
        parts: Schema = {
            "minProperties": 0 if root else 1,
            "required": self.required,
            "properties": self.properties,
            "dependentSchemas": depends,
            "allOf": self.rules,
        }
        filled = {keyword: value for keyword, value in parts.items() if value}
        return {"type": "object", **filled, "additionalProperties": False}


def objects(type_name: str, tables: Tables) -> dict[str, Schema]:
    """Return the schema of a type and of every nested element in it, by path."""
    table = tables.types[type_name]
    shapes: dict[str, Shape] = {type_name: Shape()}
    for element in table["elements"]:
        parent, _, name = element["path"].rpartition(".")
        _add(shapes.setdefault(parent, Shape()), name, element, tables)
    for path, item in shapes.items():
        _add_rules(item, path, tables)
    resource = table["kind"] == "resource"
    return {
        path: item.schema(root=resource and path == type_name, sibling=path == "Element")
        for path, item in shapes.items()
    }


def _add_rules(shape: Shape, path: str, tables: Tables) -> None:
    """Add FHIR's rules between the elements of an object."""
    for name, needed in tables.needed.get(path, {}).items():
        shape.add_needed(name, needed)
    for key, names in tables.any_of.get(path, {}).items():
        shape.add_any_of(key, names)
    for key, (one, other) in tables.excluded.get(path, {}).items():
        shape.add_excluded(key, one, other)
    for key, (one, items) in tables.distinct.get(path, {}).items():
        shape.add_distinct(key, one, items)
    for key, (name, inner, value) in tables.barred.get(path, {}).items():
        shape.add_barred(key, name, inner, value)
    _add_limits(shape, path, tables)


def _add_limits(shape: Shape, path: str, tables: Tables) -> None:
    """Add FHIR's rules about the values of an object's elements."""
    for key, limits in tables.limited.get(path, {}).items():
        for name, limit in limits.items():
            shape.add_limit(key, name, limit)
    for name in tables.simple.get(path, ()):
        shape.add_simple(name)


def _add(parent: Shape, name: str, element: Element, tables: Tables) -> None:
    types, required, many = element["types"], element["min"] > 0, element["max"] == "*"
    if name.endswith("[x]"):
        forms = {type_name: _type(type_name, tables) for type_name in types}
        parent.add_choice(name.removesuffix("[x]"), forms, required=required)
        return
    bare = name == "id" or element["path"] in BARE
    primitive = not bare and types[:1] != [] and types[0] in PRIMITIVES
    add = parent.add_primitive if primitive else parent.add
    add(name, _items(element, tables), many=many)
    if required and primitive:
        parent.rules.append({"title": name, **requires(name, primitive=True)})
    elif required:
        parent.required.append(name)


def _items(element: Element, tables: Tables) -> Schema:
    path, owner = element["path"], element["path"].partition(".")[0]
    if "same_as" in element or element["types"][0] in NESTED:
        return reference(element.get("same_as", path), here=True)
    if path == "Extension.url":
        return reference("uri")
    if path == "Attachment.hash":
        return HASH
    if path.endswith(".id") and path.count(".") == 1 and _is_resource(owner, tables):
        return reference("id")
    url = tables.required_set(element)
    if url:
        return reference(short_name(url), here=url not in tables.held_sets)
    return _type(element["types"][0], tables)


def _is_resource(type_name: str, tables: Tables) -> bool:
    return type_name not in ABSTRACT and tables.types[type_name]["kind"] == "resource"


def _type(name: str, tables: Tables) -> Schema:
    return reference(name, here=name not in PRIMITIVES and name not in tables.held)


def short_name(url: str) -> str:
    """Return the name under which a value set's codes stand in a document."""
    return url.rpartition("/")[2]


def codes_schema(url: str, tables: Tables) -> Schema:
    """Return the schema of a code that must come from a value set."""
    codes = [code for _, code in tables.codes[url]]
    listed = f"one of {', '.join(codes)}" if len(codes) <= MANY_CODES else f"a code of {url}"
    return {"title": "code", "description": listed, "enum": codes}


def document(name: str, description: str, body: Schema) -> Schema:
    """Return a schema document."""
    identity = {"$schema": DIALECT, "$id": URN + name, "title": name}
    return {**identity, "description": description, **body}


def resource(type_name: str, tables: Tables) -> Schema:
    """Return the document of one resource type, with what it needs that is not held."""
    found = objects(type_name, tables)
    for path, element in found.items():
        element["x-summary"] = tables.paths_marked(path, "summary")
    body = found.pop(type_name)
    body["x-mandatory"] = tables.paths_marked(type_name, "min")
    body["x-modifier"] = tables.paths_marked(type_name, "modifier")
    kind = {"title": "resourceType", "description": type_name, "const": type_name}
    body["properties"] = {"resourceType": kind, **body["properties"]}
    body["required"] = ["resourceType", *body.get("required", [])]
    found |= _not_held(type_name, tables)
    defs = {"$defs": found} if found else {}
    said = f"{type_name} of FHIR R4 (4.0.1)."
    return document(type_name, said, {**body, **defs})


def _not_held(type_name: str, tables: Tables) -> dict[str, Schema]:
    """Return the data types and code lists of a type that the document of data types lacks."""
    found: dict[str, Schema] = {}
    for element in tables.types[type_name]["elements"]:
        url = tables.required_set(element)
        if url and url not in tables.held_sets:
            found[short_name(url)] = codes_schema(url, tables)
        for name in element["types"]:
            if name not in PRIMITIVES and name not in tables.held and name not in found:
                found |= objects(name, tables) | _not_held(name, tables)
    return found
