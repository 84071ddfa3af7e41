"""Passkeys: how persons sign in to the console (WebAuthn, ADR 46).

A passkey is a public key among those of its client, in the same JSON Web Key Set. Its name shows
what it is, and keeps it from authenticating the client for a token. Signatures are not counted:
most passkeys are on several devices of a person, which count apart or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from urllib.parse import urlsplit

from fhirpub.auth.assertions.key_set import PASSKEY, PublicKey, check_key_set, read_key_set
from fhirpub.auth.clients import is_person, update_client
from fhirpub.auth.networks import parse_address
from fhirpub.config.console import console_base_url
from fhirpub.config.settings import Config
from fhirpub.errors import NotPossible
from fhirpub.fhir.strict_json import dumps
from fhirpub.storage.contract import Client, CredentialStore

MAX_PASSKEYS = 10
_LIBRARY = "webauthn"
_NOT_INSTALLED = (
    "passkeys need the package webauthn, which is not installed: pip install 'fhirpub[console]'"
)


class PasskeyRefused(ValueError):
    """What a browser sent proves nothing. The text is for the log."""


def why_none(config: Config) -> str:
    """Return why there can be no passkeys of the console, or nothing."""
    if not config.console.enabled:
        return "the console is not served: set [console] enabled"
    if find_spec(_LIBRARY) is None:
        return _NOT_INSTALLED
    url = console_base_url(config.console, config.base_url)
    place = urlsplit(url)
    host = place.hostname or ""
    if parse_address(host) is not None:
        rule = "passkeys are bound to the name of a host, and"
        advice = "such as https://console.example.org, or http://localhost:8080 for a trial"
        return f"{rule} {url} has only an address: set [console] base_url, {advice}"
    if place.scheme != "https" and host.rpartition(".")[2] != "localhost":
        return f"browsers use passkeys with https only, and {url} has none: set [console] base_url"
    return ""


def passkey(client: Client, kid: str) -> PublicKey | None:
    """Return a passkey of a client by its name."""
    return next((key for key in _keys(client) if key.kid == kid and key.is_passkey), None)


async def add_passkey(access: CredentialStore, client_id: str, key: Mapping[str, str]) -> Client:
    """Give a person another passkey; return what the client is now.

    Raises NoSuchRecord, NotPossible.
    """

    def with_key(client: Client) -> Client:
        check_invitable(client)
        kept = [dict(one.jwk) for one in _keys(client) if one.kid != key["kid"]]
        return replace(client, jwks=check_key_set(dumps({"keys": [*kept, dict(key)]})))

    return await update_client(access, client_id, with_key)


async def remove_passkey(access: CredentialStore, client_id: str, kid: str) -> Client:
    """Take a passkey away from a person; return what the client is now.

    Raises NoSuchRecord, NotPossible.
    """

    def without_key(client: Client) -> Client:
        if passkey(client, kid) is None:
            raise NotPossible(f"the client {client_id} has no passkey {kid}")
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


def ids_of_passkeys(client: Client) -> list[str]:
    """Return the ids of a person's passkeys, as WebAuthn has them, in base64url."""
    return [key.kid.removeprefix(PASSKEY) for key in _keys(client) if key.is_passkey]
