"""The element tables of R4, which are read once for all tests of a process."""

from __future__ import annotations

from functools import cache

from fhirpub.fhir.definitions.element_tables import Tables


@cache
def tables() -> Tables:
    return Tables.read()
