"""Completes erasures that were interrupted: a command may be killed, and content must not stay."""

from __future__ import annotations

import asyncio
import secrets

from fhirpub.errors import StoreUnavailable
from fhirpub.interactions.erasure.erase import Eraser
from fhirpub.interactions.erasure.extent import NotErasable
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.storage.leases import Leases
from fhirpub.tenant import Tenant
from fhirpub.web.services import Services
from fhirpub.webhooks.transport.envelope import without_details

_LEASE, _LEASE_SECONDS, _PAUSE_SECONDS = "erasure", 60.0, 60.0
_YOUNG_MS = 120_000
"""Orders that are younger belong to a command that may be at work."""
_PAGE = 50

_log = logger()


def eraser_of(services: Services, tenant: Tenant) -> Eraser:
    """Return what erases resources of a tenant."""
    return Eraser(
        tenant=tenant,
        store=services.store,
        context=services.context,
        strip=without_details,
    )


class InterruptedErasures:
    """Looks for interrupted orders once a minute; of several processes one works."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._leases = Leases(
            services.store,
            owner=secrets.token_hex(8),
            seconds=_LEASE_SECONDS,
            clock=services.clock,
        )

    async def run(self) -> None:
        """Complete orders, for ever."""
        while True:
            await asyncio.sleep(_PAUSE_SECONDS)
            try:
                await self._leases.take([_LEASE])
                if self._leases.held(_LEASE):
                    await self.complete()
            except StoreUnavailable as problem:
                _log.warning("erasures not completed", reason=problem.reason)
            except Exception as problem:  # noqa: BLE001 - the next round may succeed
                _log.error("erasures not completed", **where(problem))

    async def complete(self, *, young_ms: int = _YOUNG_MS) -> int:
        """Complete the orders that are old enough; return how many. Raises StoreUnavailable.

        An order that fails is logged, and does not keep those behind it.
        """
        before, after, count = self._services.clock() - young_ms, ("", ""), 0
        while orders := await self._services.store.erasures(
            unfinished=True, after=after, limit=_PAGE
        ):
            for order in orders:
                if order.ordered <= before:
                    count += await self._complete(order)
            after = (orders[-1].tenant, orders[-1].id)
        return count

    async def _complete(self, order: Erasure) -> bool:
        tenant = await self._services.store.tenant(order.tenant)
        if tenant is None:
            return False
        eraser = eraser_of(self._services, tenant)
        try:
            await eraser.finish([await eraser.resume(order)])
        except NotErasable as refusal:
            resource = f"{order.type}/{order.id}"
            _log.warning("not erased", resource=resource, reason=str(refusal))
            return False
        except StoreUnavailable:
            raise
        except Exception as problem:  # noqa: BLE001 - of one order, which the next round repeats
            _log.error("erasure not completed", tenant=tenant.id, id=order.id, **where(problem))
            return False
        return True
