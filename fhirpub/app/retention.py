"""The daily round of retention: one process erases what the policies name, at a bounded rate."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from functools import partial

from fhirpub.app.erasures import eraser_of
from fhirpub.audit.record import BEGUN, Access, Agent, encode, name_of
from fhirpub.config.retention import Policy, policies_of
from fhirpub.errors import StoreUnavailable
from fhirpub.interactions.erasure.erase import Begun, Eraser
from fhirpub.interactions.erasure.extent import NotErasable
from fhirpub.interactions.erasure.retention import OPERATOR, expired
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.storage.leases import Leases
from fhirpub.tenant import Tenant
from fhirpub.web.services import Services

_LEASE, _LEASE_SECONDS = "retention", 600.0
"""It is not given back: processes that look some minutes later would make the round again."""
_FIRST_SECONDS, _DAY_SECONDS = 600.0, 86_400.0
_MINUTE = 60.0
_AT_ONCE = 50
"""So many erasures are finished together."""

_log = logger()


class RetentionRound:
    """Erases what the policies of the settings name, or logs how much that is."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._config = services.config.retention
        self._policies = policies_of(self._config)
        self._leases = Leases(
            services.store,
            owner=secrets.token_hex(8),
            seconds=_LEASE_SECONDS,
            clock=services.clock,
        )

    async def run(self) -> None:
        """Make a round a day, for ever.

        Of several processes that look within ten minutes one makes it.
        """
        await asyncio.sleep(_FIRST_SECONDS)
        while self._policies:
            begun = self._services.clock()
            try:
                if await self._leads():
                    await self.make()
            except StoreUnavailable as problem:
                _log.warning("retention interrupted", reason=problem.reason)
            except Exception as problem:  # noqa: BLE001 - the next round may succeed
                _log.error("retention interrupted", **where(problem))
            passed = (self._services.clock() - begun) / 1000
            await asyncio.sleep(_DAY_SECONDS - min(max(0.0, passed), _DAY_SECONDS))

    async def make(self) -> Counter[str]:
        """Make one round; return how many resources went, or would go, by policy.

        What fails in one tenant is logged, and does not keep the others. Raises StoreUnavailable,
        also if another process makes the round.
        """
        counts: Counter[str] = Counter()
        for tenant in await self._services.store.tenants():
            if tenant.disabled:
                continue
            for policy in self._policies:
                counts[policy.text] += await self._apply_or_log(policy, tenant)
        event = "retention finished" if self._config.erase else "retention would erase"
        for policy in self._policies:
            _log.warning(event, policy=policy.text, resources=counts[policy.text])
        return +counts  # those of which there are any

    async def _apply_or_log(self, policy: Policy, tenant: Tenant) -> int:
        await self._keep_lead()
        try:
            return await self._apply(policy, tenant)
        except StoreUnavailable:
            raise
        except Exception as problem:  # noqa: BLE001 - of one tenant, which the next round repeats
            _log.error("retention failed for a tenant", tenant=tenant.id, **where(problem))
            return 0

    async def _apply(self, policy: Policy, tenant: Tenant) -> int:
        """Erase what a policy names, or count it; return how many resources it was."""
        eraser = eraser_of(self._services, tenant)
        count, begun = 0, list[Begun]()
        try:
            async for resource_id in expired(
                policy, tenant=tenant, context=self._services.context
            ):
                await self._keep_lead()
                if not self._config.erase:
                    count += 1
                    continue
                one = await self._erase(policy, resource_id, eraser)
                count += len(one)
                begun += one
                if len(begun) == _AT_ONCE:
                    finishing, begun = begun, []
                    await eraser.finish(finishing)
        finally:
            await eraser.finish(begun)
        return count

    async def _erase(self, policy: Policy, resource_id: str, eraser: Eraser) -> list[Begun]:
        """Erase one resource; return nothing if it is on hold."""
        order = Erasure(
            tenant=eraser.tenant.id,
            type=policy.type,
            id=resource_id,
            ordered=self._services.clock(),
            operator=OPERATOR,
            reason=policy.text,
        )
        await self._record(order, BEGUN)
        try:
            begun = await eraser.begin(order)
        except NotErasable as refusal:
            await self._record(order, 400)
            _log.info("not erased", resource=f"{policy.type}/{resource_id}", reason=str(refusal))
            return []
        await self._record(order, 200)
        await asyncio.sleep(_MINUTE / max(self._config.erasures_per_minute, 1))
        return [begun]

    async def _keep_lead(self) -> None:
        """Renew the lease if that is due. Raises StoreUnavailable if another process has it."""
        if not await self._leads():
            raise StoreUnavailable("another process makes the round")

    async def _leads(self) -> bool:
        if self._leases.due(_LEASE):
            await self._leases.take([_LEASE])
        return self._leases.held(_LEASE)

    async def _record(self, order: Erasure, status: int) -> None:
        """Record what is done in the audit trail, durably."""
        if self._services.audit is not None:
            access = Access(action="erase", status=status, what=(name_of(order.type, order.id),))
            agent = Agent(environment=self._services.config.auth.environment, user=OPERATOR)
            record = partial(encode, access, agent)
            await self._services.audit.write(order.tenant, lambda at: record(at=at))
