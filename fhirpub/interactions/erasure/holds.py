"""Legal holds: what is on hold, or belongs to a Patient on hold, is not erased."""

from __future__ import annotations

from collections.abc import Iterable

from fhirpub.interactions.context import Context
from fhirpub.interactions.erasure.extent import Extent, NotErasable
from fhirpub.interactions.erasure.patients import referring_to
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.parts import sources_of_type
from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.erasure.contract import Hold
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant


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
    for hold in await _of_its_patients(extent, patients, tenant, context):
        raise _on_hold(extent, hold)


def _on_hold(extent: Extent, hold: Hold) -> NotErasable:
    return NotErasable(
        f"{extent.type}/{extent.id} is on hold, by {hold.type}/{hold.id} ({hold.reason}): "
        "`fhirpub hold release` ends that"
    )


async def _of_its_patients(
    extent: Extent, holds: Iterable[Hold], tenant: Tenant, context: Context
) -> list[Hold]:
    """Return the holds of Patients that some version of a resource refers to."""
    found: list[Hold] = []
    for source in sources_of_type(extent.type, context):
        for hold in holds:
            query = SearchQuery(
                type=extent.type,
                ids=frozenset({extent.id}),
                criteria=(referring_to(hold.id, source, tenant, context),),
                limit=1,
                count_up_to=0,
                every_version=True,
            )
            if (await context.resources.search(tenant.id, query)).versions:
                found.append(hold)
    return found
