"""How a value that is encrypted at rest begins, so that it is never used as if it were clear."""

from __future__ import annotations

MARK = b"fhirpub-sealed:"


def is_sealed(value: bytes) -> bool:
    """Return whether a value is encrypted: it could not be decrypted where it was read."""
    return value.startswith(MARK)
