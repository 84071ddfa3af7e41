"""The element tables and code lists of FHIR R4, from which schemas and plugins are made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

HELD = "fhir_r4_elements"
"""The file with the types that the service has schemas of; the rest is for plugins."""
MORE = "fhir_r4_more_elements"
RESOURCE_TYPES = "http://hl7.org/fhir/ValueSet/resource-types"
ABSTRACT = ("Resource", "DomainResource")

Element = Mapping[str, Any]


@dataclass(frozen=True)
class Tables:
    """The element tables and code lists of R4, as published by HL7.

    ``types`` has them all; ``held`` names the types that the service has schemas of. The others
    are FHIR's rules between elements, by the path of the object: ``needed``, which element needs
    which beside it (qty-3, age-1, rat-1, cpt-2, tim-1 to tim-9, prr-1), and by their keys
    ``any_of``, of which one must be there, ``excluded``, the first of which must not stand beside
    the second, ``distinct``, the first of which not even if one of the second has the code of the
    object, ``barred``, a value that an element of an element must not have, and ``limited``, a
    value that must keep within a limit; by path alone ``simple``, quantities without a comparator.
    """

    types: Mapping[str, Any]
    codes: Mapping[str, list[list[str]]]
    displays: Mapping[str, Mapping[str, str]]
    held: frozenset[str]
    needed: Mapping[str, Mapping[str, str]]
    any_of: Mapping[str, Mapping[str, list[str]]]
    excluded: Mapping[str, Mapping[str, list[str]]]
    distinct: Mapping[str, Mapping[str, list[str]]]
    barred: Mapping[str, Mapping[str, list[str]]]
    limited: Mapping[str, Mapping[str, Mapping[str, str]]]
    simple: Mapping[str, list[str]]

    @classmethod
    def read(cls, folder: Traversable | None = None) -> Tables:
        """Read them from a folder, by default that of the installed schemas."""
        source = folder or resources.files("fhirpub.schemas") / "source"
        held, more, displays, beside = (
            json.loads((source / f"{name}.json").read_bytes())
            for name in (HELD, MORE, "displays", "beside")
        )
        return cls(
            types={**more["types"], **held["types"]},
            codes={**more["codes"], **held["codes"]},
            displays=displays,
            held=frozenset(held["types"]),
            **beside,
        )

    def names(self, kind: str) -> list[str]:
        """Return the held types of a kind, ``resource`` or ``complex-type``, by name."""
        found = (name for name in self.held if self.types[name]["kind"] == kind)
        return sorted(name for name in found if name not in ABSTRACT)

    def resource_types(self) -> list[str]:
        """Return every resource type of R4, by name, whether it is held or not."""
        found = (name for name, table in self.types.items() if table["kind"] == "resource")
        return sorted(name for name in found if name not in ABSTRACT)

    @cached_property
    def held_sets(self) -> list[str]:
        """Return the value sets of the held types' required bindings that we have the codes of."""
        elements = [element for name in self.held for element in self.types[name]["elements"]]
        return sorted({url for element in elements if (url := self.required_set(element))})

    def required_set(self, element: Element) -> str:
        """Return the value set that a code must be of, if we have the codes of that set.

        A concept that is bound so may still have other codings: no schema can express it.
        """
        strength, url = element.get("binding", ("", ""))
        known = strength == "required" and url in self.codes
        return url if known and element["types"][:1] == ["code"] else ""

    def children(self, path: str) -> Iterator[tuple[str, Element]]:
        """Yield the elements right below a path, each with its name, such as ``value[x]``."""
        for element in self.types[path.partition(".")[0]]["elements"]:
            parent, _, name = element["path"].rpartition(".")
            if parent == path:
                yield name, element

    def paths_marked(self, path: str, mark: str) -> list[str]:
        """Return the JSON names of the elements below a path that have a mark in the tables."""
        found: list[str] = []
        for name, element in self.children(path):
            if element.get(mark):
                found += json_names(name, element)
        return found


def json_names(name: str, element: Element) -> list[str]:
    """Return the names of an element in JSON: those of each form if it is a choice."""
    stem = name.removesuffix("[x]")
    forms = [stem + type_name[0].upper() + type_name[1:] for type_name in element["types"]]
    return forms if name.endswith("[x]") else [name]
