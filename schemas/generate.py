"""Writes the JSON Schemas and terminology files of FHIR R4 from the tables in ``source/``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DIALECT = "https://json-schema.org/draft/2020-12/schema"
URN = "urn:fhirpub:schemas:r4:"
DATATYPES = f"{URN}datatypes#/$defs/"
LARGEST_STRING = 1_048_576
LARGEST_INTEGER = 2**31 - 1
FIRST_ASKED = ("Parameters", "Patient", "Organization", "DiagnosticReport")
ABSTRACT = ("Resource", "DomainResource")
NESTED = ("BackboneElement", "Element")
BARE = ("Extension.url", "Narrative.div")  # like every id: no ``_url`` or ``_div`` beside them
MANY_CODES = 40
MANY_TYPES = 8  # of a choice: asking for them one by one costs microseconds, so ask first for any

# What may be in a string is said by what may not: a search for one forbidden character reads
# alike in every engine. Only dates need an end anchor, and there the same keyword shuts out the
# line feed that Python's ``$`` would overlook.
CONTROL = r"[\u0000-\u0008\u000b\u000c\u000e-\u001f]"
BLANK = r"[\u0000-\u0020]"
YEAR = "([0-9]([0-9]([0-9][1-9]|[1-9]0)|[1-9]00)|[1-9]000)"
MONTH = "(0[1-9]|1[0-2])"
DATE = (  # a day of the calendar: months of 28, 30 and 31 days, and 29 February of leap years
    f"{YEAR}-(02-(0[1-9]|1[0-9]|2[0-8])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    "|(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01]))"
    "|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29"
)
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?"
OFFSET = r"(Z|[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00))"

Schema = dict[str, Any]


def text(forbidden: str, **more: Any) -> Schema:
    """Return the schema of a string that holds none of the forbidden characters."""
    sizes = {"minLength": 1, "maxLength": LARGEST_STRING}
    return {"type": "string", **sizes, "not": {"pattern": forbidden}, **more}


def shape(pattern: str, alphabet: str) -> Schema:
    """Return the schema of a string with a fixed shape, made of ``alphabet`` only."""
    return text(f"[^{alphabet}]", pattern=f"^{pattern}$")


def whole(minimum: int) -> Schema:
    """Return the schema of an integer; ``fhirInteger`` refuses 2.0, which drafts let pass."""
    limits = {"minimum": minimum, "maximum": LARGEST_INTEGER}
    return {"type": "integer", "fhirInteger": True, **limits}


STRING = text(CONTROL)
URI = text(BLANK)
STRING_SAID = "1 to 1,048,576 characters, no control characters but tab, CR and LF"
URI_SAID = "a string without white space or control characters"
PRIMITIVES: dict[str, tuple[str, Schema]] = {
    "base64Binary": (
        "a string of base64, judged when decoded",
        {"type": "string", "minLength": 1},
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


# FHIR's own rules of the form "this needs that beside it" (qty-3, rat-1, tim-1 to tim-9, prr-1).
QUANTITIES = ("Age", "Count", "Distance", "Duration", "Quantity")
NEEDED: Mapping[str, Mapping[str, str]] = {
    **{name: {"code": "system"} for name in QUANTITIES},
    "Ratio": {"numerator": "denominator", "denominator": "numerator"},
    "Timing.repeat": {
        "duration": "durationUnit",
        "period": "periodUnit",
        "periodMax": "period",
        "durationMax": "duration",
        "countMax": "count",
        "offset": "when",
    },
    "ServiceRequest": {"orderDetail": "code"},
}
# And one of the form "not this beside that" (tim-10).
EXCLUDED: Mapping[str, tuple[str, str]] = {"Timing.repeat": ("timeOfDay", "when")}


def reference(name: str) -> Schema:
    """Return a reference to a data type, a primitive or a list of codes."""
    return {"$ref": URN + name} if name == "Resource" else {"$ref": DATATYPES + name}


def array_of(items: Schema) -> Schema:
    """Return the schema of an element that repeats: an array and never an empty one."""
    return {"type": "array", "minItems": 1, "items": items}


def array_with_gaps(items: Schema) -> Schema:
    """Return the schema of one of two parallel arrays: null may fill its gaps."""
    gaps = array_of({"if": {"type": "null"}, "else": items})
    return {**gaps, "contains": {"not": {"type": "null"}}}


def given(name: str, *, primitive: bool) -> Schema:
    """Return the schema of an object that has the property, or its sibling with an underscore."""
    alone: Schema = {"required": [name]}
    return {"anyOf": [alone, {"required": [f"_{name}"]}]} if primitive else alone


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

    def add_choice(self, stem: str, types: list[str], *, required: bool) -> None:
        """Add an ``x[x]`` element: at most one of its forms, exactly one where required."""
        forms: list[Schema] = []
        for type_name in types:
            name, primitive = stem + type_name[0].upper() + type_name[1:], type_name in PRIMITIVES
            (self.add_primitive if primitive else self.add)(name, reference(type_name))
            forms.append(given(name, primitive=primitive))
        none = [] if required else [{"not": {"anyOf": forms}}]
        rule: Schema = {"title": f"{stem}[x]", "oneOf": [*forms, *none]}
        absent = {"propertyNames": {"not": {"pattern": f"^_?{stem}[A-Z]"}}}
        gated = not required and len(types) > MANY_TYPES
        self.rules.append({"if": absent, "else": rule} if gated else rule)

    def add_rules_of(self, path: str) -> None:
        """Add the rules between its elements that FHIR has beside their cardinalities."""
        for name, needed in NEEDED.get(path, {}).items():
            primitive = f"_{needed}" in self.properties
            beside = {"title": needed, **given(needed, primitive=primitive)}
            self.rules.append({"dependentSchemas": {name: beside}})
        if path in EXCLUDED:
            one, other = EXCLUDED[path]
            said = {"title": "element", "description": f"{one} and {other} exclude each other"}
            self.rules.append({**said, "not": {"required": [one, other]}})

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


@dataclass(frozen=True)
class Tables:
    """The element tables and code lists of R4, as published by HL7."""

    types: Mapping[str, Any]
    codes: Mapping[str, list[list[str]]]
    displays: Mapping[str, Mapping[str, str]]
    others: Mapping[str, Mapping[str, Any]]
    """Of the types that get no schema: in the form of :func:`elements`."""

    @classmethod
    def read(cls) -> Tables:
        """Read them from ``source/``."""
        read = {path.stem: json.loads(path.read_bytes()) for path in (HERE / "source").iterdir()}
        elements = read["fhir_r4_elements"]
        others = read["fhir_r4_other_types"]
        return cls(elements["types"], elements["codes"], read["displays"], others)

    def names(self, kind: str) -> list[str]:
        """Return the types of a kind, ``resource`` or ``complex-type``, by name."""
        found = (name for name, table in self.types.items() if table["kind"] == kind)
        return sorted(name for name in found if name not in ABSTRACT)

    def required_sets(self) -> list[str]:
        """Return the value sets of required bindings that we have the codes of."""
        elements = [each for table in self.types.values() for each in table["elements"]]
        bound = {tuple(each["binding"]) for each in elements if "binding" in each}
        return sorted(
            url for strength, url in bound if strength == "required" and url in self.codes
        )

    def objects(self, type_name: str) -> dict[str, Schema]:
        """Return the schema of a type and of every nested element in it, by path."""
        elements = self.types[type_name]["elements"]
        shapes: dict[str, Shape] = {type_name: Shape()}
        for element in elements:
            parent, _, name = element["path"].rpartition(".")
            self._add(shapes.setdefault(parent, Shape()), name, element)
        for path, each in shapes.items():
            each.add_rules_of(path)
        resource = self.types[type_name]["kind"] == "resource"
        return {
            path: each.schema(root=resource and path == type_name, sibling=path == "Element")
            for path, each in shapes.items()
        }

    def marked(self, path: str, mark: str) -> list[str]:
        """Return the JSON names of the elements below a path that have a mark in the tables."""
        found: list[str] = []
        for element in self.types[path.partition(".")[0]]["elements"]:
            parent, _, name = element["path"].rpartition(".")
            if parent == path and element.get(mark):
                stem = name.removesuffix("[x]")
                forms = [stem + each[0].upper() + each[1:] for each in element["types"]]
                found += forms if name.endswith("[x]") else [name]
        return found

    def _add(self, parent: Shape, name: str, element: Mapping[str, Any]) -> None:
        types, required, many = element["types"], element["min"] > 0, element["max"] == "*"
        if name.endswith("[x]"):
            parent.add_choice(name.removesuffix("[x]"), types, required=required)
            return
        bare = name == "id" or element["path"] in BARE
        primitive = not bare and types[:1] != [] and types[0] in PRIMITIVES
        (parent.add_primitive if primitive else parent.add)(name, self._items(element), many=many)
        if required and primitive:
            parent.rules.append({"title": name, **given(name, primitive=True)})
        elif required:
            parent.required.append(name)

    def _items(self, element: Mapping[str, Any]) -> Schema:
        path, owner = element["path"], element["path"].partition(".")[0]
        if "same_as" in element or element["types"][0] in NESTED:
            return {"$ref": f"#/$defs/{element.get('same_as', path)}"}
        if path == "Extension.url":
            return reference("uri")
        if path.endswith(".id") and path.count(".") == 1 and owner in self.names("resource"):
            return reference("id")
        strength, url = element.get("binding", ("", ""))
        bound = strength == "required" and url in self.codes
        return reference(url.rpartition("/")[2] if bound else element["types"][0])


def codes_schema(url: str, codes: list[str]) -> Schema:
    """Return the schema of a code that must come from a value set."""
    listed = f"one of {', '.join(codes)}" if len(codes) <= MANY_CODES else f"a code of {url}"
    return {"title": "code", "description": listed, "enum": codes}


def document(name: str, description: str, body: Schema) -> Schema:
    """Return a schema document."""
    identity = {"$schema": DIALECT, "$id": URN + name, "title": name}
    return {**identity, "description": description, **body}


def datatypes(tables: Tables) -> Schema:
    """Return the document of all primitives, code lists and data types."""
    defs: Schema = {
        name: {"title": name, "description": said, **schema}
        for name, (said, schema) in PRIMITIVES.items()
    }
    for url in tables.required_sets():
        codes = [code for _, code in tables.codes[url]]
        defs[url.rpartition("/")[2]] = codes_schema(url, codes)
    for type_name in tables.names("complex-type"):
        defs |= tables.objects(type_name)
    return document("datatypes", "The data types of FHIR R4 (4.0.1).", {"$defs": defs})


def resource(type_name: str, tables: Tables) -> Schema:
    """Return the document of one resource type."""
    objects = tables.objects(type_name)
    for path, each in objects.items():
        each["x-summary"] = tables.marked(path, "summary")
    body = objects.pop(type_name)
    body["x-mandatory"] = tables.marked(type_name, "min")
    kind = {"title": "resourceType", "description": type_name, "const": type_name}
    body["properties"] = {"resourceType": kind, **body["properties"]}
    body["required"] = ["resourceType", *body.get("required", [])]
    defs = {"$defs": objects} if objects else {}
    said = f"{type_name} of FHIR R4 (4.0.1)."
    return document(type_name, said, {**body, **defs})


def any_resource(tables: Tables) -> Schema:
    """Return the document of a resource of any type: exact where we have its table."""
    resources = tables.names("resource")
    known = [*FIRST_ASKED, *(name for name in resources if name not in FIRST_ASKED)]
    every = [code for _, code in tables.codes["http://hl7.org/fhir/ValueSet/resource-types"]]
    others = [name for name in every if name not in (*known, *ABSTRACT)]
    kind = {"title": "resourceType", "description": "a resource type of FHIR R4", "enum": others}
    common = {
        "resourceType": kind,
        "id": reference("id"),
        "meta": reference("Meta"),
        "text": reference("Narrative"),
        "contained": array_of(reference("Resource")),
        "extension": array_of(reference("Extension")),
        "modifierExtension": array_of(reference("Extension")),
    }
    value: Schema = {"$ref": "#/$defs/value"}
    defs: Schema = {
        "other": {
            "type": "object",
            "required": ["resourceType"],
            "properties": common,
            "additionalProperties": value,
        },
        "value": {
            "type": ["object", "array", "string", "number", "boolean"],
            "minProperties": 1,
            "additionalProperties": value,
            "contains": {"not": {"type": "null"}},
            "items": {"if": {"type": "null"}, "else": value},
            "minLength": 1,
            "if": {"type": "string", "maxLength": LARGEST_STRING},  # longer: only base64 is
            "then": {"title": "string", "description": STRING_SAID, "not": {"pattern": CONTROL}},
        },
    }
    said = "A resource of any type; of a type without a table here, only what JSON itself asks."
    return document("Resource", said, {**choice_by_type(known), "$defs": defs})


def choice_by_type(known: list[str]) -> Schema:
    """Return the keywords that send a resource to the schema of its own type.

    A chain, not a list: the types that a submission is made of are found after a step or two.
    """
    chain: Schema = {"$ref": "#/$defs/other"}
    for name in reversed(known):
        own = {"required": ["resourceType"], "properties": {"resourceType": {"const": name}}}
        chain = {"if": own, "then": {"$ref": URN + name}, "else": chain}
    return chain


def elements(tables: Tables) -> Schema:
    """Return what every object of R4 is made of, in the order that XML wants.

    By the path of the object: the names of its elements, each with its types and, if it may
    repeat, an asterisk. The type of a nested object is its path.
    """
    found: dict[str, dict[str, str]] = {
        path: dict(each)
        for path, each in {**tables.others["resources"], **tables.others["datatypes"]}.items()
    }
    for type_name in (*tables.names("resource"), *tables.names("complex-type")):
        rows = tables.types[type_name]["elements"]
        parents = {each["path"].rpartition(".")[0] for each in rows}
        for each in rows:
            path, kind = each["path"], "|".join(each["types"])
            parent, _, name = path.rpartition(".")
            kind = each.get("same_as", path if path in parents else kind)
            found.setdefault(parent, {})[name] = kind + "*" * (each["max"] == "*")
    resources = {*tables.names("resource"), *tables.others["resources"]}
    return {
        "resources": sorted(name for name in resources if "." not in name),
        "elements": dict(sorted(found.items())),
    }


# Terminology: FHIR's own ValueSet and CodeSystem, the form in which operators have theirs.
V2 = "http://terminology.hl7.org/CodeSystem/v2-"
OUR_SETS = ("diagnostic-service-sections", "identifier-type")
# Of these systems the value sets of R4 show us only a part.
PARTS_ONLY = ("http://hl7.org/fhir/data-types", "http://hl7.org/fhir/restful-interaction")


def value_set(url: str, tables: Tables) -> Schema:
    """Return a ValueSet that lists its codes."""
    by_system: dict[str, list[str]] = {}
    for system, code in tables.codes[url]:
        by_system.setdefault(system, []).append(code)
    include = [
        {"system": system, "concept": concepts(system, codes, tables)}
        for system, codes in by_system.items()
    ]
    return {**head("ValueSet", url, "4.0.1"), "compose": {"include": include}}


def code_system(url: str, codes: list[str], tables: Tables) -> Schema:
    """Return a CodeSystem with all its codes."""
    version = "2.9" if url.startswith(V2) else "4.0.1"
    told = {"caseSensitive": True, "content": "complete", "count": len(codes)}
    return {**head("CodeSystem", url, version), **told, "concept": concepts(url, codes, tables)}


def head(type_name: str, url: str, version: str) -> Schema:
    """Return what a ValueSet and a CodeSystem begin with."""
    identity = {"resourceType": type_name, "id": url.rpartition("/")[2], "url": url}
    return {**identity, "version": version, "status": "active"}


def concepts(system: str, codes: list[str], tables: Tables) -> list[dict[str, str]]:
    """Return the concepts of codes, with the displays that we have."""
    displays = tables.displays.get(system, {})
    return [
        {"code": code, **({"display": displays[code]} if code in displays else {})}
        for code in codes
    ]


def whole_systems(tables: Tables) -> dict[str, list[str]]:
    """Return the code systems of which we have every code."""
    systems = {system: list(displays) for system, displays in tables.displays.items()}
    for url in tables.required_sets():
        for system, code in tables.codes[url]:
            codes = systems.setdefault(system, [])
            if code not in codes:
                codes.append(code)
    return {
        system: codes
        for system, codes in sorted(systems.items())
        if system in tables.displays
        or (system.startswith("http://hl7.org/fhir/") and system not in PARTS_ONLY)
    }


def terminology(tables: Tables) -> Iterator[Schema]:
    """Yield every ValueSet and CodeSystem."""
    ours = (f"http://hl7.org/fhir/ValueSet/{name}" for name in OUR_SETS)
    for url in sorted({*tables.required_sets(), *ours}):
        yield value_set(url, tables)
    for system, codes in whole_systems(tables).items():
        yield code_system(system, codes, tables)


def files() -> dict[Path, str]:
    """Return the text of every generated file, by path."""
    tables = Tables.read()
    schemas = [resource(name, tables) for name in tables.names("resource")]
    found: dict[Path, Schema] = {
        HERE / "r4" / f"{each['title']}.schema.json": each
        for each in (datatypes(tables), any_resource(tables), *schemas)
    }
    found[HERE / "xml" / "elements.json"] = elements(tables)
    for each in terminology(tables):
        found[HERE / "valuesets" / f"{each['resourceType']}-{each['id']}.json"] = each
    return {
        path: json.dumps(body, indent=1, ensure_ascii=False) + "\n" for path, body in found.items()
    }


def stale(wanted: Mapping[Path, str]) -> list[Path]:
    """Return the files on disk that are missing, differ, or should not be there."""
    folders = (HERE / "r4", HERE / "valuesets", HERE / "xml")
    there = {path for folder in folders for path in folder.glob("*.json")}
    wrong = {
        path
        for path, body in wanted.items()
        if path not in there or path.read_text(encoding="utf-8") != body
    }
    return sorted(wrong | (there - wanted.keys()))


def write(wanted: Mapping[Path, str]) -> None:
    """Make the files on disk equal to ``wanted``."""
    for path in stale(wanted):
        path.parent.mkdir(exist_ok=True)
        if path in wanted:
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
        print(path.relative_to(HERE.parent))


def main() -> int:
    """Write the files, or say which are out of date."""
    parser = argparse.ArgumentParser(
        prog="python schemas/generate.py",
        description=__doc__,
        epilog="Prints every file that was written (or, with --check, would be).",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; end with exit status 1 when a file differs",
    )
    wanted = files()
    if not parser.parse_args().check:
        write(wanted)
        return 0
    wrong = stale(wanted)
    for path in wrong:
        print(f"out of date: {path.relative_to(HERE.parent)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
