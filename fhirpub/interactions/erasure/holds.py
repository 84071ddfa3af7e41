"""Legal holds: what is on hold, or belongs to a Patient on hold, is not erased."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.interactions.context import Context
from fhirpub.interactions.erasure.extent import Extent, NotErasable
from fhirpub.interactions.erasure.patients import referring_to
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.parts import sources_of_type
from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import Criterion
from fhirpub.storage.erasure.contract import Hold
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant

_AT_ONCE = 50


async def check_holds(extent: Extent, *, tenant: Tenant, store: Store, context: Context) -> None:
    """Raise NotErasable if a resource, a member of it or one of its Patients is on hold."""
    holds = await store.holds(tenant.id)
    if not holds:
        return
    names = {*extent.names}
    patients = [hold for hold in holds if hold.type == PATIENT]
    for hold in holds:
        if (hold.type, hold.id) in names:
            raise _on_hold(extent, hold)
    for start in range(0, len(patients), _AT_ONCE):
        some = patients[start : start + _AT_ONCE]
        if await _refers_to(extent, some, tenant, context):
            for hold in some:  # which of them it is
                if await _refers_to(extent, [hold], tenant, context):
                    raise _on_hold(extent, hold)


def _on_hold(extent: Extent, hold: Hold) -> NotErasable:
    return NotErasable(
        f"{extent.type}/{extent.id} is on hold, by {hold.type}/{hold.id} ({hold.reason}): "
        "`fhirpub hold release` ends that"
    )


async def _refers_to(
    extent: Extent, holds: Sequence[Hold], tenant: Tenant, context: Context
) -> bool:
    """Return whether some version of a resource refers to one of the Patients on hold."""
    for source in sources_of_type(extent.type, context):
        criteria = [referring_to(hold.id, source, tenant, context) for hold in holds]
        matches = tuple(match for criterion in criteria for match in criterion.any_of)
        query = SearchQuery(
            type=extent.type,
            ids=frozenset({extent.id}),
            criteria=(Criterion(source.element, matches),),
            limit=1,
            count_up_to=0,
            every_version=True,
        )
        if (await context.resources.search(tenant.id, query)).versions:
            return True
    return False
