"""SIGTERM and SIGINT: the first ends the process in order, later ones change nothing."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def handle_stop_signals(stop: Callable[[], object]) -> Generator[None, None, None]:
    """Call ``stop`` at every SIGTERM and SIGINT within the block; ignore them after it.

    The block ends when the process is about to end. asyncio removes its handlers before, when it
    closes its loop, and Python removes all handlers: a stop that arrived then would end the
    process with the status of a killed one.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, lambda _number, _frame: stop())
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def stop_event() -> Generator[asyncio.Event, None, None]:
    """Yield an event that SIGTERM or SIGINT sets; ignore both after the block."""
    stop = asyncio.Event()
    # A handler runs between any two steps of the loop's own code. `stop.set` there would be lost
    # between the check and the registration in `stop.wait`, which then waits for ever.
    set_in_loop = partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set)
    with _wake_at_signals(), handle_stop_signals(set_in_loop):
        yield stop


@contextmanager
def _wake_at_signals() -> Generator[None, None, None]:
    """Wake the running loop at every signal."""
    loop = asyncio.get_running_loop()
    with note_signals() as noted:
        loop.add_reader(noted, noted.recv, 4096)
        try:
            yield
        finally:
            loop.remove_reader(noted)


@contextmanager
def note_signals() -> Generator[socket.socket, None, None]:
    """Yield a socket that gets a byte at every signal that has a handler.

    Python runs handlers only between two steps. A signal just before a system call that waits
    does not interrupt it, so what waits for signals waits for this socket.
    """
    reading, writing = socket.socketpair()
    with reading, writing:
        for end in (reading, writing):
            end.settimeout(0)
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        try:
            yield reading
        finally:
            signal.set_wakeup_fd(-1)


def run_until_stopped(work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run ``work`` in an event loop; it gets the event that SIGTERM or SIGINT sets."""

    async def run() -> None:
        with stop_event() as stop:
            await work(stop)

    asyncio.run(run())
