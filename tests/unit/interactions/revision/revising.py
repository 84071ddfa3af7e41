"""Revisions of reports in a real store, without HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from fhirpub.errors import BrokenRule
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.register import Candidate
from fhirpub.interactions.revision.comparison import (
    Revision,
    Stored,
    compare,
    prepare_revision,
)
from fhirpub.interactions.revision.revise import Revised, revise
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.contract import Version
from fhirpub.storage.sqlite.store import SqliteStore
from tests.panels import RESULTS, panel, result
from tests.unit.interactions.patients.people import NATIONAL, SYSTEMS, Ward, called, person

REPORT = "DiagnosticReport"
ASH = person((NATIONAL, "1"), name=called("Ash"))


def numbered(number: int, value: float = 13.2, **changes: Any) -> dict[str, Any]:
    """Return a result that has an identifier, so that it is the same in each revision."""
    identifier = [{"system": RESULTS, "value": str(number)}]
    return result(f"r{number}", value, identifier=identifier, **changes)


def body_of(*entries: dict[str, Any], one: dict[str, Any] = ASH, **changes: Any) -> dict[str, Any]:
    """Return the body of a revision of the report R-1; changes go to the report."""
    body = panel(changes.pop("value", "R-1"), *entries, **changes)
    body["parameter"][0]["resource"] = one
    return body


async def registered(ward: Ward, *entries: dict[str, Any], **changes: Any) -> Version:
    """Register a report that is preliminary."""
    return await ward.registered(body_of(*entries, **{"status": "preliminary", **changes}), REPORT)


def storeless() -> Ward:
    """Return a ward whose store nothing may use."""
    return Ward(cast("SqliteStore", None), *SYSTEMS)


def candidate_of(ward: Ward, body: dict[str, Any]) -> Candidate:
    prepared = run_to_completion(
        prepare_revision(
            ward.context,
            dumps(body),
            is_xml=False,
            type_name=REPORT,
            tenant=ward.tenant,
        )
    )
    assert isinstance(prepared, Candidate), prepared
    return prepared


def accept_any(_newest: Version) -> None:
    """Accept whichever version is the newest."""


async def revised(
    ward: Ward,
    first: Version,
    *entries: dict[str, Any],
    check: Callable[[Version], None] = accept_any,
    day: int | None = None,
    **changes: Any,
) -> Revised:
    """Revise a report on the next day."""
    ward.day = ward.day + 1 if day is None else day

    async def newest_of() -> Version:
        found = await ward.store.latest(ward.tenant.id, first.id)
        assert found is not None
        return found

    async def compared(candidate: Version, stored: Stored) -> Revision:
        return compare(ward.context, candidate, stored)

    return await revise(
        candidate_of(ward, body_of(*entries, **changes)),
        newest_of=newest_of,
        check=check,
        compare=compared,
        **ward.named,
    )


async def refused(
    ward: Ward, first: Version, *entries: dict[str, Any], **changes: Any
) -> list[tuple[str, str]]:
    """Return the places and the rules of what a revision is refused for."""
    try:
        await revised(ward, first, *entries, **changes)
    except BrokenRule as broken:
        return [(issue.expression, issue.diagnostics) for issue in broken.issues]
    raise AssertionError("accepted")


def answer(of: Revised) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(of.response)
    return found


def said(of: Revised) -> list[str]:
    """Return the words of the issues of a response."""
    parameters = answer(of)["parameter"]
    return [issue["diagnostics"] for issue in parameters[-1]["resource"]["issue"]]


def references(of: Revised) -> list[str]:
    """Return the addresses of the members that a response names."""
    return [
        one["valueReference"]["reference"]
        for one in answer(of)["parameter"]
        if "valueReference" in one
    ]


def addresses(version: Version) -> list[str]:
    return [f"{one.type}/{one.id}" for one in version.members]
