"""Abuses by searches of the audit trail, for which the abuser has the scope."""

from __future__ import annotations

from bench.abuses import bodies
from bench.abuses.attack import Attack, NotPrepared, Phases, abuse
from bench.payloads import REPORTS

_LISTED = 100
_LISTS = 2_000
"""Searches that fill the trail: each leaves a record of some 6 KB that names what it lists."""
_BASE = REPORTS.rpartition("/")[0]


async def _fill_trail(attack: Attack) -> str:
    """List the same reports again and again; return a search for eight of them."""
    paths = await attack.register(bodies.registration(), _LISTED)
    (request,) = next(attack.get(f"{REPORTS}?_count={_LISTED}"))
    with await attack.connect() as wire:
        for _ in range(_LISTS):
            await wire.send(request)
            status, _head = await wire.answer()
            if status != 200:
                raise NotPrepared(f"status {status}")
    named = ",".join(path.removeprefix(f"{_BASE}/") for path in paths[:8])
    return f"{_BASE}/AuditEvent?entity={named}"


@abuse(200)
async def searches_of_audit_events(attack: Attack) -> Phases:
    """Searches 2,000 records of 6 KB for eight reports that each of them names, and finds none."""
    search = await _fill_trail(attack)
    yield
    await attack.flood(attack.get(f"{search}&subtype=never"))


@abuse(200)
async def pages_of_audit_events(attack: Attack) -> Phases:
    """Lists 100 events at a time that name 100 reports each."""
    search = await _fill_trail(attack)
    yield
    await attack.flood(attack.get(f"{search}&_count=100"))
