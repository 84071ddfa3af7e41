"""Passkeys: how persons sign in to the console (WebAuthn, ADR 46).

A passkey is a public key among those of its client, in the same JSON Web Key Set. Its name tells
it apart, and keeps it from authenticating the client for a token. Signatures are not counted: most
passkeys are on several devices of a person, which count apart or not at all.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from fhirpub.auth.assertions.key_set import PASSKEY, PublicKey, check_key_set, read_key_set
from fhirpub.auth.clients import is_person, update_client
from fhirpub.config.console import console_base_url
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError, NoSuchRecord, NotPossible
from fhirpub.fhir.strict_json import dumps
from fhirpub.storage.contract import Client, CredentialStore

MAX_PASSKEYS = 10
_LIBRARY = "webauthn"
_NOT_INSTALLED = (
    "passkeys need the package webauthn, which is not installed: pip install 'fhirpub[console]'"
)
_MAX_CHARACTERS = 32_768
_MAX_ID = 184
"""A longer id of a passkey does not fit into the name of a key."""


class PasskeyRefused(ValueError):
    """What a browser sent proves nothing. The text is for the log."""


def why_none(config: Config) -> str:
    """Return why nobody can have a passkey of the console, or nothing."""
    if not config.console.enabled:
        return "the console is not served: set [console] enabled"
    if find_spec(_LIBRARY) is None:
        return _NOT_INSTALLED
    url = console_base_url(config.console, config.base_url)
    place = urlsplit(url)
    host = place.hostname or ""
    if _is_address(host):
        rule = "passkeys are bound to the name of a host, and"
        advice = "such as https://console.example.org, or http://localhost:8080 for a trial"
        return f"{rule} {url} has only an address: set [console] base_url, {advice}"
    if place.scheme != "https" and host != "localhost":
        return f"browsers use passkeys with https only, and {url} has none: set [console] base_url"
    return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Site:
    """The site that passkeys are for.

    Attributes:
        host: The name of its host, to which they are bound.
        origin: The origin of its pages (RFC 6454).
    """

    host: str
    origin: str

    def to_create(self, client: Client, statement: str) -> str:
        """Return the options by which a browser creates a passkey, as JSON.

        ``statement`` is what the challenge follows from.
        """
        import webauthn  # noqa: PLC0415 - of an extra
        from webauthn.helpers import structs  # noqa: PLC0415

        selection = structs.AuthenticatorSelectionCriteria(
            resident_key=structs.ResidentKeyRequirement.REQUIRED,
            require_resident_key=True,
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        )
        options = webauthn.generate_registration_options(
            rp_id=self.host,
            rp_name=self.host,
            user_id=client.id.encode(),
            user_name=client.name or client.id,
            challenge=_challenge(statement),
            authenticator_selection=selection,
            exclude_credentials=[
                structs.PublicKeyCredentialDescriptor(id=webauthn.base64url_to_bytes(id_))
                for id_ in _ids(client)
            ],
            supported_pub_key_algs=_algorithms(),
        )
        return webauthn.options_to_json(options)

    def to_sign_in(self, statement: str) -> str:
        """Return the options by which a browser signs in with a passkey, as JSON."""
        import webauthn  # noqa: PLC0415 - of an extra
        from webauthn.helpers import structs  # noqa: PLC0415

        options = webauthn.generate_authentication_options(
            rp_id=self.host,
            challenge=_challenge(statement),
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        )
        return webauthn.options_to_json(options)

    def read_new(self, credential: str, statement: str) -> Mapping[str, str]:
        """Return the key of a passkey that a browser has created. Raises PasskeyRefused."""
        import webauthn  # noqa: PLC0415 - of an extra

        _check_length(credential)
        try:
            verified = webauthn.verify_registration_response(
                credential=credential,
                expected_challenge=_challenge(statement),
                expected_rp_id=self.host,
                expected_origin=self.origin,
                require_user_verification=True,
                supported_pub_key_algs=_algorithms(),
            )
            key = _key_of(verified.credential_id, verified.credential_public_key)
            check_key_set(dumps({"keys": [key]}))
        except Exception as problem:  # noqa: BLE001 - it fails in many ways at what others send
            raise PasskeyRefused(type(problem).__name__) from None
        return key

    def verify(self, credential: str, statement: str, key: PublicKey) -> None:
        """Check that a passkey has signed the challenge. Raises PasskeyRefused."""
        import webauthn  # noqa: PLC0415 - of an extra

        try:
            webauthn.verify_authentication_response(
                credential=credential,
                expected_challenge=_challenge(statement),
                expected_rp_id=self.host,
                expected_origin=self.origin,
                credential_public_key=_cose_of(key),
                credential_current_sign_count=0,
                require_user_verification=True,
            )
        except Exception as problem:  # noqa: BLE001 - as above
            raise PasskeyRefused(type(problem).__name__) from None


def claimed(credential: str) -> tuple[str, str]:
    """Return the client, and the name of its key, that a browser says to have.

    Raises PasskeyRefused.
    """
    from webauthn.helpers import parse_authentication_credential_json  # noqa: PLC0415 - of an extra

    _check_length(credential)
    try:
        parsed = parse_authentication_credential_json(credential)
        return (parsed.response.user_handle or b"").decode(), f"{PASSKEY}{parsed.id}"
    except Exception as problem:  # noqa: BLE001 - as above
        raise PasskeyRefused(type(problem).__name__) from None


def passkey(client: Client, kid: str) -> PublicKey | None:
    """Return a passkey of a client by its name."""
    return next((key for key in _keys(client) if key.kid == kid and key.is_passkey), None)


async def add_passkey(
    access: CredentialStore, client_id: str, key: Mapping[str, str]
) -> Client:
    """Give a person another passkey; return what the client is now.

    Raises NoSuchRecord, NotPossible.
    """

    def with_key(client: Client) -> Client:
        check_invitable(client)
        kept = [dict(one.jwk) for one in _keys(client) if one.kid != key["kid"]]
        return replace(client, jwks=check_key_set(dumps({"keys": [*kept, dict(key)]})))

    return await update_client(access, client_id, with_key)


async def remove_passkey(access: CredentialStore, client_id: str, kid: str) -> Client:
    """Take a passkey away from a person; return what the client is now. Raises NoSuchRecord."""

    def without_key(client: Client) -> Client:
        if passkey(client, kid) is None:
            raise NoSuchRecord("passkey", kid)
        kept = [dict(one.jwk) for one in _keys(client) if one.kid != kid]
        return replace(client, jwks=dumps({"keys": kept}).decode() if kept else "")

    return await update_client(access, client_id, without_key)


def check_invitable(client: Client) -> None:
    """Raise NotPossible unless a client can get another passkey."""
    if client.disabled:
        raise NotPossible(f"the client {client.id} is disabled for good: add another person")
    if not is_person(client):
        raise NotPossible(
            f"the client {client.id} has a secret or keys of an application: invite a person of "
            "their own, with `fhirpub client add-person`"
        )
    if len(_keys(client)) >= MAX_PASSKEYS:
        raise NotPossible(
            f"the client {client.id} has {MAX_PASSKEYS} passkeys, which is the limit: remove one "
            "with `fhirpub client remove-passkey`"
        )


def _keys(client: Client) -> Sequence[PublicKey]:
    return read_key_set(client.jwks.encode()) if client.jwks else ()


def _ids(client: Client) -> list[str]:
    return [key.kid.removeprefix(PASSKEY) for key in _keys(client) if key.is_passkey]


def _challenge(statement: str) -> bytes:
    return hashlib.sha256(statement.encode()).digest()


def _check_length(credential: str) -> None:
    if len(credential) > _MAX_CHARACTERS:
        raise PasskeyRefused("too long")


def _algorithms() -> list[Any]:
    """Return what passkeys may sign by: RS256 is for Windows Hello."""
    from webauthn.helpers.cose import COSEAlgorithmIdentifier as Cose  # noqa: PLC0415 - of an extra

    return [Cose.ECDSA_SHA_256, Cose.RSASSA_PKCS1_v1_5_SHA_256]


def _key_of(id_: bytes, public_key: bytes) -> dict[str, str]:
    """Return a key as a JWK (RFC 7517), read from COSE (RFC 9052). Raises PasskeyRefused."""
    from webauthn.helpers import bytes_to_base64url as encode  # noqa: PLC0415 - of an extra
    from webauthn.helpers import decode_credential_public_key  # noqa: PLC0415
    from webauthn.helpers.decode_credential_public_key import (  # noqa: PLC0415
        DecodedEC2PublicKey,
        DecodedRSAPublicKey,
    )

    if len(id_) > _MAX_ID:
        raise PasskeyRefused("the id is too long")
    kid, key = f"{PASSKEY}{encode(id_)}", decode_credential_public_key(public_key)
    if isinstance(key, DecodedEC2PublicKey):
        point = {"crv": "P-256", "x": encode(key.x), "y": encode(key.y)}
        return {"kty": "EC", "kid": kid, "alg": "ES256", **point}
    if isinstance(key, DecodedRSAPublicKey):
        return {"kty": "RSA", "kid": kid, "alg": "RS256", "n": encode(key.n), "e": encode(key.e)}
    raise PasskeyRefused("the key is neither of an elliptic curve nor RSA")


def _cose_of(key: PublicKey) -> bytes:
    """Return a key as COSE has it (RFC 9053, section 7.1; RFC 8230, section 4)."""
    from webauthn import base64url_to_bytes as decode  # noqa: PLC0415 - of an extra
    from webauthn.helpers import encode_cbor  # noqa: PLC0415

    jwk = key.jwk
    if jwk["kty"] == "EC":
        return encode_cbor({1: 2, 3: -7, -1: 1, -2: decode(jwk["x"]), -3: decode(jwk["y"])})
    return encode_cbor({1: 3, 3: -257, -1: decode(jwk["n"]), -2: decode(jwk["e"])})


def site_of(config: Config) -> Site:
    """Return the site of the console. Raises ConfigurationError if it can have no passkeys."""
    problem = why_none(config)
    if problem:
        raise ConfigurationError(problem)
    parts = urlsplit(console_base_url(config.console, config.base_url))
    return Site(parts.hostname or "", f"{parts.scheme}://{parts.netloc}")
