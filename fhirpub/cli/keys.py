"""``fhirpub keys``: the keys that sign access tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click

from fhirpub.app.changes import recorded
from fhirpub.app.stores import open_store
from fhirpub.auth import keys as key_ring
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import Record, print_record, print_table
from fhirpub.config.settings import Config
from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.contract import SigningKey


@click.group()
def keys() -> None:
    """List and rotate the keys that sign access tokens."""


@keys.command(name="list")
@with_config
@with_json
def list_(config: Config, *, as_json: bool) -> None:
    """List the keys of this environment, oldest first, without their private parts."""
    records = [_record(key) for key in asyncio.run(_all(config))]
    print_table(
        records, as_json=as_json, empty="No keys yet: the first `fhirpub serve` creates one"
    )


@keys.command()
@with_config
@with_json
def rotate(config: Config, *, as_json: bool) -> None:
    """Create a new signing key; tokens of the previous one stay valid until they expire.

    Running services use the new key within half a minute, without a restart.
    """
    print_record("Key rotated.", _record(asyncio.run(_rotate(config))), as_json=as_json)


async def _rotate(config: Config) -> SigningKey:
    async with open_store(config) as store, recorded(config, store, "key.rotate") as doing:
        new = await key_ring.rotate(store, config.auth, clock=now_ms)
        doing.name("Key", new.kid)
        return new


async def _all(config: Config) -> Sequence[SigningKey]:
    async with open_store(config) as store:
        return await store.signing_keys(config.auth.environment)


def _record(each: SigningKey) -> Record:
    return {
        "kid": each.kid,
        "algorithm": each.algorithm,
        "environment": each.environment,
        "created": instant(each.created),
        "retired": None if each.retired is None else instant(each.retired),
    }
