"""How a value that is encrypted at rest begins, so that it is never used as if it were clear."""

from __future__ import annotations

from fhirpub.errors import SecretsUnavailable
from fhirpub.problems import RequestProblem

MARK = b"fhirpub-sealed:"


class SaltUnavailable(SecretsUnavailable):
    """The salt of a tenant is encrypted under a key that is not here, or was damaged."""

    details = RequestProblem.TENANT_UNAVAILABLE
    text = "this tenant cannot be served at the moment: the operator has to restore its key"


def is_sealed(value: bytes) -> bool:
    """Return whether a value is encrypted: it could not be decrypted where it was read."""
    return value.startswith(MARK)
