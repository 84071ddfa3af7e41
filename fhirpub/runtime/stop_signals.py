"""SIGTERM and SIGINT: the first ends the process in order, later ones change nothing."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

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
    with _wake_at_signals(), handle_stop_signals(stop.set):
        yield stop


@contextmanager
def _wake_at_signals() -> Generator[None, None, None]:
    """Wake the running loop at every signal: Python runs handlers only between two steps."""
    loop = asyncio.get_running_loop()
    reading, writing = socket.socketpair()
    with reading, writing:
        for end in (reading, writing):
            end.settimeout(0)
        loop.add_reader(reading, reading.recv, 4096)
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            loop.remove_reader(reading)


def run_until_stopped(work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run ``work`` in an event loop; it gets the event that SIGTERM or SIGINT sets."""

    async def run() -> None:
        with stop_event() as stop:
            await work(stop)

    asyncio.run(run())
