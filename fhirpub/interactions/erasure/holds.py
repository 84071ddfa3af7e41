"""Legal holds: what is on hold, or belongs to a Patient on hold, is not erased."""

from __future__ import annotations

from fhirpub.interactions.erasure.extent import Extent, NotErasable
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.storage.erasure.contract import Hold
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant


async def check_holds(extent: Extent, *, tenant: Tenant, store: Store) -> None:
    """Raise NotErasable if a resource, a member of it or one of its Patients is on hold.

    A Patient is one of them if any version of the resource or of a member refers to it.
    """
    holds = await store.holds(tenant.id)
    names = {*extent.names} if holds else set()
    for hold in holds:
        if (hold.type, hold.id) in names:
            raise _on_hold(extent, hold)
    for hold in holds:
        if hold.type == PATIENT and hold.id in extent.patients:
            raise _on_hold(extent, hold)


def _on_hold(extent: Extent, hold: Hold) -> NotErasable:
    return NotErasable(
        f"{extent.type}/{extent.id} is on hold, by {hold.type}/{hold.id} ({hold.reason}): "
        "`fhirpub hold release` ends that"
    )
