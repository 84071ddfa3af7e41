"""All abuses by name, in the order in which they run."""

from __future__ import annotations

from bench.abuses import (
    audit_events,
    batches,
    compressed_bodies,
    connections,
    control,
    panels,
    queries,
    valid_bodies,
    webhooks,
    wrong_bodies,
)
from bench.abuses.attack import REGISTERED, Abuse

MODULES = (
    *(wrong_bodies, valid_bodies, batches, compressed_bodies, queries, panels, connections),
    *(audit_events, webhooks),
    control,
)
ABUSES: dict[str, Abuse] = {
    name: abuse
    for module in MODULES
    for name, abuse in REGISTERED.items()
    if abuse.run.__module__ == module.__name__
}

__all__ = ["ABUSES", "Abuse"]
