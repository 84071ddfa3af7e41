"""The keys that sign tokens: made, rotated, and kept at hand ready to use."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jose import jwk
from jose.backends.base import Key

from fhirpub.config.settings import ENVIRONMENTS, AuthConfig
from fhirpub.errors import SecretsUnavailable, StoreUnavailable
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.sealed import is_sealed
from fhirpub.storage.contract import CredentialStore, SigningKey

FRESH_SECONDS = 30
_MARGIN_SECONDS = 60
_MAX_KEY_LOOKUPS = 10
_KID = re.compile(r"[A-Za-z0-9_-]{43}")
_RSA_BITS = 2048
_PUBLIC = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n")}

_log = logger()


@dataclass(frozen=True, slots=True)
class ReadyKey:
    """A signing key with what is costly to make from it. ``jwk`` has public members alone."""

    record: SigningKey
    signer: Key = field(repr=False)
    verifier: Key = field(repr=False)
    jwk: dict[str, str]

    @property
    def kid(self) -> str:
        """The name by which tokens refer to it."""
        return self.record.kid

    @property
    def algorithm(self) -> str:
        """The one algorithm that it is for."""
        return self.record.algorithm


async def rotate(access: CredentialStore, config: AuthConfig, *, clock: Clock) -> SigningKey:
    """Let a new key take over and return it; the one before still verifies its tokens.

    Of racing calls one makes the key and the others return it.
    """
    keys = await access.signing_keys(config.environment)
    expected = [key.kid for key in keys if key.retired is None]
    new = await asyncio.to_thread(_create_key, config, clock())
    if await access.rotate_signing_key(new, expected=expected):
        return new
    return _newest(await access.signing_keys(config.environment)) or new


class KeyRing:
    """The keys of one environment, read from the store when they might have changed.

    A key is in the store before it signs. So a ``kid`` that is not known here is looked for in
    the store at once; ten times in a row, then once a second, so that made-up ones cost the
    store nothing. Besides, keys are read again when what was read is older than half a minute.
    """

    def __init__(self, access: CredentialStore, config: AuthConfig, *, clock: Clock) -> None:
        self._access = access
        self._config = config
        self._clock = clock
        self._keys: dict[str, ReadyKey] = {}
        self._signing: SigningKey | None = None
        self._damaged: set[str] = set()
        self._read_at: int | None = None
        self._reading = asyncio.Lock()
        self._began = self._failed = float("-inf")
        self._looks = float(_MAX_KEY_LOOKUPS)
        self._looked = 0.0
        self._problem = StoreUnavailable("not read yet")

    async def signing(self) -> SigningKey:
        """Return the record of the key that signs now; the first one ever is made here."""
        await self.refresh()
        while self._signing is None:
            new = await asyncio.to_thread(_create_key, self._config, self._clock())
            await self._access.rotate_signing_key(new, expected=[])
            await self._read()
        return self._signing

    async def signer(self) -> ReadyKey:
        """Return the key that signs now.

        Raises StoreUnavailable, also if it is damaged: to replace it is for the operator.
        """
        kid = (await self.signing()).kid
        if kid not in self._keys:
            raise StoreUnavailable(f"signing key {kid} cannot be read: rotate the keys")
        return self._keys[kid]

    async def find(self, kid: str) -> ReadyKey | None:
        """Return the key of this name, if it may still verify."""
        await self.refresh()
        key = self.cached_key(kid)
        if key is None and _KID.fullmatch(kid):
            await self._read(for_a_kid=True)
            key = self.cached_key(kid)
        return key

    async def find_foreign(self, kid: str) -> ReadyKey | None:
        """Return the key of this name of another environment, if the store holds it.

        It makes no token valid here; it shows whose a refused token is. Looked for no more often
        than unknown keys of this environment are.
        """
        if not _KID.fullmatch(kid) or not self._may_look(asyncio.get_running_loop().time()):
            return None
        for environment in {*ENVIRONMENTS} - {self._config.environment}:
            for record in await self._access.signing_keys(environment):
                if record.kid == kid:
                    with suppress(Exception):  # one that cannot be read verifies nothing
                        return await asyncio.to_thread(make_ready, record)
        return None

    @property
    def longest_seconds(self) -> int:
        """The longest lifetime of what is signed: a retired key verifies for so long."""
        return longest_token_seconds(self._config)

    def cached_key(self, kid: str) -> ReadyKey | None:
        """Return the key of this name if it is at hand and may still verify."""
        key = self._keys.get(kid)
        return key if key is not None and self._verifies(key.record) else None

    async def refresh(self) -> None:
        """Read the keys again if what is at hand has become old."""
        if not self._is_fresh():
            await self._read(unless_fresh=True)

    def jwks(self) -> dict[str, Any]:
        """Return the public parts of the keys that may verify (RFC 7517), newest first."""
        keys = [key.jwk for key in self._keys.values() if self._verifies(key.record)]
        return {"keys": keys[::-1]}

    async def _read(self, *, unless_fresh: bool = False, for_a_kid: bool = False) -> None:
        """Read the keys, unless another caller began to read them after this call was made."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        async with self._reading:
            if self._failed > asked:  # no caller queues for an unavailable store
                raise StoreUnavailable(self._problem.reason, retry_after=self._problem.retry_after)
            if self._began > asked or (unless_fresh and self._is_fresh()):
                return
            if for_a_kid and not self._may_look(loop.time()):
                return
            self._began = loop.time()
            try:
                await self._replace_keys()
            except StoreUnavailable as problem:
                self._failed, self._problem = loop.time(), problem
                raise

    def _may_look(self, now: float) -> bool:
        self._looks = min(_MAX_KEY_LOOKUPS, self._looks + now - self._looked)
        self._looked = now
        if self._looks < 1:
            return False
        self._looks -= 1
        return True

    async def _replace_keys(self) -> None:
        now = self._clock()
        records = await self._access.signing_keys(self._config.environment)
        ready: dict[str, ReadyKey] = {}
        for record in records:
            before = self._keys.get(record.kid)
            if before is not None and before.record == record:
                ready[record.kid] = before
            elif self._verifies(record):
                try:
                    ready[record.kid] = await asyncio.to_thread(make_ready, record)
                except Exception as problem:  # noqa: BLE001 - the other keys are good all the same
                    self._log_damage(record.kid, problem)
        self._keys = ready
        self._signing = _newest(records)
        self._read_at = now

    def _log_damage(self, kid: str, problem: Exception) -> None:
        if kid not in self._damaged:
            self._damaged.add(kid)
            _log.error(
                "signing key cannot be read; `fhirpub keys rotate` makes another",
                kid=kid,
                reason=problem.reason if isinstance(problem, SecretsUnavailable) else None,
                **where(problem),
            )

    def _is_fresh(self) -> bool:
        if self._read_at is None:
            return False
        return 0 <= self._clock() - self._read_at < FRESH_SECONDS * 1000

    def _verifies(self, record: SigningKey) -> bool:
        if record.retired is None:
            return True
        # A process may sign with a key for half a minute after another one has retired it.
        lived = self.longest_seconds + self._config.leeway_seconds + _MARGIN_SECONDS
        return self._clock() < record.retired + lived * 1000


def longest_token_seconds(config: AuthConfig) -> int:
    """Return the longest lifetime of a token for a client, in seconds."""
    return max(config.token_seconds, config.assertion_token_seconds)


def _newest(records: Sequence[SigningKey]) -> SigningKey | None:
    """Return the key that signs: the newest that is not retired."""
    unretired = [record for record in records if record.retired is None]
    return max(unretired, key=lambda each: (each.created, each.kid), default=None)


def _create_key(config: AuthConfig, now: int) -> SigningKey:
    """Make a key; its name is the thumbprint of its public part (RFC 7638)."""
    private: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    if config.algorithm == "ES256":
        private = ec.generate_private_key(ec.SECP256R1())
    else:
        private = rsa.generate_private_key(public_exponent=65_537, key_size=_RSA_BITS)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return SigningKey(
        kid=_thumbprint(_public_members(jwk.construct(pem, config.algorithm))),
        algorithm=config.algorithm,
        environment=config.environment,
        created=now,
        private_pem=pem,
    )


def make_ready(record: SigningKey) -> ReadyKey:
    """Return a key ready to use, whether it is retired or not; raises SecretsUnavailable."""
    if is_sealed(record.private_pem):
        raise SecretsUnavailable("its private key cannot be decrypted: run `fhirpub check`")
    signer = jwk.construct(record.private_pem, record.algorithm)
    members = _public_members(signer)
    return ReadyKey(
        record=record,
        signer=signer,
        verifier=signer.public_key(),
        jwk={**members, "use": "sig", "alg": record.algorithm, "kid": record.kid},
    )


def _public_members(key: Key) -> dict[str, str]:
    members = key.public_key().to_dict()
    return {name: members[name] for name in _PUBLIC[members["kty"]]}


def _thumbprint(members: dict[str, str]) -> str:
    digest = hashlib.sha256(orjson.dumps(members, option=orjson.OPT_SORT_KEYS)).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
