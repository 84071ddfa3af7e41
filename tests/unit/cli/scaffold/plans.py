"""Plans of plugins from the tables of R4, each made once."""

from __future__ import annotations

from functools import cache

from fhirpub.cli.scaffold.plan import Blueprint, blueprint
from tests.element_tables import tables


@cache
def planned(type_name: str) -> Blueprint:
    """Return the plan of a plugin for a type."""
    return blueprint(type_name, tables())
