"""The tables of R4, and plans of plugins from them: read once."""

from __future__ import annotations

from functools import cache

from fhirpub.cli.scaffold.plan import Blueprint, blueprint
from fhirpub.fhir.definitions.element_tables import Tables

tables = cache(Tables.read)


@cache
def planned(type_name: str) -> Blueprint:
    """Return the plan of a plugin for a type."""
    return blueprint(type_name, tables())
