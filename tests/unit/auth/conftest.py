"""A store in memory, a manual clock, and tokens made of any bytes with the real key."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
from jose import jwk

from fhirpub.auth.authentication import TokenEndpoint
from fhirpub.auth.clients import NewClient, add_client
from fhirpub.auth.tenants import add_tenant
from fhirpub.auth.token_request import Message
from fhirpub.auth.tokens import Grant, Tokens
from fhirpub.config.settings import AuthConfig, LimitsConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.client_activity_contract import AssertionUse, RevokedToken, UsedAssertion
from fhirpub.storage.contract import Client, CredentialStore, SigningKey
from fhirpub.tenant import Tenant

ISSUER = "https://fhir.example.org"
AUDIENCE = "https://fhirpub.local/fhir"
ADDRESS = "192.0.2.1"
FORM = "application/x-www-form-urlencoded"


class MemoryAccess(CredentialStore):
    """Keeps everything in dictionaries, counts the reads, and can be made unavailable."""

    def __init__(self) -> None:
        self._tenants: dict[str, Tenant] = {}
        self._clients: dict[str, Client] = {}
        self._keys: dict[str, SigningKey] = {}
        self._revoked: dict[tuple[str, str], RevokedToken] = {}
        self.used: dict[tuple[str, str], UsedAssertion] = {}
        self.uses: dict[str, int] = {}
        self.writes_of_uses = 0
        self.reads: list[str] = []
        self.away = False

    async def _turn(self, read: str = "") -> None:
        if read:
            self.reads.append(read)
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailable("switched off")

    async def put_tenant(self, tenant: Tenant) -> None:
        await self._turn()
        self._tenants[tenant.id] = tenant

    async def add_tenant(self, tenant: Tenant) -> bool:
        await self._turn()
        return self._tenants.setdefault(tenant.id, tenant) is tenant

    async def change_tenant(
        self, tenant_id: str, *, name: str | None = None, disabled: bool | None = None
    ) -> None:
        await self._turn()
        if tenant_id in self._tenants:
            kept = self._tenants[tenant_id]
            self._tenants[tenant_id] = replace(
                kept,
                name=kept.name if name is None else name,
                disabled=kept.disabled if disabled is None else disabled,
            )

    async def tenant(self, tenant_id: str) -> Tenant | None:
        await self._turn("tenant")
        return self._tenants.get(tenant_id)

    async def tenants(self) -> Sequence[Tenant]:
        await self._turn("tenants")
        return list(self._tenants.values())

    async def put_client(self, client: Client) -> None:
        await self._turn()
        self._clients[client.id] = client

    async def add_client(self, client: Client) -> bool:
        await self._turn()
        return self._clients.setdefault(client.id, client) is client

    async def replace_client(self, client: Client, *, over: Client) -> bool:
        await self._turn()
        if self._clients.get(over.id) != over:
            return False
        self._clients[client.id] = client
        return True

    async def client(self, client_id: str) -> Client | None:
        await self._turn("client")
        return self._clients.get(client_id)

    async def clients(self, *, tenant: str | None = None) -> Sequence[Client]:
        await self._turn("clients")
        return [client for client in self._clients.values() if tenant in (None, client.tenant)]

    async def put_signing_key(self, key: SigningKey) -> None:
        await self._turn()
        self._keys[key.kid] = key

    async def signing_keys(self, environment: str) -> Sequence[SigningKey]:
        await self._turn("keys")
        return [key for key in self._keys.values() if key.environment == environment]

    async def rotate_signing_key(self, new: SigningKey, *, expected: Sequence[str]) -> bool:
        await self._turn()
        unretired = [
            key
            for key in self._keys.values()
            if key.environment == new.environment and key.retired is None
        ]
        if {key.kid for key in unretired} != set(expected):
            return False
        self._keys |= {key.kid: replace(key, retired=new.created) for key in unretired}
        self._keys[new.kid] = new
        return True

    async def revoke_token(self, token: RevokedToken, *, most: int) -> bool:
        await self._turn()
        key = (token.client, token.jti)
        if key not in self._revoked and len(await self.revoked_tokens(token.client)) >= most:
            return False
        self._revoked[key] = token
        return True

    async def revoked_tokens(self, client_id: str) -> Sequence[RevokedToken]:
        await self._turn("revoked")
        return [token for token in self._revoked.values() if token.client == client_id]

    async def sweep_revoked_tokens(self, *, before: int) -> int:
        await self._turn()
        old = [key for key, token in self._revoked.items() if token.until < before]
        for key in old:
            del self._revoked[key]
        return len(old)

    async def use_assertion(self, used: UsedAssertion, *, now: int, most: int) -> AssertionUse:
        await self._turn()
        if sum(one.owner == used.owner and one.until > now for one in self.used.values()) >= most:
            return AssertionUse.TOO_MANY
        if (used.owner, used.jti) in self.used:
            return AssertionUse.REPEATED
        self.used[used.owner, used.jti] = used
        return AssertionUse.FIRST

    async def sweep_used_assertions(self, *, before: int) -> int:
        await self._turn()
        old = [key for key, one in self.used.items() if one.until < before]
        for key in old:
            del self.used[key]
        return len(old)

    async def used_assertions(
        self, *, after: tuple[str, str] = ("", ""), limit: int = 1_000
    ) -> Sequence[UsedAssertion]:
        await self._turn()
        return [one for key, one in sorted(self.used.items()) if key > after][:limit]

    async def put_used_assertions(self, used: Collection[UsedAssertion]) -> None:
        await self._turn()
        self.used |= {(one.owner, one.jti): one for one in used}

    async def put_client_uses(self, uses: Mapping[str, int]) -> None:
        await self._turn()
        self.writes_of_uses += 1
        self.uses |= {name: max(used, self.uses.get(name, 0)) for name, used in uses.items()}

    async def client_uses(self) -> Mapping[str, int]:
        await self._turn()
        return dict(self.uses)


@dataclass
class HandClock:
    """A clock that stands still until it is advanced."""

    now: int = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


@dataclass
class World:
    """One tenant with one client, and the tokens of one process."""

    access: MemoryAccess
    clock: HandClock
    config: AuthConfig
    limits: LimitsConfig
    tokens: Tokens
    tenant: Tenant
    client: Client
    secret: str = field(repr=False)

    async def another_process(
        self, *, endpoint: TokenEndpoint | None = None, **changes: Any
    ) -> Tokens:
        tokens = Tokens(
            access=self.access,
            config=replace(self.config, **changes),
            limits=self.limits,
            issuer=ISSUER,
            clock=self.clock,
            endpoint=endpoint,
        )
        await tokens.ring.signer()
        return tokens

    def form(self, **changes: str | None) -> dict[str, str]:
        fields: dict[str, str | None] = {
            "grant_type": "client_credentials",
            "client_id": self.client.id,
            "client_secret": self.secret,
            "audience": AUDIENCE,
            **changes,
        }
        return {name: value for name, value in fields.items() if value is not None}

    async def post(self, body: bytes, content_type: str = FORM, **others: Any) -> Grant:
        address = others.pop("address", ADDRESS)
        message = Message(content_type=content_type, body=body, **others)
        return await self.tokens.grant(message, address=address)

    async def revoke(self, token: str, *, by: Tokens | None = None, **changes: str | None) -> None:
        """Revoke a token by the client of this world, in this process or another."""
        body = urlencode(self.form(token=token, **changes)).encode()
        message = Message(content_type=FORM, body=body)
        await (by or self.tokens).revoke(message, address=ADDRESS)

    async def ask(self, **changes: str | None) -> Grant:
        return await self.post(urlencode(self.form(**changes)).encode())

    async def token(self) -> str:
        return (await self.ask()).access_token

    async def key(self) -> SigningKey:
        return (await self.access.signing_keys(self.config.environment))[-1]

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = self.clock() // 1000
        return {
            "iss": ISSUER,
            "sub": self.client.id,
            "aud": AUDIENCE,
            "exp": now + 600,
            "iat": now,
            "jti": "j-1",
            "client_id": self.client.id,
            "org_id": self.tenant.id,
            **changes,
        }

    async def signed(
        self,
        payload: bytes | Mapping[str, Any] | None = None,
        header: bytes | Mapping[str, Any] | None = None,
    ) -> str:
        """Return a token of any bytes with a valid signature of the current key."""
        key = await self.key()
        if header is None:
            header = {"alg": key.algorithm, "kid": key.kid, "typ": "at+jwt"}
        parts = [header, self.claims() if payload is None else payload]
        raw = [part if isinstance(part, bytes) else orjson.dumps(part) for part in parts]
        signing_input = ".".join(b64url(chunk) for chunk in raw)
        signature = jwk.construct(key.private_pem, key.algorithm).sign(signing_input.encode())
        return f"{signing_input}.{b64url(signature)}"


def b64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def bearer(token: str) -> list[str]:
    return [f"Bearer {token}"]


@pytest.fixture
async def make_world() -> AsyncIterator[Callable[..., Any]]:
    """Return a function that creates a world with its own settings."""
    made: list[Tokens] = []

    async def make(*, scopes: tuple[str, ...] = (), failures: int = 10, **settings: Any) -> World:
        access, clock = MemoryAccess(), HandClock()
        config, limits = AuthConfig(**settings), LimitsConfig(token_failures=failures)
        tenant = await add_tenant(access, "Lab Uno", clock=clock)
        client, secret = await add_client(
            access,
            NewClient(
                tenant=tenant.id, name="ward", environment=config.environment, scopes=scopes
            ),
            clock=clock,
        )
        tokens = Tokens(access=access, config=config, limits=limits, issuer=ISSUER, clock=clock)
        await tokens.start()
        made.append(tokens)
        return World(access, clock, config, limits, tokens, tenant, client, secret)

    yield make
    for item in made:
        await item.stop()


@pytest.fixture
async def world(make_world: Callable[..., Any]) -> World:
    """Return a world with the default settings."""
    made: World = await make_world()
    return made
