"""The file descriptors of a process, and how many of them connections may take."""

from __future__ import annotations

import resource

RESERVED_DESCRIPTORS = 256
"""Kept for the store, receivers of webhooks, metrics, logs and the libraries' own files."""
_MIN_CONNECTIONS = 64


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one, and return it (setrlimit(2))."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # some systems have a lower maximum than their hard limit
            return soft
    return hard


def usable_connections(wanted: int) -> int:
    """Return how many connections may be open: fewer than wanted if descriptors are few."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(_MIN_CONNECTIONS, soft - RESERVED_DESCRIPTORS))
