"""Notices that a command has created the key of a store, of which the operator needs a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fhirpub.app.stores import key_file
from fhirpub.config.settings import Config


@contextmanager
def noticing_new_key(config: Config) -> Iterator[list[str]]:
    """Yield a list to which a note for the operator is added if the block creates the key."""
    key = key_file(config)
    is_new = key is not None and not key.exists()
    notes: list[str] = []
    yield notes
    if is_new and key is not None and key.exists():
        notes.append(f"Created {key}, the key of the secrets in the store: keep a copy.")
