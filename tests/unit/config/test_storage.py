"""The store is a file below the working directory unless the settings differ."""

from __future__ import annotations

import dataclasses

from fhirpub.config.storage import StorageConfig


def test_the_store_is_a_file_without_named_keys_unless_set() -> None:
    assert dataclasses.asdict(StorageConfig()) == {
        "url": "sqlite:///fhirpub-data/fhirpub.db",
        "keys_file": "",
        "deadline_seconds": 10.0,
    }
