"""``fhirpub secrets``: the encryption of signing keys, salts and secrets of endpoints."""

from __future__ import annotations

import sys

import click

from fhirpub.administration import encryption
from fhirpub.app.stores import key_source
from fhirpub.cli.administration.target import Target, with_target
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import print_json, print_record
from fhirpub.config.settings import Config


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
@with_target
@with_json
def reseal(target: Target, *, dry_run: bool, as_json: bool) -> None:
    """Encrypt signing keys, salts and secrets of endpoints under the first key.

    What is in clear is encrypted; what is encrypted under another key is encrypted again, so that
    the other keys can be removed. It can be interrupted and repeated, while the service runs. The
    exit status is 1 if something cannot be decrypted; that stays as it is.
    """
    try:
        record = target.call(encryption.RESEAL, dry_run=dry_run)
    except KeyboardInterrupt:
        raise click.ClickException("interrupted; repeat the command to continue") from None
    heading = "To be encrypted under the first key." if dry_run else "Encrypted."
    print_record(heading, record, as_json=as_json)
    if record["not_decrypted"]:
        click.echo("What was not decrypted needs its key: fhirpub check", err=True)
        sys.exit(1)


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
