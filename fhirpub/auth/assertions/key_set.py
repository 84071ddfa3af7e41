"""The public keys of a client, read from a JSON Web Key Set (RFC 7517) and ready to verify."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jose import jwk
from jose.backends.base import Key
from jose.exceptions import JOSEError

from fhirpub.errors import ConfigurationError, Refused
from fhirpub.fhir.strict_json import dumps, loads

ALGORITHMS = ("RS384", "ES384", "RS256", "ES256")
"""What may sign assertions: the two of SMART App Launch 2, and those of common libraries."""
MAX_BYTES = 65_536
MAX_KEYS = 20
PASSKEY = "passkey:"
"""What the name of a passkey begins with: the key of a person, which signs no assertion."""

_BY_TYPE = {"RSA": ("RS384", "RS256"), "P-384": ("ES384",), "P-256": ("ES256",)}
_COORDINATE_BYTES = {"P-384": 48, "P-256": 32}
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")
_PUBLIC = {"RSA": ("kty", "kid", "n", "e"), "EC": ("kty", "kid", "crv", "x", "y")}
_RSA_BITS = range(2048, 8193)
_MAX_EXPONENT_BITS = 32
"""A verification takes as long as the exponent: one of 3,072 bits takes ten milliseconds."""
_KID = re.compile(r"[\x20-\x7e]{1,255}")
_BASE64URL = re.compile("[A-Za-z0-9_-]+")
_NO_SET = 'must be a JSON Web Key Set: {"keys": [...]}'


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key with what verifies by it, for each algorithm that it is for."""

    kid: str
    verifiers: Mapping[str, Key] = field(repr=False)
    jwk: Mapping[str, str] = field(repr=False)
    """Its public members, as they are stored."""

    @property
    def is_passkey(self) -> bool:
        """Whether a person has it, to sign in to the console."""
        return self.kid.startswith(PASSKEY)

    def verifies(self, algorithm: str, message: bytes, signature: bytes) -> bool:
        """Return whether the private key of this one signed a message, by an algorithm."""
        verifier = self.verifiers.get(algorithm)
        if verifier is None:
            return False
        try:
            return bool(verifier.verify(message, signature))
        except (JOSEError, ValueError, ArithmeticError):
            return False


def read_key_set(raw: bytes) -> tuple[PublicKey, ...]:
    """Return the keys of a set that can be used; others are ignored (RFC 7517, section 5).

    Raises ValueError if it is no key set, or a larger one than is read.
    """
    return tuple(key for key, _problems in map(_read, _members(raw)) if key is not None)


def check_key_set(raw: bytes) -> str:
    """Return a key set with nothing but its public keys, as text to be stored.

    Raises ConfigurationError with all that is wrong: each key has to be usable.
    """
    try:
        members = _members(raw)
    except ValueError as problem:
        raise ConfigurationError(f"the key set {problem}") from None
    found = [_read(member) for member in members]
    wrong = [
        f"key {number}: {problem}"
        for number, (_key, problems) in enumerate(found, start=1)
        for problem in problems
    ]
    keys = [key for key, _problems in found if key is not None]
    counted = Counter((key.kid, key.jwk["kty"]) for key in keys)
    wrong += [f"several keys have the kid {kid}" for (kid, _), n in counted.items() if n > 1]
    if not members:
        wrong = ["the key set has no key"]
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    return dumps({"keys": [dict(key.jwk) for key in keys]}).decode()


def _members(raw: bytes) -> list[Any]:
    if len(raw) > MAX_BYTES:
        raise ValueError(f"has more than {MAX_BYTES} bytes")
    try:
        value = loads(raw)
    except Refused:
        raise ValueError(_NO_SET) from None
    members = value.get("keys") if type(value) is dict else None
    if type(members) is not list:
        raise ValueError(_NO_SET)
    if len(members) > MAX_KEYS:
        raise ValueError(f"has more than {MAX_KEYS} keys")
    return members


def _read(member: Any) -> tuple[PublicKey | None, list[str]]:
    """Return a key and what is wrong with it: one of them is nothing."""
    if type(member) is not dict:
        return None, ["must be a JSON object"]
    problems = [*_problems(member)]
    if problems:
        return None, problems
    public = {name: member[name] for name in _PUBLIC[member["kty"]]}
    if "alg" in member:
        public["alg"] = member["alg"]
    try:
        verifiers = {name: jwk.construct(public, name) for name in _algorithms(member)}
    except (JOSEError, ValueError, ArithmeticError):
        return None, ["is no point of its curve, or no key"]
    return PublicKey(member["kid"], verifiers, public), []


def _problems(member: Mapping[str, Any]) -> Iterable[str]:
    kid = member.get("kid")
    if type(kid) is not str or _KID.fullmatch(kid) is None:
        yield "must have a kid of 1 to 255 printable ASCII characters"
    if member.keys() & set(_PRIVATE):
        yield "has members of a private key: give the public key only"
    if member.get("use", "sig") != "sig" or "verify" not in _operations(member):
        yield "must be for signatures: use is sig, key_ops has verify"
    kind = member.get("kty")
    if kind == "RSA":
        yield from _problems_of_rsa(member)
    elif kind == "EC":
        yield from _problems_of_ec(member)
    else:
        yield "must be an RSA or EC key: kty"
        return
    if "alg" in member and member["alg"] not in _algorithms({**member, "alg": None}):
        yield "has an alg that is not one of RS384, ES384, RS256 and ES256, or not for its kty"


def _operations(member: Mapping[str, Any]) -> Iterable[Any]:
    found = member.get("key_ops", ["verify"])
    return found if type(found) is list else ()


def _problems_of_rsa(member: Mapping[str, Any]) -> Iterable[str]:
    modulus, exponent = _number(member.get("n")), _number(member.get("e"))
    if modulus is None or exponent is None:
        yield "must have n and e in base64url"
    elif modulus.bit_length() not in _RSA_BITS:
        yield f"must have {_RSA_BITS.start} to {_RSA_BITS.stop - 1} bits"
    elif not 1 < exponent < 2**_MAX_EXPONENT_BITS or exponent % 2 == 0:
        yield "has an unusual exponent: use 65537"


def _problems_of_ec(member: Mapping[str, Any]) -> Iterable[str]:
    length = _COORDINATE_BYTES.get(str(member.get("crv")))
    if length is None:
        yield "must be on the curve P-384 or P-256"
        return
    if any(len(_bytes(member.get(name)) or b"") != length for name in "xy"):
        yield f"must have x and y of {length} bytes in base64url"


def _algorithms(member: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a key is for; ``alg`` names one of several."""
    kind = "RSA" if member["kty"] == "RSA" else str(member.get("crv"))
    possible = _BY_TYPE.get(kind, ())
    named = member.get("alg")
    return possible if named is None else tuple(name for name in possible if name == named)


def _number(text: Any) -> int | None:
    raw = _bytes(text)
    return None if raw is None else int.from_bytes(raw, "big")


def _bytes(text: Any) -> bytes | None:
    if type(text) is not str or _BASE64URL.fullmatch(text) is None or len(text) % 4 == 1:
        return None
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
