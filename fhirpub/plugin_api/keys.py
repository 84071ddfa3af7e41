"""A service outside the store that protects the keys of a store, such as a KMS or an HSM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyProvider:
    """Wraps the keys that encrypt the secrets in a store (envelope encryption).

    The file of keys then holds only wrapped keys. A process unwraps each of them once, when it
    starts or when it finds a new one in the file, and keeps it in memory. Both functions are
    called in a thread, or before the service starts. They block, limit their own time, and raise
    any exception if they fail. Of an exception only the class is reported, never the text.

    Attributes:
        name: The name in front of each key that it has wrapped: lower-case letters, digits and
            hyphens. It must not change, since it selects the provider of a line.
        wrap: Returns a key of 32 bytes in a form that only `unwrap` can read.
        unwrap: Returns the key again.
    """

    name: str
    wrap: Callable[[bytes], bytes]
    unwrap: Callable[[bytes], bytes]
