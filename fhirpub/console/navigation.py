"""The entries of the navigation: what the person of a session may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fhirpub.audit.event import AUDIT_EVENT
from fhirpub.auth.caller import Caller
from fhirpub.auth.scopes import WEBHOOKS, permits
from fhirpub.console.console import Console
from fhirpub.console.sessions import Session
from fhirpub.console.visit import BASE

_OPERATORS = {
    "tenants": "Tenants",
    "clients": "Clients",
    "endpoints": "Endpoints",
    "keys": "Signing keys",
    "erasures": "Erasures",
    "audit": "Audit trail",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the navigation."""

    title: str
    path: str
    section: str


def navigation(console: Console, session: Session | None) -> Sequence[Entry]:
    """Return the entries for a session; none for a person who is not signed in."""
    if session is None:
        return []
    if session.caller is None:
        return _of_operators()
    start = Entry("Start", f"{BASE}/", "start")
    return [start, *_of_integrators(console, session.caller)]


def _of_integrators(console: Console, caller: Caller) -> list[Entry]:
    scopes = caller.scopes
    enforced = console.config.auth.enforce_scopes or caller.scopes_count
    services = console.services

    def may(name: str) -> bool:
        # What came with other resources is searched by the right to one of their types.
        names = (name,) if name in services.types else (name, *services.types)
        return not enforced or any(permits(scopes, one, "s") for one in names)

    types = [*filter(may, services.context.searched)]
    entries = [Entry(name, f"{BASE}/resources/{name}", name) for name in types]
    if not enforced or WEBHOOKS[0] in scopes:
        entries.append(Entry("Endpoints", f"{BASE}/endpoints", "endpoints"))
    if services.audit is not None and permits(scopes, AUDIT_EVENT, "s"):
        entries.append(Entry("Accesses", f"{BASE}/accesses", "accesses"))
    return entries


def _of_operators() -> list[Entry]:
    path = f"{BASE}/operations"
    return [
        Entry("Overview", f"{BASE}/", "start"),
        *(Entry(title, f"{path}/{name}", name) for name, title in _OPERATORS.items()),
        Entry("All operations", path, "operations"),
    ]
