"""Which resources an order means: those with an id, of a patient, or beyond their retention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fhirpub.administration.erasure.work import Work
from fhirpub.administration.naming import id_of, identifier_in
from fhirpub.config.retention import policies_of
from fhirpub.errors import ConfigurationError, InvalidContent, Issue
from fhirpub.interactions.erasure.patients import patients_by_identifier, resources_of
from fhirpub.interactions.erasure.retention import check_policies, expired
from fhirpub.interactions.identity.identification import identification_of
from fhirpub.problems import OperationProblem

WAYS = ("reports", "report_identifier", "patients", "patient_identifier", "expired")


@dataclass(frozen=True, slots=True)
class Meant:
    """The ids of what is to be erased, and what is named but not erased, with types by id."""

    ids: Sequence[str]
    moved: Mapping[str, str] = field(default_factory=dict)
    leaves_out_holds: bool = False


async def find_meant(work: Work, given: Mapping[str, Any]) -> Meant:
    """Return what is meant by one of `WAYS`. Raises InvalidContent, ConfigurationError."""
    ways = [name for name in WAYS if given.get(name)]
    if len(ways) != 1:
        rule = f"name resources by exactly one of {', '.join(WAYS)}"
        raise InvalidContent([Issue.error(OperationProblem.FIELD_REQUIRED, rule)])
    if ways == ["reports"]:
        return Meant([*dict.fromkeys(map(id_of, given["reports"]))])
    if ways == ["report_identifier"]:
        system, value = identifier_in(given["report_identifier"])
        if "type" not in given:
            rule = "is required with report_identifier"
            raise InvalidContent([Issue.error(OperationProblem.FIELD_REQUIRED, rule, "type")])
        declared = work.context.types.get(given["type"])
        if declared is not None:
            value = identification_of(declared).normal(system, value)
        return Meant([work.tenant.resource_id(given["type"], system, value)])
    if ways == ["expired"]:
        return await _expired(work)
    return await _of_patients(work, given)


async def _of_patients(work: Work, given: Mapping[str, Any]) -> Meant:
    tenant, context = work.tenant, work.context
    ids: Iterable[str] = map(id_of, given.get("patients", ()))
    if "patient_identifier" in given:
        identifier = identifier_in(given["patient_identifier"])
        ids = await patients_by_identifier(identifier, tenant=tenant, context=context)
    found = await resources_of(ids, tenant=tenant, context=context)
    return Meant([*found.resources], found.moved)


async def _expired(work: Work) -> Meant:
    policies = policies_of(work.administration.config.retention)
    if not policies:
        raise ConfigurationError("[retention] policies has none")
    check_policies(policies, work.context)
    ids: dict[str, None] = {}
    for policy in policies:
        async for one in expired(policy, tenant=work.tenant, context=work.context):
            ids[one] = None
    return Meant([*ids], leaves_out_holds=True)
