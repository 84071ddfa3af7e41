"""``fhirpub secrets``: the encryption of signing keys, salts and secrets of endpoints."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable

import click

from fhirpub.app.admin import AdminContext, open_admin
from fhirpub.app.secret_checks import missing_key
from fhirpub.app.stores import key_source
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import Record, print_json, print_record
from fhirpub.cli.progress_line import ProgressLine
from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import NO_KEY
from fhirpub.errors import SecretsUnavailable
from fhirpub.storage.reencryption import outdated_secrets, reencrypt, state_of

Progress = Callable[[int, int], None]


@click.group()
def secrets() -> None:
    """Encrypt the secrets in the store under a new key; create keys."""


@secrets.command(
    short_help="Encrypt everything under the first key.",
    epilog="""\b
To replace the key while the service runs:
  fhirpub secrets new-key        prints a line: put it above the others in the file of the keys
  (wait ten seconds: running processes read the file again)
  fhirpub secrets reseal
  (remove the other lines)
""",
)
@click.option("--dry-run", is_flag=True, help="Only count what would be encrypted.")
@with_config
@with_json
def reseal(config: Config, *, dry_run: bool, as_json: bool) -> None:
    """Encrypt signing keys, salts and secrets of endpoints under the first key.

    What is in clear is encrypted; what is encrypted under another key is encrypted again, so that
    the other keys can be removed. It can be interrupted and repeated, while the service runs. The
    exit status is 1 if something cannot be decrypted; that stays as it is.
    """
    line = ProgressLine(at_once=False)

    def show(done: int, total: int) -> None:
        line.show(lambda: f"{done:,} of {total:,} salts and signing keys")

    try:
        record = asyncio.run(_reseal(config, None if dry_run else show))
    except KeyboardInterrupt:
        raise click.ClickException("interrupted; repeat the command to continue") from None
    finally:
        line.end()
    heading = "To be encrypted under the first key." if dry_run else "Encrypted."
    print_record(heading, record, as_json=as_json)
    if record["not_decrypted"]:
        click.echo("What was not decrypted needs its key: fhirpub check", err=True)
        sys.exit(1)


async def _reseal(config: Config, show: Progress | None) -> Record:
    """Count what is outdated, and encrypt it, unless ``show`` is None."""
    async with open_admin(config) as open_:
        store = open_.store
        if not store.cipher:
            found = await store.stored_secrets()
            missing = [one for one in found if state_of(store, one) == "missing"]
            raise missing_key(missing) if missing else SecretsUnavailable(NO_KEY)
        counts = Counter(one.purpose for one in await outdated_secrets(store))
        if show is not None:
            counts = await reencrypt(store, on_progress=show)
        states = [state_of(store, one) for one in await store.stored_secrets()]
        unreadable = states.count("missing") + states.count("damaged")
        endpoints, refused = await _endpoints(open_, change=show is not None)
    return {
        "key": store.cipher.names[0],
        "salts": counts["salt"],
        "signing_keys": counts["private key"],
        "endpoints": endpoints,
        "not_decrypted": unreadable + refused,
    }


async def _endpoints(open_: AdminContext, *, change: bool) -> tuple[int, int]:
    """Return how many endpoints have outdated secrets, and how many tenants some of no key."""
    if not change:
        outdated = [
            one for one in await open_.store.all_endpoints() if open_.endpoints.is_old(one)
        ]
        return len(outdated), 0
    changed = refused = 0
    for tenant in await open_.store.tenants():
        try:
            changed += await open_.endpoints.reseal(tenant.id)
        except SecretsUnavailable:
            refused += 1
    return changed, refused


@secrets.command(name="new-key")
@with_config
@with_json
def new_key(config: Config, *, as_json: bool) -> None:
    """Print a new line for the file of the keys, wrapped if a plugin wraps keys.

    Nothing is stored: put the line into the file yourself.
    """
    line = key_source(config).new_line()
    if as_json:
        print_json({"line": line})
    else:
        click.echo(line)
