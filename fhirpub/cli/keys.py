"""``fhirpub keys``: the keys that sign access tokens."""

from __future__ import annotations

import click

from fhirpub.administration import keys as operations
from fhirpub.cli.administration.target import Target, with_target
from fhirpub.cli.options import with_json
from fhirpub.cli.printing import print_record, print_table


@click.group()
def keys() -> None:
    """List and rotate the keys that sign access tokens."""


@keys.command(name="list")
@with_target
@with_json
def list_(target: Target, *, as_json: bool) -> None:
    """List the keys of this environment, oldest first, without their private parts."""
    records = target.call(operations.LIST)
    empty = "No keys yet: the first `fhirpub check` or `fhirpub serve` creates one"
    print_table(records, as_json=as_json, empty=empty)


@keys.command()
@with_target
@with_json
def rotate(target: Target, *, as_json: bool) -> None:
    """Create a new signing key; tokens of the previous one stay valid until they expire.

    Running services use the new key within half a minute, without a restart.
    """
    print_record("Key rotated.", target.call(operations.ROTATE), as_json=as_json)
