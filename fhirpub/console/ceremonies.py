"""The ceremonies of WebAuthn: a passkey is created, and signs in.

Only this module imports the library, which the extra ``console`` installs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import webauthn
from webauthn.helpers import (
    bytes_to_base64url,
    decode_credential_public_key,
    encode_cbor,
    parse_authentication_credential_json,
)
from webauthn.helpers.cose import COSEAlgorithmIdentifier
from webauthn.helpers.decode_credential_public_key import (
    DecodedEC2PublicKey,
    DecodedRSAPublicKey,
)
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from fhirpub.auth.assertions.key_set import PASSKEY, PublicKey, check_key_set
from fhirpub.auth.passkeys import PasskeyRefused, ids_of_passkeys
from fhirpub.fhir.strict_json import dumps
from fhirpub.storage.contract import Client

_ALGORITHMS = [
    COSEAlgorithmIdentifier.ECDSA_SHA_256,
    COSEAlgorithmIdentifier.RSASSA_PKCS1_v1_5_SHA_256,  # of Windows Hello
]
_MAX_CHARACTERS = 32_768
_MAX_ID = 184
"""A longer id of a passkey does not fit into the name of a key."""


@dataclass(frozen=True, slots=True)
class Ceremonies:
    """What the site that passkeys are for asks of browsers, and accepts from them.

    Each challenge is the digest of a statement that is used once.

    Attributes:
        host: The name of its host, to which passkeys are bound.
        origin: The origin of its pages (RFC 6454).
    """

    host: str
    origin: str

    def to_create(self, client: Client, statement: str) -> str:
        """Return the options by which a browser creates a passkey, as JSON."""
        selection = AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED,
            require_resident_key=True,
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        options = webauthn.generate_registration_options(
            rp_id=self.host,
            rp_name=self.host,
            user_id=client.id.encode(),
            user_name=client.name or client.id,
            challenge=_challenge(statement),
            authenticator_selection=selection,
            exclude_credentials=[
                PublicKeyCredentialDescriptor(id=webauthn.base64url_to_bytes(one))
                for one in ids_of_passkeys(client)
            ],
            supported_pub_key_algs=_ALGORITHMS,
        )
        return webauthn.options_to_json(options)

    def to_sign_in(self, statement: str) -> str:
        """Return the options by which a browser signs in with a passkey, as JSON."""
        options = webauthn.generate_authentication_options(
            rp_id=self.host,
            challenge=_challenge(statement),
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        return webauthn.options_to_json(options)

    def read_new(self, credential: str, statement: str) -> Mapping[str, str]:
        """Return the key of a passkey that a browser has created. Raises PasskeyRefused."""
        _check_length(credential)
        try:
            verified = webauthn.verify_registration_response(
                credential=credential,
                expected_challenge=_challenge(statement),
                expected_rp_id=self.host,
                expected_origin=self.origin,
                require_user_verification=True,
                supported_pub_key_algs=_ALGORITHMS,
            )
            key = _key_of(verified.credential_id, verified.credential_public_key)
            check_key_set(dumps({"keys": [key]}))
        except Exception as problem:  # noqa: BLE001 - it fails in many ways at what others send
            raise _refused(problem) from None
        return key

    def verify(self, credential: str, statement: str, key: PublicKey) -> None:
        """Check that a passkey has signed the challenge. Raises PasskeyRefused."""
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
            raise _refused(problem) from None

    def claimed_key(self, credential: str) -> tuple[str, str]:
        """Return the client that a browser says to sign in, and the name of its key.

        Raises PasskeyRefused.
        """
        _check_length(credential)
        try:
            parsed = parse_authentication_credential_json(credential)
            return (parsed.response.user_handle or b"").decode(), f"{PASSKEY}{parsed.id}"
        except Exception as problem:  # noqa: BLE001 - as above
            raise _refused(problem) from None


def _refused(problem: Exception) -> PasskeyRefused:
    """Return the refusal: the text of a problem may hold what was sent."""
    return PasskeyRefused(type(problem).__name__)


def _challenge(statement: str) -> bytes:
    return hashlib.sha256(statement.encode()).digest()


def _check_length(credential: str) -> None:
    if len(credential) > _MAX_CHARACTERS:
        raise PasskeyRefused("TooLong")


def _key_of(id_: bytes, public_key: bytes) -> dict[str, str]:
    """Return a key as a JWK (RFC 7517), read from COSE (RFC 9052). Raises ValueError."""
    if len(id_) > _MAX_ID:
        raise ValueError("the id is too long")
    encode, kid = bytes_to_base64url, f"{PASSKEY}{bytes_to_base64url(id_)}"
    key = decode_credential_public_key(public_key)
    if isinstance(key, DecodedEC2PublicKey):
        point = {"crv": "P-256", "x": encode(key.x), "y": encode(key.y)}
        return {"kty": "EC", "kid": kid, "alg": "ES256", **point}
    if isinstance(key, DecodedRSAPublicKey):
        return {"kty": "RSA", "kid": kid, "alg": "RS256", "n": encode(key.n), "e": encode(key.e)}
    raise ValueError("the key is neither of an elliptic curve nor RSA")


def _cose_of(key: PublicKey) -> bytes:
    """Return a key as COSE has it (RFC 9053, section 7.1; RFC 8230, section 4)."""
    jwk, decode = key.jwk, webauthn.base64url_to_bytes
    if jwk["kty"] == "EC":
        return encode_cbor({1: 2, 3: -7, -1: 1, -2: decode(jwk["x"]), -3: decode(jwk["y"])})
    return encode_cbor({1: 3, 3: -257, -1: decode(jwk["n"]), -2: decode(jwk["e"])})
