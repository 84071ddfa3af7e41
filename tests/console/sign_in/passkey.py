"""A passkey in software: it answers browsers' calls of WebAuthn as an authenticator would."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from webauthn import base64url_to_bytes
from webauthn.helpers import bytes_to_base64url, encode_cbor

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


@dataclass(kw_only=True)
class Passkey:
    """A key pair of one person at one site, which comes to be by `create`.

    Attributes:
        origin: The origin of the page, as its browser names it.
        algorithm: ES256 as most have it, or RS256 as Windows Hello.
        flags: What the authenticator says of its user: present, and verified.
    """

    origin: str
    algorithm: Literal["ES256", "RS256"] = "ES256"
    flags: int = PRESENT | VERIFIED
    id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    host: str = ""
    user: bytes = b""

    def __post_init__(self) -> None:
        self.key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey = (
            ec.generate_private_key(ec.SECP256R1())
            if self.algorithm == "ES256"
            else rsa.generate_private_key(65537, 2048)
        )

    @property
    def kid(self) -> str:
        return f"passkey:{bytes_to_base64url(self.id)}"

    def create(self, options: str) -> str:
        """Answer `navigator.credentials.create`."""
        wanted = json.loads(options)
        self.host, self.user = wanted["rp"]["id"], base64url_to_bytes(wanted["user"]["id"])
        attested = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + self._cose()
        data = self._data(self.flags | ATTESTED) + attested
        attestation = encode_cbor({"fmt": "none", "attStmt": {}, "authData": data})
        stated = self._stated("webauthn.create", wanted["challenge"])
        return self._answer({"clientDataJSON": stated, "attestationObject": attestation})

    def sign_in(self, options: str, **changes: bytes) -> str:
        """Answer `navigator.credentials.get`, with some of the answer changed."""
        stated = self._stated("webauthn.get", json.loads(options)["challenge"])
        data = self._data(self.flags)
        response = {
            "clientDataJSON": stated,
            "authenticatorData": data,
            "signature": self._sign(data + hashlib.sha256(stated).digest()),
            "userHandle": self.user,
        }
        return self._answer({**response, **changes})

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.host.encode()).digest() + bytes([flags]) + bytes(4)

    def _stated(self, kind: str, challenge: str) -> bytes:
        stated = {"type": kind, "challenge": challenge, "origin": self.origin}
        return json.dumps(stated).encode()

    def _answer(self, response: Mapping[str, bytes]) -> str:
        id_ = bytes_to_base64url(self.id)
        encoded = {name: bytes_to_base64url(value) for name, value in response.items()}
        return json.dumps({"id": id_, "rawId": id_, "type": "public-key", "response": encoded})

    def _cose(self) -> bytes:
        public: Any = self.key.public_key().public_numbers()
        if self.algorithm == "ES256":
            x, y = public.x.to_bytes(32, "big"), public.y.to_bytes(32, "big")
            return encode_cbor({1: 2, 3: -7, -1: 1, -2: x, -3: y})
        return encode_cbor({1: 3, 3: -257, -1: public.n.to_bytes(256, "big"), -2: b"\1\0\1"})

    def _sign(self, message: bytes) -> bytes:
        if isinstance(self.key, rsa.RSAPrivateKey):
            return self.key.sign(message, padding.PKCS1v15(), hashes.SHA256())
        return self.key.sign(message, ec.ECDSA(hashes.SHA256()))
