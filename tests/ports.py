"""Ports without a listener."""

from __future__ import annotations

import socket
from contextlib import ExitStack

_HOST = "127.0.0.1"
_HIGHEST = 60_000


def free_port() -> int:
    """Return a free port."""
    return free_ports(1)


def free_ports(count: int) -> int:
    """Return the first of ``count`` consecutive free ports."""
    while True:
        with ExitStack() as stack:
            first = _bound(stack, 0)
            if first < _HIGHEST and all(_bound(stack, first + n) for n in range(1, count)):
                return first


def _bound(stack: ExitStack, port: int) -> int:
    """Bind a port until the stack is closed; return it, or 0 if it is in use."""
    listening = stack.enter_context(socket.socket())
    try:
        listening.bind((_HOST, port))
    except OSError:
        return 0
    bound: int = listening.getsockname()[1]
    return bound
