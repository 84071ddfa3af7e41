"""Abuses by reports with as many results as one may have: registrations, revisions, searches."""

from __future__ import annotations

import itertools
from typing import Any

from bench.abuses.attack import REGISTER, Attack, Phases, Requests, abuse
from bench.abuses.bodies import NUMBERED, Body, body_of
from bench.payloads import REPORTS
from fhirpub.fhir.strict_json import dumps
from tests.panels import RESULTS, panel, result, specimen

_ENTRIES = 1_000
_FHIR = REPORTS.rpartition("/")[0]
_BLOOD = {"reference": "Specimen/blood"}


def _results(value: float, **changes: Any) -> list[dict[str, Any]]:
    """Return all results of a panel but for the specimen, in a row by their members."""
    return [
        result(
            f"r{number}",
            value,
            identifier=[{"system": RESULTS, "value": str(number)}],
            specimen=_BLOOD,
            **changes,
        )
        for number in range(_ENTRIES - 1)
    ]


def _panel(value: float, entries: list[dict[str, Any]] | None = None) -> Body:
    return body_of(dumps(panel(NUMBERED, *(entries or _results(value)), specimen())))


def _in_a_chain() -> list[dict[str, Any]]:
    """Return results of which each has the next one as its member."""
    results = _results(13.2)
    for one, following in itertools.pairwise(results):
        one["hasMember"] = [{"reference": f"Observation/{following['id']}"}]
    return results


async def _registered(attack: Attack, body: Body) -> str:
    (path,) = await attack.register(body)
    return path


def _revisions(attack: Attack, path: str, values: tuple[float, ...]) -> Requests:
    """Yield revisions of the panel that was registered first, with these values in turn."""
    bodies = [_panel(value).whole for value in values]
    every = [next(attack.post(f"{path}/$revise", body, "If-Match: *")) for body in bodies]
    return itertools.cycle(every)


@abuse(201, 503)
async def panels_of_1000(attack: Attack) -> Phases:
    """Registers reports with 999 results and a specimen."""
    yield
    await attack.flood(attack.post_new(REGISTER, _panel(13.2)))


@abuse(201, 503)
async def panels_in_chains(attack: Attack) -> Phases:
    """Registers reports with 999 results, each the member of the one before."""
    yield
    await attack.flood(attack.post_new(REGISTER, _panel(13.2, _in_a_chain())))


@abuse(200, 503)
async def revisions_of_1000(attack: Attack) -> Phases:
    """Revises a report with 999 results, of which each differs each time."""
    path = await _registered(attack, _panel(13.2))
    yield
    await attack.flood(_revisions(attack, path, (12.3, 13.2)))


@abuse(200, 503)
async def revisions_of_nothing(attack: Attack) -> Phases:
    """Revises a report with 999 results by what it is already."""
    path = await _registered(attack, _panel(13.2))
    yield
    await attack.flood(_revisions(attack, path, (13.2,)))


@abuse(200, 422)
async def includes_along_a_chain(attack: Attack) -> Phases:
    """Searches with all results of five reports, and along chains of 999 members."""
    await attack.register(_panel(13.2, _in_a_chain()), 5)
    wanted = "_include=DiagnosticReport:result&_include:iterate=Observation:has-member"
    yield
    await attack.flood(attack.get(f"{REPORTS}?{wanted}&_include:iterate=*&_count=100"))


@abuse(200, 422)
async def includes_of_a_popular_specimen(attack: Attack) -> Phases:
    """Searches five specimens with all that refers to them, 999 results each."""
    await attack.register(_panel(13.2), 5)
    wanted = "_revinclude=Observation:specimen&_revinclude:iterate=DiagnosticReport:result"
    yield
    await attack.flood(attack.get(f"{_FHIR}/Specimen?{wanted}&_count=100"))


@abuse(200, 422)
async def searches_by_numbers_of_results(attack: Attack) -> Phases:
    """Searches 5,000 results by 50 conditions on their number, sorted by it."""
    await attack.register(_panel(13.2), 5)
    conditions = "&".join(f"value-quantity=ne{number}.5" for number in range(50))
    yield
    await attack.flood(
        attack.get(f"{_FHIR}/Observation?{conditions}&_sort=-value-quantity&_total=accurate")
    )
