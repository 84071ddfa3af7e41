"""Ports that are free, or refuse connections."""

from __future__ import annotations

import itertools
import os
import socket
from contextlib import ExitStack

_HOST = "127.0.0.1"
_TRIES = 1_000
_STEP = 4
_PLACES = range(10_000, 32_000, _STEP)
_FIRSTS = itertools.islice(itertools.cycle(_PLACES), os.getpid() * 97 % len(_PLACES), None)


def free_port() -> int:
    """Return a free port."""
    return free_ports(1)


def free_ports(count: int) -> int:
    """Return the first of ``count`` consecutive free ports, none of which was returned before.

    They are below those that the system gives to connections, which would be taken before they are
    used, and in a place that no other process of the tests is likely to begin at.
    """
    for _ in range(_TRIES):
        first = next(_FIRSTS)
        with ExitStack() as stack:
            if all(_bound(stack, first + n) for n in range(count)):
                return first
    raise RuntimeError("no free ports")


def is_refused(port: int) -> bool:
    """Return whether connections to a port are refused."""
    try:
        socket.create_connection((_HOST, port)).close()
    except ConnectionRefusedError:
        return True
    return False


def _bound(stack: ExitStack, port: int) -> int:
    """Bind a port until the stack is closed; return it, or 0 if it is in use."""
    listening = stack.enter_context(socket.socket())
    try:
        listening.bind((_HOST, port))
    except OSError:
        return 0
    bound: int = listening.getsockname()[1]
    return bound
