"""Reports as an older release may have stored them, which validated less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fhirpub.storage.contract import Version
from fhirpub.testing.service import Integrator, RunningService


def stored_version(service: RunningService, lab: Integrator, path: str) -> Version:
    """Return the newest version of a report as the store has it."""
    version = service.call(service.services.store.latest(lab.tenant.id, path.rpartition("/")[2]))
    assert version is not None
    return version


def store_again(
    service: RunningService, lab: Integrator, path: str, change: Callable[[bytes], bytes]
) -> None:
    """Add a second version to a report, a change of the first one's body, without validation."""
    store, tenant_id = service.services.store, lab.tenant.id
    first = service.call(store.version(tenant_id, path.rpartition("/")[2], 1))
    assert first is not None
    service.call(store.add(tenant_id, replace(first, version=2, body=change(first.body)), ()))
