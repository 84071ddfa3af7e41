"""The settings of the store."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.config.reader import setting as _setting


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig:
    """The store, which holds all data."""

    url: str = _setting(
        "sqlite:///fhirpub-data/fhirpub.db",
        "URL of the store: sqlite:///relative/path.db, sqlite:////absolute.db, or "
        "mongodb://host/database, with ?replicaSet=name for a replica set and without it for a "
        "sharded cluster. Many machines can share a MongoDB store.",
    )
    keys_file: str = _setting(
        "",
        "File of the keys that encrypt signing keys, tenants' salts and secrets of endpoints, one "
        "per line, each as `fhirpub secrets new-key` prints it. The first encrypts, all decrypt. "
        "FHIRPUB_STORE_KEYS in the environment takes precedence. If both are empty, a key file is "
        "created next to a SQLite store; on MongoDB signing keys and salts are stored in clear, "
        "and endpoints are refused.",
    )
    deadline_seconds: float = _setting(
        10.0,
        "Maximum time in seconds that a request waits for the store. After it the client gets 503 "
        "and may repeat the request.",
    )
