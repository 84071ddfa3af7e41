"""Clients: the credentials of an application, and the proof that it holds them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fhirpub.auth.assertions.key_set import PASSKEY, check_key_set, read_key_set
from fhirpub.auth.networks import MAX_NETWORKS, parse_network, wrong_networks
from fhirpub.auth.scopes import is_scope
from fhirpub.auth.tenants import require_enabled_tenant
from fhirpub.errors import ConfigurationError, NoSuchRecord, NotPossible
from fhirpub.runtime.clock import DAY_MS, Clock
from fhirpub.storage.contract import Client, ClientSecret, CredentialStore
from fhirpub.tenant import Tenant

_PREFIX = "fhirpub_"
MAX_SCOPE_CHARACTERS = 1_500
_ENDS_SOON_MS = 30 * DAY_MS

UNKNOWN_CLIENT = Client(
    id="",
    tenant="00000000-0000-0000-0000-000000000000",
    name="",
    environment="",
    created=0,
    secrets=(ClientSecret(secrets.token_bytes(32)),),
    disabled=True,
)
"""Stands in for an unknown client, so that it costs the same work; its secret has no preimage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewClient:
    """A client to add; its secret is valid for ``valid_days``, with 0 until it is rotated.

    It may call from ``networks``, without any from everywhere. With a key set ``jwks``, or the URL
    of one, it signs assertions and gets no secret. ``is_person`` leaves it without either: it is
    invited to the console. Without an ``id`` it gets a fresh one.
    """

    tenant: str
    name: str
    environment: str
    scopes: Sequence[str] = ()
    networks: Sequence[str] = ()
    valid_days: int = 0
    id: str = ""
    jwks: str = ""
    jwks_url: str = ""
    is_person: bool = False


async def add_client(
    access: CredentialStore, new: NewClient, *, clock: Clock
) -> tuple[Client, str]:
    """Add a client of a tenant; return it with its secret, of which only a digest is kept.

    The secret is empty if the client has keys, or is a person. Raises NoSuchRecord if the tenant
    is unknown, NotPossible if there is a client with the given id, ConfigurationError if the
    tenant is disabled, or with all scopes, networks and keys that cannot be some.
    """
    jwks, wrong_keys = _keys(new.jwks)
    _check([*_wrong_scopes(new.scopes), *_wrong_networks(new.networks), *wrong_keys])
    await require_enabled_tenant(access, new.tenant)
    has_none, now = bool(jwks or new.jwks_url or new.is_person), clock()
    secret = "" if has_none else _new_secret()
    client = Client(
        id=new.id or str(uuid.uuid4()),
        tenant=new.tenant,
        name=new.name,
        environment=new.environment,
        created=now,
        secrets=(ClientSecret(_digest(secret), _end(now, new.valid_days)),) if secret else (),
        scopes=tuple(new.scopes),
        networks=canonical(new.networks),
        jwks=jwks,
        jwks_url=new.jwks_url,
    )
    if not await access.add_client(client):
        raise NotPossible(f"there is a client {client.id} already")
    return client, secret


async def rotate_client(
    access: CredentialStore,
    client_id: str,
    *,
    grace_seconds: int,
    valid_days: int = 0,
    clock: Clock,
) -> tuple[Client, str]:
    """Give a client a new secret; return it with the secret.

    It is valid for ``valid_days``, with 0 until it is rotated. Those it had work for
    ``grace_seconds`` more, or until the end they already had if that is sooner; 0 ends them at
    once. Raises NoSuchRecord, and ConfigurationError if it has keys, or is a person.
    """
    now = clock()
    end = now + grace_seconds * 1000
    secret = _new_secret()

    def with_new_secret(client: Client) -> Client:
        _refuse_person(client)
        if client.jwks or client.jwks_url:
            rule = (
                "the client signs assertions: replace its keys with `fhirpub client edit --jwks`"
            )
            raise ConfigurationError(rule)
        older = [_ending(item, end) for item in client.secrets]
        live = [item for item in older if _is_live(item, now)]
        new = ClientSecret(_digest(secret), _end(now, valid_days))
        return replace(client, secrets=(*live, new))

    return await update_client(access, client_id, with_new_secret), secret


async def set_scopes(access: CredentialStore, client_id: str, scopes: Sequence[str]) -> Client:
    """Give a client these scopes in place of those it has; return what it is now.

    Tokens that it has keep those of either that the other cover. Raises NoSuchRecord, and
    ConfigurationError if a scope cannot be one.
    """
    _check(_wrong_scopes(scopes))
    return await update_client(
        access, client_id, lambda client: replace(client, scopes=tuple(scopes))
    )


async def edit_client(
    access: CredentialStore,
    client_id: str,
    *,
    name: str | None = None,
    networks: Sequence[str] | None = None,
) -> Client:
    """Give a client another name, or networks in place of those it has; return what it is now.

    None leaves either as it is; no network at all lets it call from everywhere. Raises
    NoSuchRecord, and ConfigurationError with all that are no networks.
    """
    _check(_wrong_networks(networks or ()))

    def change(client: Client) -> Client:
        kept = client.networks if networks is None else canonical(networks)
        return replace(client, name=client.name if name is None else name, networks=kept)

    return await update_client(access, client_id, change)


async def set_keys(
    access: CredentialStore,
    client_id: str,
    *,
    jwks: str = "",
    jwks_url: str = "",
    grace_seconds: int,
    clock: Clock,
) -> Client:
    """Give a client a key set, or the URL of one, in place of what it has; return what it is now.

    Secrets that it had work for ``grace_seconds`` more, or until the end they already had if that
    is sooner. Raises NoSuchRecord, and ConfigurationError if it is a person, or with all that is
    wrong with the keys.
    """
    kept, wrong = _keys(jwks)
    _check(wrong)
    now = clock()
    end = now + grace_seconds * 1000

    def with_keys(client: Client) -> Client:
        _refuse_person(client)
        older = [_ending(secret, end) for secret in client.secrets]
        live = tuple(secret for secret in older if _is_live(secret, now))
        return replace(client, jwks=kept, jwks_url=jwks_url, secrets=live)

    return await update_client(access, client_id, with_keys)


async def disable_client(access: CredentialStore, client_id: str) -> Client:
    """Refuse a client and its tokens from now on; return what it is now.

    Raises NoSuchRecord.
    """
    return await update_client(access, client_id, lambda client: replace(client, disabled=True))


async def update_client(
    access: CredentialStore, client_id: str, change: Callable[[Client], Client]
) -> Client:
    """Change a client as it is now, even if others change it too; return what it has become."""
    while True:
        client = await _find_client(access, client_id)
        changed = change(client)
        if await access.replace_client(changed, over=client):
            return changed


async def authenticate(
    access: CredentialStore, client_id: str, secret: str, *, environment: str, clock: Clock
) -> tuple[Client, Tenant] | None:
    """Return the client that holds this secret, and its tenant, or None whatever is wrong.

    An unknown client, a wrong or expired secret, another environment and a disabled client or
    tenant cost the same reads and the same comparisons (D-27).
    """
    found = await access.client(client_id)
    client = found or UNKNOWN_CLIENT
    tenant = await access.tenant(client.tenant)
    right = _holds(client, _digest(secret), clock())
    if right and tenant is not None and is_admitted(client, tenant, environment=environment):
        return client, tenant
    return None


def is_admitted(client: Client, tenant: Tenant | None, *, environment: str) -> bool:
    """Return whether a client may authenticate in an environment."""
    here = client.environment == environment and not client.disabled
    return here and tenant is not None and not tenant.disabled


def is_person(client: Client) -> bool:
    """Return whether a client is a person: one with passkeys alone, or with nothing yet."""
    if client.secrets or client.jwks_url:
        return False
    return not client.jwks or all(key.is_passkey for key in read_key_set(client.jwks.encode()))


def _refuse_person(client: Client) -> None:
    if is_person(client):
        raise ConfigurationError(
            "the client is a person, who signs in to the console by passkeys: invite the person "
            "with `fhirpub client invite`, and add a client for each application"
        )


def _holds(client: Client, digest: bytes, now: int) -> bool:
    """Compare with every secret, without stopping at the one that fits."""
    right = False
    for secret in client.secrets or UNKNOWN_CLIENT.secrets:
        right |= hmac.compare_digest(secret.digest, digest) & _is_live(secret, now)
    return right


def secrets_end(client: Client) -> int | None:
    """Return when the last of a client's secrets expires, in milliseconds; None: never."""
    ends = [secret.expires for secret in client.secrets]
    return None if None in ends else max((end for end in ends if end is not None), default=None)


def access_end(client: Client) -> int | None:
    """Return when a client can no longer authenticate; None: never, as one with keys."""
    return None if client.jwks or client.jwks_url else secrets_end(client)


def ends_soon(client: Client, now: int) -> int | None:
    """Return when a client can no longer authenticate, if that is within 30 days or past."""
    end = access_end(client)
    return end if end is not None and end < now + _ENDS_SOON_MS else None


def _end(now: int, valid_days: int) -> int | None:
    return now + valid_days * DAY_MS if valid_days else None


def _is_live(secret: ClientSecret, now: int) -> bool:
    return secret.expires is None or now < secret.expires


def _ending(secret: ClientSecret, end: int) -> ClientSecret:
    return replace(secret, expires=end if secret.expires is None else min(end, secret.expires))


def check_client(scopes: Sequence[str], networks: Sequence[str], jwks: str) -> None:
    """Raise ConfigurationError with all scopes, networks and keys that cannot be some."""
    _check([*_wrong_scopes(scopes), *_wrong_networks(networks), *_keys(jwks)[1]])


def has_keys(client: Client, *, jwks: str, jwks_url: str) -> bool:
    """Return whether a client has right keys already; none are wanted if both are empty."""
    wanted = (_keys(jwks)[0], jwks_url)
    return not any(wanted) or wanted == (client.jwks, client.jwks_url)


def _check(problems: Sequence[str]) -> None:
    if problems:
        raise ConfigurationError("\n".join(problems))


def _keys(jwks: str) -> tuple[str, list[str]]:
    """Return the public keys of a set as they are stored, and what is wrong with it."""
    try:
        stored = check_key_set(jwks.encode()) if jwks else ""
    except ConfigurationError as problem:
        return "", [str(problem)]
    if stored and any(key.is_passkey for key in read_key_set(stored.encode())):
        return "", [f"no kid may begin with {PASSKEY}, the mark of what persons sign in with"]
    return stored, []


def _wrong_scopes(scopes: Sequence[str]) -> list[str]:
    wrong = [
        f"{scope!r} is no scope: write system/DiagnosticReport.cruds"
        for scope in scopes
        if not is_scope(scope)
    ]
    if not wrong and len(" ".join(scopes)) > MAX_SCOPE_CHARACTERS:
        most = f"more than {MAX_SCOPE_CHARACTERS} characters, too many for a token"
        return [f"the scopes have {most}"]
    return wrong


def _wrong_networks(networks: Sequence[str]) -> list[str]:
    wrong = wrong_networks(networks)
    if len(networks) > MAX_NETWORKS:
        wrong.append(f"there are more than {MAX_NETWORKS} networks: name larger ones")
    return wrong


def canonical(networks: Sequence[str]) -> tuple[str, ...]:
    """Return networks in their one notation, each once."""
    return tuple(dict.fromkeys(str(parse_network(network)) for network in networks))


async def _find_client(access: CredentialStore, client_id: str) -> Client:
    client = await access.client(client_id)
    if client is None:
        raise NoSuchRecord("client", client_id)
    return client


def _new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def _digest(secret: str) -> bytes:
    # 256 random bits need no slow hash; a slow one would only be a way to exhaust us.
    return hashlib.sha256(secret.encode()).digest()
