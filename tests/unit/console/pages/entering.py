"""Visits of those who sign in, at a console with passkeys, a key and maybe a provider."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from fhirpub.administration.http.callers import Callers
from fhirpub.auth.throttle import Throttle
from fhirpub.config.administration import AdminConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.console.ceremonies import Ceremonies
from fhirpub.console.sessions import Session
from fhirpub.console.visit import Redirect, Visit
from tests.unit.console.signing_in import Door, configured

ORIGIN = "https://console.example.org"
KEY = "k" * 43
CONSOLE = ConsoleConfig(enabled=True, base_url=ORIGIN, oidc_operators=["boss@example.org"])


def at_the_door(
    door: Door,
    *,
    form: Any = None,
    session: Any = None,
    cookie: str = "",
    provider: Any = None,
    has_passkeys: Any = True,
    **query: str,
) -> Visit:
    """Return a visit of a page that anyone may have."""
    admin = AdminConfig(bootstrap_key_hash=hashlib.sha256(KEY.encode()).hexdigest())
    desk = configured(door.world, admin=admin, console=CONSOLE)
    ring: Any = None
    console: Any = SimpleNamespace(
        sessions=desk.sessions,
        throttle=Throttle(50, clock=desk.clock),
        config=desk.config,
        base_url=ORIGIN,
        ceremonies=Ceremonies("console.example.org", ORIGIN) if has_passkeys else None,
        provider=provider,
        interface=SimpleNamespace(callers=Callers(admin, ring, desk.store, clock=desk.clock)),
        services=SimpleNamespace(
            audit=door.audit.trail, store=desk.store, config=desk.config, clock=desk.clock
        ),
    )
    texts = {name: [text] for name, text in (form or {}).items()}
    return replace(
        door.visit, console=console, session=session, form=texts, query=query, cookie=cookie
    )


async def session_of(visit: Visit, result: Any) -> Session:
    """Return the session that a result begins."""
    assert isinstance(result, Redirect)
    found: Session = await visit.console.sessions.read(result.cookie)
    return found
