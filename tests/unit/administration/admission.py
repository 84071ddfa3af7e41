"""Callers of administration over HTTP, on a store of their own, and the key of one of them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson

from fhirpub.administration.http.callers import Callers
from fhirpub.auth.assertions.signing import new_key_pair, sign_assertion
from fhirpub.auth.assertions.verification import TYPE as ASSERTION
from fhirpub.auth.keys import KeyRing
from fhirpub.auth.statements import sign_statement
from fhirpub.config.administration import AdminConfig
from tests.unit.administration.office import Office, opened

KEY = "c0ffee" * 6
BASE = "https://admin.example.org"
AUDIENCE = f"{BASE}/admin/v1"
FORM = "application/x-www-form-urlencoded"


@dataclass
class Admission:
    """Callers, and the key of the one that is named ana."""

    office: Office
    ring: KeyRing
    callers: Callers
    config: AdminConfig
    keys: Path
    """The file with the public key of ana."""
    private: dict[str, str]

    @property
    def now(self) -> int:
        return self.office.clock.now // 1000

    def assertion(self, **changes: Any) -> str:
        given = {"subject": "ana", "audience": f"{AUDIENCE}/token", "clock": self.office.clock}
        return sign_assertion(self.private, **{**given, **changes})

    def form(self, **changes: Any) -> bytes:
        """Return the body of a request for a token, without the fields that are None."""
        usual = {
            "grant_type": "client_credentials",
            "client_assertion_type": ASSERTION,
            "client_assertion": self.assertion(),
        }
        fields = {name: text for name, text in (usual | changes).items() if text is not None}
        return urlencode(fields).encode()

    async def token(self, type_: str = "admin+jwt", **changes: Any) -> str:
        """Return a token of ana for ten seconds."""
        claims = {"sub": "ana", "aud": AUDIENCE, "iat": self.now, "exp": self.now + 10}
        return await sign_statement(self.ring, {**claims, **changes}, type_=type_)


def callers_of(office: Office, config: AdminConfig) -> tuple[KeyRing, Callers]:
    """Return who may administer under some settings, and the keys of the service."""
    ring = KeyRing(office.store, office.administration.config.auth, clock=office.clock)
    return ring, Callers(config, ring, office.store, clock=office.clock)


@asynccontextmanager
async def admitting(folder: Path, **settings: Any) -> AsyncGenerator[Admission]:
    """Open a store with a caller that has a key, and another whose file is not there."""
    private, public = new_key_pair()
    keys = folder / "ana.json"
    keys.write_bytes(orjson.dumps(public))
    usual: dict[str, Any] = {
        "base_url": BASE,
        "bootstrap_key_hash": hashlib.sha256(KEY.encode()).hexdigest(),
        "callers": [f"ana={keys}", "eva=/nowhere"],
    }
    config = AdminConfig(**usual | settings)
    async with opened(folder) as office:
        ring, callers = callers_of(office, config)
        yield Admission(office, ring, callers, config, keys, private)
