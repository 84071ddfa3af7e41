"""When clients were last used, recorded at most once an hour for each of them."""

from __future__ import annotations

from collections import OrderedDict

from fhirpub.runtime.clock import Clock
from fhirpub.storage.contract import CredentialStore

_HOUR_MS = 3_600_000
_MAX_CLIENTS = 10_000


class ClientUses:
    """The uses that this process knows of; requests only write to memory."""

    def __init__(self, access: CredentialStore, *, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._used: OrderedDict[str, int] = OrderedDict()
        self._recorded: dict[str, int] = {}

    def note(self, client_id: str) -> None:
        """Note that a client is used now."""
        self._used[client_id] = self._clock()
        self._used.move_to_end(client_id)
        if len(self._used) > _MAX_CLIENTS:
            forgotten, _used = self._used.popitem(last=False)
            self._recorded.pop(forgotten, None)

    async def record(self, *, at_once: bool = False) -> None:
        """Write the uses of clients of which an hour ago, or never, one was written.

        With ``at_once`` all that are later than what was written. Raises StoreUnavailable.
        """
        least = 1 if at_once else _HOUR_MS
        uses = {
            client_id: used
            for client_id, used in self._used.items()
            if used - self._recorded.get(client_id, -_HOUR_MS) >= least
        }
        if uses:
            await self._access.put_client_uses(uses)
            self._recorded |= {name: used for name, used in uses.items() if name in self._used}
