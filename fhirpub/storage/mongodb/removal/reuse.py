"""Whether a tenant has identifiers that were allowed to be registered again (ADR 36)."""

from __future__ import annotations

import asyncio

from fhirpub.storage.mongodb.primary import Primary
from fhirpub.storage.mongodb.schema import ERASURE_REUSE, Records

_FRESH_SECONDS = 5.0
_MAX_TENANTS = 10_000


class Reuse:
    """Answers for some seconds from memory: a search should not ask for it each time.

    A total that another process has changed by then may miss a resource that was registered again.
    """

    def __init__(self, erasures: Records, *, primary: Primary) -> None:
        self._erasures = erasures
        self._primary = primary
        self._known: dict[str, tuple[float, bool]] = {}

    async def of(self, tenant: str) -> bool:
        """Return whether some resource of a tenant may have been registered again."""
        now = asyncio.get_running_loop().time()
        known = self._known.get(tenant)
        if known is not None and now < known[0]:
            return known[1]
        wanted = {"tenant": tenant, "allows_reuse": True}
        options = {"limit": 1, "hint": ERASURE_REUSE}
        found = await self._primary.answer(
            lambda: self._erasures.find(wanted, {"_id": True}, **options).to_list(None)
        )
        if len(self._known) >= _MAX_TENANTS:
            self._known.clear()
        self._known[tenant] = (now + _FRESH_SECONDS, bool(found))
        return bool(found)

    def forget(self, tenant: str) -> None:
        """Ask again for a tenant, since this process has recorded an order."""
        self._known.pop(tenant, None)
