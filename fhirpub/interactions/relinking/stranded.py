"""What would be left at a Patient that nothing states anything about any more."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable

from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.statements import (
    Asked,
    Source,
    StatementWalk,
    sources_of,
    stating,
)
from fhirpub.interactions.relinking.relink import NotMovable, Relink
from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import Criterion, TokenMatch
from fhirpub.tenant import Tenant, is_member_id

_BATCH = 50
_MOST_NAMED = 5


async def refuse_stranded(planned: Iterable[Relink], *, tenant: Tenant, context: Context) -> None:
    """Raise NotMovable if a Patient loses its last statement, but not all that refers to it.

    Resources that were registered with a reference alone state nothing about their Patient.
    """
    async for patient_id, left in left_behind(planned, tenant=tenant, context=context):
        raise NotMovable(
            f"{', '.join(left)} would stay with {PATIENT}/{patient_id}, of which "
            "nothing would be known any more: move first what was registered with a reference "
            "alone"
        )


async def left_behind(
    planned: Iterable[Relink], *, tenant: Tenant, context: Context
) -> AsyncGenerator[tuple[str, list[str]], None]:
    """Yield each Patient of which nothing is known without these resources, and what it keeps.

    What it keeps are addresses of resources that refer to it, some of them. Before a relink they
    refuse it. Afterwards they are those that were registered at the same time.
    """
    needed = [one for one in planned if one.is_needed]
    moving = {one.id for one in needed}
    for patient_id in dict.fromkeys(one.before for one in needed if one.states):
        if await _is_stated(patient_id, moving, tenant, context):
            continue
        left = await _referring(patient_id, moving, tenant, context)
        if left:
            yield patient_id, left


async def _is_stated(
    patient_id: str, moving: Collection[str], tenant: Tenant, context: Context
) -> bool:
    """Return whether a resource that stays states something about a Patient."""
    if not is_member_id(patient_id):
        return False  # it belongs to the resource that moves
    asked = [Asked(source, (stating([patient_id], source),)) for source in sources_of(context)]
    walk = StatementWalk(asked, tenant=tenant, context=context)
    while batch := await walk.take(_BATCH):
        if any(one.owner.id not in moving for one in batch):
            return True
    return False


async def _referring(
    patient_id: str, moving: Collection[str], tenant: Tenant, context: Context
) -> list[str]:
    """Return the addresses of resources that stay and refer to a Patient, some of them."""
    found: list[str] = []
    for source in sources_of(context):
        found += await _referring_by(source, patient_id, moving, tenant, context)
    return found[:_MOST_NAMED]


async def _referring_by(
    source: Source, patient_id: str, moving: Collection[str], tenant: Tenant, context: Context
) -> list[str]:
    query = SearchQuery(
        type=source.type_name,
        criteria=(Criterion(source.element, (TokenMatch(PATIENT, patient_id),)),),
        limit=len(moving) + _MOST_NAMED,
        count_up_to=0,
    )
    page = await context.resources.search(tenant.id, query)
    return [f"{one.type}/{one.id}" for one in page.versions if one.id not in moving]
