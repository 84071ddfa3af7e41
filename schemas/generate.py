"""Writes the JSON Schemas and terminology files of FHIR R4 from the tables in ``source/``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from fhirpub.fhir.definitions.element_tables import ABSTRACT, RESOURCE_TYPES, Tables
from fhirpub.fhir.definitions.schema_documents import URN
from fhirpub.fhir.definitions.schema_generator import (
    PRIMITIVES,
    array_of,
    codes_schema,
    document,
    objects,
    reference,
    resource,
    short_name,
)
from fhirpub.fhir.definitions.value_schemas import CONTROL, LARGEST_STRING, STRING_SAID, Schema

HERE = Path(__file__).parent

FIRST_ASKED = ("Parameters", "Patient", "Organization", "DiagnosticReport")


def datatypes(tables: Tables) -> Schema:
    """Return the document of all primitives, code lists and data types."""
    defs: Schema = {
        name: {"title": name, "description": said, **schema}
        for name, (said, schema) in PRIMITIVES.items()
    }
    for url in tables.held_sets:
        defs[short_name(url)] = codes_schema(url, tables)
    for type_name in tables.names("complex-type"):
        defs |= objects(type_name, tables)
    return document("datatypes", "The data types of FHIR R4 (4.0.1).", {"$defs": defs})


def any_resource(tables: Tables) -> Schema:
    """Return the document of a resource of any type: exact where we have its table."""
    resources = tables.names("resource")
    known = [*FIRST_ASKED, *(name for name in resources if name not in FIRST_ASKED)]
    every = [code for _, code in tables.codes[RESOURCE_TYPES]]
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

    By the path of the object: the names of its elements, each with its types, an asterisk if it
    may repeat, and an exclamation mark if it must be there. The type of a nested object is its
    path.
    """
    found: dict[str, dict[str, str]] = {}
    for type_name in tables.types.keys() - set(ABSTRACT):
        rows = tables.types[type_name]["elements"]
        parents = {row["path"].rpartition(".")[0] for row in rows}
        for row in rows:
            path, kind = row["path"], "|".join(row["types"])
            parent, _, name = path.rpartition(".")
            kind = row.get("same_as", path if path in parents else kind)
            marks = "*" * (row["max"] == "*") + "!" * (row["min"] > 0)
            found.setdefault(parent, {})[name] = kind + marks
    return {"resources": tables.resource_types(), "elements": dict(sorted(found.items()))}


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
    for url in tables.held_sets:
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
    for url in sorted({*tables.held_sets, *ours}):
        yield value_set(url, tables)
    for system, codes in whole_systems(tables).items():
        yield code_system(system, codes, tables)


def files() -> dict[Path, str]:
    """Return the text of every generated file, by path."""
    tables = Tables.read(HERE / "source")
    schemas = [resource(name, tables) for name in tables.names("resource")]
    found: dict[Path, Schema] = {
        HERE / "r4" / f"{record['title']}.schema.json": record
        for record in (datatypes(tables), any_resource(tables), *schemas)
    }
    found[HERE / "xml" / "elements.json"] = elements(tables)
    for record in terminology(tables):
        found[HERE / "valuesets" / f"{record['resourceType']}-{record['id']}.json"] = record
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
    """Write the files, or list those that are out of date."""
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
