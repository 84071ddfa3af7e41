"""Announces the file of a key that a command has created, of which the operator needs a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from fhirpub.app.stores import key_file
from fhirpub.config.settings import Config


@contextmanager
def announcing_new_key(config: Config) -> Iterator[None]:
    """Print where the key of the store is, if it was created within the block."""
    key = key_file(config)
    is_new = key is not None and not key.exists()
    yield
    if is_new and key is not None and key.exists():
        click.echo(f"Created {key}, the key of the secrets in the store: keep a copy.", err=True)
