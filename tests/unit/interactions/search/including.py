"""Pages of reports in a real store, and what they include."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fhirpub.interactions.search.includes import Include, Included
from fhirpub.interactions.search.inclusion import include
from fhirpub.storage.contract import Page, Version
from tests.panels import result, specimen
from tests.unit.interactions.patients.people import (
    NATIONAL,
    Ward,
    called,
    person,
)

REPORT, OBSERVATION, SPECIMEN = "DiagnosticReport", "Observation", "Specimen"
RESULTS = Include(source=REPORT, parameter="result")
PATIENTS = Include(source=REPORT, parameter="patient")
PERFORMERS = Include(source=REPORT, parameter="performer")
SPECIMENS = Include(source=OBSERVATION, parameter="specimen", iterate=True)
REPORTS_OF_RESULTS = Include(source=REPORT, parameter="result", reverse=True)
MISSING = (
    "some resources that were to be included are missing, since a page includes at most 1000, of "
    "16 MiB, 10 references from a match: ask for smaller pages, or search for the resources "
    "themselves"
)


def denying(*denied: tuple[str, str]) -> Any:
    """Return what allows all but some rights, each a letter and a type."""
    return lambda letter, types: not any((letter, one) in denied for one in types)


async def with_included(
    ward: Ward, matches: Collection[Version], *includes: Include, may: Any = None, **fields: Any
) -> tuple[Page, Included]:
    page = Page(tuple(matches), None, **{"more": False, **fields})
    return await include(page, includes, may=may or denying(), **ward.named)


def shown(found: Included) -> list[str]:
    """Return what is included: types and ids of resources, and the names of parts."""
    versions = [f"{one.type}/{one.id}" for one in found.versions]
    return sorted([*versions, *(name for _parts, names in found.parts for name in names)])


async def included(ward: Ward, match: Version, *includes: Include, may: Any = None) -> list[str]:
    _page, found = await with_included(ward, [match], *includes, may=may)
    return shown(found)


def remarks(found: Included) -> list[str]:
    return [issue.diagnostics for issue in found.issues]


def members(version: Version, type_name: str = OBSERVATION) -> list[str]:
    return sorted(f"{one.type}/{one.id}" for one in version.members if one.type == type_name)


async def a_panel(ward: Ward, value: str = "R-1", **changes: Any) -> Version:
    """Register a report with two results of one specimen."""
    of_blood: Any = {"specimen": {"reference": "Specimen/blood"}}
    return await ward.report(
        value,
        person((NATIONAL, "1"), name=called("Ash")),
        result("a", **of_blood),
        result("b", **of_blood),
        specimen(),
        **changes,
    )
