"""Signed statements about a chain: what it was at a moment, and what of it was deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

TYPE = "fhirpub-audit+jwt"
"""The ``typ`` of a checkpoint, which is therefore no access token (RFC 8725, section 3.11)."""

Sign = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Returns a compact JWS of claims, with ``typ`` set to `TYPE`."""
Read = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Returns the claims of a JWS whose signature is right; raises ValueError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The chain of a tenant up to a block.

    Attributes:
        tenant: The tenant; empty for the chain of the service.
        number: The number of the block.
        hash: The hash of the chain after its last record.
        at: When it was signed, in milliseconds.
        deleted: Whether the records up to here were deleted since their retention had ended.
    """

    tenant: str
    number: int
    hash: bytes
    at: int
    deleted: bool = False

    def claims(self) -> dict[str, Any]:
        """Return the claims to sign."""
        return {
            "tenant": self.tenant,
            "block": self.number,
            "hash": self.hash.hex(),
            "iat": self.at // 1000,
            "deleted": self.deleted,
        }


def checkpoint_of(claims: Mapping[str, Any]) -> Checkpoint:
    """Return the checkpoint of verified claims; raises ValueError for claims that are none."""
    try:
        return Checkpoint(
            tenant=str(claims["tenant"]),
            number=int(claims["block"]),
            hash=bytes.fromhex(claims["hash"]),
            at=int(claims["iat"]) * 1000,
            deleted=bool(claims["deleted"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError("not the claims of a checkpoint") from error
