"""Carries out orders to erase: some at a time, so that no call takes long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from fhirpub.administration.context import Administration
from fhirpub.interactions.context import Context
from fhirpub.interactions.erasure.erase import Begun, Erased, Eraser
from fhirpub.interactions.erasure.extent import NotErasable
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.tenant import Tenant
from fhirpub.webhooks.transport.envelope import without_details

MAX_AT_ONCE = 50
"""So many orders are carried out in one call, and finished together."""
_Act = Callable[[Erasure], Awaitable[Begun]]


@dataclass(frozen=True, slots=True)
class Work:
    """Erases resources of one tenant."""

    administration: Administration
    tenant: Tenant
    context: Context
    eraser: Eraser

    @classmethod
    async def on(cls, administration: Administration, named: str) -> Work:
        """Return what works on a tenant. Raises NoSuchRecord, ConfigurationError."""
        tenant, context = await administration.tenant(named), await administration.context()
        eraser = Eraser(
            tenant=tenant, store=administration.store, context=context, strip=without_details
        )
        return cls(administration, tenant, context, eraser)

    async def plan(
        self, ids: Sequence[str], *, besides: Sequence[str], leaves_out_holds: bool
    ) -> list[Erased]:
        """Return what would be erased. Raises NotErasable."""
        planned: list[Erased] = []
        for one in ids:
            with suppress(*[NotErasable] * leaves_out_holds):
                planned.append(await self.eraser.plan(one, besides=besides))
        return planned

    async def carry_out(self, orders: Sequence[Erasure], act: _Act) -> Mapping[str, Any]:
        """Carry out orders; return what was erased, and why some were refused.

        One that is refused, since it is on hold, stops no other. Raises StoreUnavailable.
        """
        begun: list[Begun] = []
        refused: list[str] = []
        try:
            for order in orders:
                what = (order.type, order.id)
                try:
                    async with self.administration.recorded("erase", what, tenant=order.tenant):
                        begun.append(await act(order))
                except NotErasable as refusal:
                    refused.append(str(refusal))
        finally:
            await self.eraser.finish(begun)
        return {"erased": [asdict(one.erased) for one in begun], "refused": refused}
