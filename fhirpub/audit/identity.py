"""The id of an AuditEvent: where its record stands in the chain of the tenant."""

from __future__ import annotations

import re

_ID = re.compile(r"([0-9a-f]{12})-([1-9][0-9]{0,17})-(0|[1-9][0-9]{0,8})")


def id_of(prefix: str, block: int, place: int) -> str:
    """Return the id of an event: what the ids of the tenant begin with, the block, the place."""
    return f"{prefix}-{block}-{place}"


def place_of(event_id: str, prefix: str) -> tuple[int, int] | None:
    """Return the block and the place in it that an id stands for, if it is of this tenant."""
    match = _ID.fullmatch(event_id)
    return (int(match[2]), int(match[3])) if match and match[1] == prefix else None
