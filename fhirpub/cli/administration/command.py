"""``fhirpub admin``: the keys of those who administer a running service over HTTP."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path

import click

from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.cli.options import with_json
from fhirpub.cli.printing import print_record
from fhirpub.fhir.strict_json import dumps

_NAME = re.compile("[A-Za-z0-9._-]{1,64}")
_PRIVATE, _PUBLIC = 0o600, 0o644


@click.group()
def admin() -> None:
    """Create keys for administration over HTTP; see [admin] in the settings."""


@admin.command(name="new-key")
@with_json
def new_key(*, as_json: bool) -> None:
    """Print a bootstrap key, and the setting that has the service accept it.

    The settings hold only its hash. Remove it when other callers have been set up.
    """
    key = secrets.token_urlsafe(32)
    digest = hashlib.sha256(key.encode()).hexdigest()
    print_record(
        "Key created.",
        {"key": key, "setting": f'bootstrap_key_hash = "{digest}"'},
        as_json=as_json,
        then="The key is shown only once: store it in a safe place. Put the setting below [admin] "
        "and restart the service;\nthen set FHIRPUB_ADMIN_KEY to the key, and FHIRPUB_ADMIN_URL "
        "to the URL.",
    )


@admin.command(name="new-caller")
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=".",
    metavar="FOLDER",
    help="Folder for both files; default: the working directory.",
)
@with_json
def new_caller(name: str, folder: Path, *, as_json: bool) -> None:
    """Create a key pair for a caller: NAME.key.json and NAME.jwks.json.

    The first is the private key, for --admin-key or another client that signs assertions; the
    service needs only the second.
    """
    if _NAME.fullmatch(name) is None:
        rule = "must be 1 to 64 letters, digits, dots, hyphens and underscores"
        raise click.BadParameter(rule, param_hint="NAME")
    private, public = new_key_pair()
    files = folder / f"{name}.key.json", folder / f"{name}.jwks.json"
    for file in files:
        if file.exists():
            raise click.ClickException(f"{file} exists: remove it, or choose another name")
    _write(files[0], {"name": name, **private}, _PRIVATE)
    _write(files[1], public, _PUBLIC)
    setting = f'callers = ["{name}={files[1].resolve()}"]'
    print_record(
        "Key pair created.",
        {"private_key": str(files[0]), "public_keys": str(files[1]), "setting": setting},
        as_json=as_json,
        then="Put the setting below [admin] and restart the service. To replace the key, change "
        "the file of the public keys; it is\nread again at each request for a token.",
    )


def _write(file: Path, value: object, mode: int) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
        stream.write(dumps(value) + b"\n")
