"""Conflicts of a resource that comes with several patients: those of each are named."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.patients.conflicts import with_conflicts
from fhirpub.plugin_api import Part
from tests.indexers import indexer
from tests.unit.interactions.patients.people import (
    HOSPITAL,
    NATIONAL,
    Ward,
    id_of,
    issues_of,
    person,
)

REPORT = "DiagnosticReport"


def with_guardian(context: Context) -> Context:
    """Return a context in which a report comes with a second patient."""
    declared = context.types[REPORT]
    guardian = Part(name="guardian", type="Patient", referred_by="performer", required=False)
    several = replace(declared, parts=(*declared.parts, guardian))
    return replace(
        context,
        types={**context.types, REPORT: several},
        searched={**context.searched, REPORT: indexer(several)},
    )


async def test_conflicts_of_each_patient_are_named(ward: Ward) -> None:
    first = await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))
    second = await ward.report("R-2", person((NATIONAL, "2"), (HOSPITAL, "y")))
    version = await ward.report("R-3", person((NATIONAL, "3")))
    parts = loads_stored(version.parts)
    for name, number, of_hospital in (("patient", "3", "x"), ("guardian", "4", "y")):
        one = person((NATIONAL, number), (HOSPITAL, of_hospital))
        meta = {"versionId": f"{version.id}.1"}
        parts[name] = {**one, "id": ward.tenant.person_id(NATIONAL, number), "meta": meta}

    found = await with_conflicts(
        replace(version, parts=dumps(parts)),
        tenant=ward.tenant,
        context=with_guardian(ward.context),
    )

    said = [one["diagnostics"] for one in issues_of(found) if "also that of" in str(one)]
    assert len(said) == 2
    assert f"Patient/{id_of(first)}" in said[0]
    assert f"Patient/{id_of(second)}" in said[1]
