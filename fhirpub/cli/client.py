"""``fhirpub client``: credentials of the applications that publish for a tenant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fhirpub.administration import clients, persons
from fhirpub.auth.assertions.key_set import MAX_BYTES
from fhirpub.auth.scopes import gives_something
from fhirpub.cli.administration.target import (
    Target,
    confirm_final,
    with_key,
    with_target,
    with_yes,
)
from fhirpub.cli.options import Command, with_json
from fhirpub.cli.printing import print_record, print_table
from fhirpub.config.loader import MAX_SECRET_DAYS
from fhirpub.config.reader import LARGEST
from fhirpub.errors import Refused
from fhirpub.fhir.strict_json import loads

_SHOWN_ONCE = "The secret is shown only once: store it in a safe place."
_SEND_LINK = "The link is shown only once and works once: send it to that person only."
_SIGNS_IN_ELSEWHERE = (
    "The person signs in at the provider of [console] oidc_issuer. For a passkey as well:"
)
_SECRETS_STAY = "Its secrets stay as they are: `fhirpub client rotate` creates a new one."


def _split(
    _context: click.Context, _parameter: click.Parameter, given: Sequence[str]
) -> list[str]:
    """Return scopes one by one: OAuth separates them by spaces (RFC 6749, 3.3)."""
    return [scope for several in given for scope in several.split() or [several]]


def _split_networks(
    _context: click.Context, _parameter: click.Parameter, given: Sequence[str]
) -> list[str]:
    """Return networks one by one: lists of them are also written with commas."""
    return [name for several in given for name in several.replace(",", " ").split() or [several]]


_with_scopes = click.option(
    "--scope",
    "scopes",
    multiple=True,
    callback=_split,
    metavar="SCOPE",
    help="Scope to grant, or several separated by spaces; may be repeated.",
)
_with_networks = click.option(
    "--network",
    "networks",
    multiple=True,
    callback=_split_networks,
    metavar="CIDR",
    help="Network from which the client may call, such as 192.0.2.0/24, 2001:db8::/32 or one "
    "address, or several separated by commas; may be repeated. Without any it may call from "
    "everywhere.",
)
_with_valid_days = click.option(
    "--valid-days",
    type=click.IntRange(0, MAX_SECRET_DAYS),
    metavar="N",
    help="Days for which the secret is valid, 0: until it is rotated. Default: [auth] "
    "secret_days.",
)


def with_jwks(command: Command) -> Command:
    """Add the option ``--jwks``: the public keys of a client that signs assertions."""
    return click.option(
        "--jwks",
        metavar="FILE|URL",
        help="Public keys with which the client signs assertions (private_key_jwt): a file with a "
        "JSON Web Key Set, or the https URL where it publishes one.",
    )(command)


def read_keys(place: str | None) -> dict[str, Any]:
    """Return the keys in a file, or the URL, as parameters of an operation."""
    if not place:
        return {}
    if "://" in place:
        return {"jwks_url": place}
    try:
        with Path(place).open("rb") as file:
            return {"jwks": loads(file.read(MAX_BYTES + 1))}
    except OSError as problem:
        raise click.BadParameter(f"{place}: {problem.strerror}", param_hint="--jwks") from None
    except Refused as problem:
        raise click.BadParameter(f"{place}: {problem}", param_hint="--jwks") from None


@click.group()
def client() -> None:
    """Manage client credentials and their scopes."""


@client.command(
    epilog="""\b
Examples:
  fhirpub client add --tenant 5f0c… --name "ward system" --scope system/DiagnosticReport.cruds
  fhirpub client add --tenant 5f0c… --scope system/*.rs --network 10.1.0.0/16 --json
  fhirpub client add --tenant lab-uno --key ward --scope system/*.rs   safe to repeat
  fhirpub client add --tenant 5f0c… --scope system/*.rs --jwks public.jwks.json
"""
)
@click.option(
    "--tenant", "tenant_id", required=True, metavar="TENANT", help="Its id, key or name."
)
@with_key
@click.option("--name", default="", metavar="TEXT", help="Name shown in lists.")
@_with_scopes
@_with_networks
@_with_valid_days
@with_jwks
@with_target
@with_json
def add(tenant_id: str, key: str | None, target: Target, *, as_json: bool, **given: Any) -> None:
    """Add credentials for a tenant; the secret is shown only once.

    With --jwks the client signs assertions with its private key, and gets no secret. With --key,
    a client that has the key is changed to what is given; its secrets stay.
    """
    given |= read_keys(given.pop("jwks"))
    if key is None:
        added = target.call(clients.ADD, tenant=tenant_id, **given)
    else:
        added = target.call(clients.PUT, tenant=tenant_id, key=key, **given)
    _warn_of_empty(given["scopes"])
    is_shown = "client_secret" in added
    heading = "Client added." if is_shown or key is None else "Client saved."
    advice = _SHOWN_ONCE if is_shown else "" if added["keys"] else _SECRETS_STAY
    then = "\n".join(filter(None, [*target.notes, advice]))
    print_record(heading, added, as_json=as_json, then=then)


@client.command(
    name="add-person",
    epilog="""\b
Example:
  fhirpub client add-person --tenant lab-uno --name "Ana Silva" --scope system/*.rs
""",
)
@click.option(
    "--tenant", "tenant_id", required=True, metavar="TENANT", help="Its id, key or name."
)
@click.option("--name", required=True, metavar="TEXT", help="Name shown in lists, and to others.")
@_with_scopes
@_with_networks
@with_target
@with_json
def add_person(tenant_id: str, target: Target, *, as_json: bool, **given: Any) -> None:
    """Add a person of a tenant, who signs in to the console with passkeys.

    The link that is printed makes the first passkey; where people sign in at a provider
    ([console] oidc_issuer), none is needed, and none is printed. A person has no secret, and gets
    no access token: each application needs a client of its own.
    """
    added = target.call(persons.ADD, tenant=tenant_id, **given)
    _warn_of_empty(given["scopes"])
    is_invited = "url" in added
    invite_too = target.repeated(f"fhirpub client invite {added['client_id']}")
    note = _SEND_LINK if is_invited else f"{_SIGNS_IN_ELSEWHERE} {invite_too}"
    then = "\n".join([*target.notes, note])
    print_record("Person added.", added, as_json=as_json, then=then)


@client.command()
@click.argument("client_id", metavar="CLIENT")
@with_target
@with_json
def invite(client_id: str, target: Target, *, as_json: bool) -> None:
    """Invite a person again, to add a passkey: for another device, or in place of a lost one."""
    invitation = target.call(persons.INVITE, client=client_id)
    print_record("Person invited.", invitation, as_json=as_json, then=_SEND_LINK)


@client.command(name="remove-passkey", short_help="Remove a passkey that is lost.")
@click.argument("client_id", metavar="CLIENT")
@click.argument("kid", metavar="KEY")
@with_yes
@with_target
@with_json
def remove_passkey(client_id: str, kid: str, target: Target, *, yes: bool, as_json: bool) -> None:
    """Remove a passkey of a person by its name, which `fhirpub client show` prints below "keys".

    Sessions that began with it end within half a minute. This cannot be undone: invite the person
    again instead.
    """
    confirm_final(f"Remove the passkey {kid} of the client {client_id}?", yes=yes)
    changed = target.call(persons.REMOVE_PASSKEY, client=client_id, kid=kid)
    print_record("Passkey removed.", changed, as_json=as_json)


@client.command(name="list")
@click.option("--tenant", "tenant_id", metavar="TENANT", help="Only clients of this tenant.")
@with_target
@with_json
def list_(tenant_id: str | None, target: Target, *, as_json: bool) -> None:
    """List credentials, oldest first, without their secrets, and when each was last used.

    The last use is recorded at most once an hour for each client.
    """
    records = target.call(clients.LIST, tenant=tenant_id)
    following = target.repeated("fhirpub client add --tenant ID --scope SCOPE")
    print_table(records, as_json=as_json, empty=f"No clients yet: {following}")


@client.command()
@click.argument("client_id", metavar="CLIENT")
@with_target
@with_json
def show(client_id: str, target: Target, *, as_json: bool) -> None:
    """Show a client by its id or name, without its secrets."""
    print_record("Client.", target.call(clients.SHOW, client=client_id), as_json=as_json)


@client.command()
@click.argument("client_id", metavar="CLIENT")
@click.option(
    "--grace-seconds",
    type=click.IntRange(0, LARGEST),
    metavar="N",
    help="Seconds for which the old secret still works; default: [auth] secret_grace_seconds.",
)
@_with_valid_days
@with_target
@with_json
def rotate(client_id: str, target: Target, *, as_json: bool, **given: Any) -> None:
    """Create a new secret; the old one works for a grace period, so that clients need not stop."""
    rotated = dict(target.call(clients.ROTATE, client=client_id, **given))
    grace, is_disabled = rotated.pop("grace_seconds"), rotated.pop("disabled")
    old = f"works for another {grace} seconds" if grace else "no longer works"
    then = f"{_SHOWN_ONCE}\nThe old secret {old}."
    if is_disabled:
        then = "The client is disabled: none of its secrets works, not even the new one."
    print_record("Client rotated.", rotated, as_json=as_json, then=then)


@client.command(
    epilog="""\b
Example:
  fhirpub client scopes 0b7e… --scope system/DiagnosticReport.rs --scope webhooks.read
"""
)
@click.argument("client_id", metavar="CLIENT")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    callback=_split,
    metavar="SCOPE",
    help="Scope to grant, or several separated by spaces; may be repeated. Scopes that are not "
    "named are removed.",
)
@with_target
@with_json
def scopes(client_id: str, scopes: list[str], target: Target, *, as_json: bool) -> None:
    """Replace the scopes of a client; its tokens lose removed scopes within half a minute."""
    changed = target.call(clients.SCOPES, client=client_id, scopes=scopes)
    _warn_of_empty(scopes)
    print_record("Scopes set.", changed, as_json=as_json)


@client.command(
    epilog="""\b
Examples:
  fhirpub client edit 0b7e… --network 192.0.2.0/24 --network 2001:db8::/32
  fhirpub client edit 0b7e… --any-network --name "ward system, old"
  fhirpub client edit 0b7e… --jwks https://ward.example.org/jwks.json
"""
)
@click.argument("client_id", metavar="CLIENT")
@click.option("--name", metavar="TEXT", help="Name shown in lists.")
@_with_networks
@click.option("--any-network", is_flag=True, help="Let the client call from everywhere.")
@with_jwks
@with_target
@with_json
def edit(client_id: str, target: Target, *, as_json: bool, **options: Any) -> None:
    """Change the name, the networks or the keys of a client.

    The networks that are given replace those it has. Running services apply them within half a
    minute, to tokens that are already issued as well. Keys replace those it has at once; a secret
    that it has works for another [auth] secret_grace_seconds.
    """
    name, networks, anywhere = options["name"], options["networks"], options["any_network"]
    if networks and anywhere:
        raise click.UsageError("--network and --any-network exclude each other")
    if name is None and not networks and not anywhere and not options["jwks"]:
        said = "give --name, --network, --any-network or --jwks"
        raise click.UsageError(f"nothing to change: {said}")
    wanted = networks if networks or anywhere else None
    keys = read_keys(options["jwks"])
    changed = target.call(clients.EDIT, client=client_id, name=name, networks=wanted, **keys)
    print_record("Client changed.", changed, as_json=as_json)


@client.command(short_help="Disable a client for good.")
@click.argument("client_id", metavar="CLIENT")
@with_yes
@with_target
@with_json
def disable(client_id: str, target: Target, *, yes: bool, as_json: bool) -> None:
    """Disable a client for good; its tokens are refused within half a minute.

    This cannot be undone: add another client instead.
    """
    confirm_final(f"Disable the client {client_id} for good?", yes=yes)
    disabled = target.call(clients.DISABLE, client=client_id)
    print_record("Client disabled.", disabled, as_json=as_json)


def _warn_of_empty(scopes: Sequence[str]) -> None:
    for scope in scopes:
        if not gives_something(scope):
            click.echo(f"Warning: the scope {scope} allows nothing here.", err=True)
