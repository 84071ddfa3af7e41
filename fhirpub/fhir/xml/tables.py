"""What every object of R4 is made of, in the order that its XML has (R4, 2.6.1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

BOOLEAN = "boolean"
DECIMAL = "decimal"
INTEGERS = frozenset({"integer", "positiveInt", "unsignedInt"})
RESOURCE = "Resource"
XHTML = "xhtml"
OF_PRIMITIVE = "Element"
"""What a primitive may carry beside its value: the object of the sibling in JSON."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an object, or one form of an ``x[x]``."""

    name: str
    """As in JSON and in XML: ``effectiveDateTime``."""
    place: str
    """As in FHIRPath: ``effective``."""
    type: str
    """A primitive, or the path of an object: ``HumanName``, ``Patient.contact``."""
    many: bool
    required: bool
    order: int


@dataclass(frozen=True, slots=True)
class Tables:
    """All types of R4, those without a schema here among them."""

    resources: frozenset[str]
    objects: Mapping[str, Mapping[str, Element]]
    """By path. Not in it is what XML has as an attribute: ``Extension.url``, a data type's id."""


@lru_cache(maxsize=1)
def tables() -> Tables:
    """Return the tables, read once."""
    file = resources.files("fhirpub.schemas") / "xml" / "elements.json"
    read = json.loads(file.read_bytes())
    types = frozenset(read["resources"])
    objects = {
        path: {
            form.name: form
            for order, (name, kind) in enumerate(rows.items())
            for form in _forms(name, kind, order)
            if not _is_attribute(path, form.name, types)
        }
        for path, rows in read["elements"].items()
    }
    return Tables(types, objects)


def _forms(name: str, kind: str, order: int) -> Iterator[Element]:
    required, kind = kind.endswith("!"), kind.removesuffix("!")
    many, types = kind.endswith("*"), kind.removesuffix("*").split("|")
    stem, choice, _ = name.partition("[x]")
    for type_name in types:
        form = stem + type_name[0].upper() + type_name[1:] if choice else name
        yield Element(form, stem, type_name, many, required, order)


def _is_attribute(path: str, name: str, types: frozenset[str]) -> bool:
    return (name == "id" and path not in types) or (path, name) == ("Extension", "url")
