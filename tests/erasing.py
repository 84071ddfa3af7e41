"""Erases what a running service holds, as the command does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fhirpub.interactions.erasure.erase import Erased, Eraser
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.storage.store import Store
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.webhooks.transport.envelope import without_details


@dataclass(frozen=True, slots=True)
class Operator:
    """Who erases the resources of one tenant."""

    service: RunningService
    lab: Integrator

    @property
    def store(self) -> Store:
        return self.service.services.store

    @property
    def eraser(self) -> Eraser:
        return Eraser(
            tenant=self.lab.tenant,
            store=self.store,
            context=self.service.services.context,
            strip=without_details,
        )

    def order(self, address: str, **changes: Any) -> Erasure:
        """Return an order to erase a resource, named by its type and id."""
        type_name, _, id_ = address.partition("/")
        usual = Erasure(
            tenant=self.lab.tenant.id,
            type=type_name,
            id=id_,
            ordered=now_ms(),
            operator="eve",
            reason="order 7",
        )
        return replace(usual, **changes)

    def erase(self, address: str, **changes: Any) -> Erased:
        """Erase a resource."""
        return self.service.call(self.eraser.erase(self.order(address, **changes)))

    def plan(self, address: str) -> Erased:
        """Return what would be erased."""
        return self.service.call(self.eraser.plan(address.partition("/")[2]))

    def orders(self, *, unfinished: bool = False) -> list[Erasure]:
        """Return the orders of the tenant."""
        found = self.store.erasures(tenant=self.lab.tenant.id, unfinished=unfinished)
        return [*self.service.call(found)]
