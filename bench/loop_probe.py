"""Infers how long the event loop of the service is held: a GET /health/live every 2 ms.

A child (see ``bench.children``). The request does almost nothing, so that it takes as long as the
event loop is held by others. It also takes as long as the machine keeps the service or this
process waiting for a core: compare it with the idle phase.

When the parent ends, the probe ends the service as well: a parent that was killed leaves nothing
behind but a folder in /tmp.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from bench.baseline import LOOPBACK
from bench.children import read_setup, run_phases

_EVERY_SECONDS = 0.002
_PATIENCE_SECONDS = 30.0
_ADDRESS = "127.0.0.3"
_REQUEST = b"GET /health/live HTTP/1.1\r\nHost: probe\r\n\r\n"


class Probe:
    """One connection, and the latencies of its polls in seconds."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.latencies: list[float] = []
        self.lost = 0
        self._connection: socket.socket | None = None

    def run(self, seconds: float) -> None:
        """Poll at each due time. One that passes during a poll counts with its own delay."""
        self.latencies, self.lost = [], 0
        due = time.perf_counter()
        until = due + seconds
        while due < until:
            time.sleep(max(0.0, due - time.perf_counter()))
            try:
                self._poll()
            except OSError:
                self.lost += 1
                self._connection = None
            now = time.perf_counter()
            while due < min(now, until):
                self.latencies.append(now - due)
                due += _EVERY_SECONDS

    def _poll(self) -> None:
        if self._connection is None:
            address, source = (LOOPBACK, self.port), (_ADDRESS, 0)
            self._connection = socket.create_connection(address, _PATIENCE_SECONDS, source)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.sendall(_REQUEST)
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = self._connection.recv(65_536)
            if not piece:
                raise ConnectionResetError
            answer += piece
        if not answer.startswith(b"HTTP/1.1 200"):
            raise ConnectionResetError


def percentile_ms(values: Sequence[float], share: float) -> float:
    """Return a percentile of seconds in milliseconds; 0 without any."""
    ordered = sorted(values)
    place = min(int(share * len(ordered)), len(ordered) - 1)
    return round(ordered[place] * 1000, 2) if ordered else 0.0


def main() -> None:
    setup = read_setup()
    # Each connection belongs to one worker: with several, some connections probe each of them.
    probes = [Probe(setup["port"]) for _ in range(setup["connections"])]

    def phase(seconds: float) -> dict[str, Any]:
        threads = [threading.Thread(target=probe.run, args=(seconds,)) for probe in probes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [latency for probe in probes for latency in probe.latencies]
        return {
            "max_ms": percentile_ms(found, 1.0),
            "p99_ms": percentile_ms(found, 0.99),
            "p50_ms": percentile_ms(found, 0.5),
            "polls": len(found),
            "lost": sum(probe.lost for probe in probes),
        }

    try:
        run_phases(phase)
    finally:
        # The parent has ended, perhaps without stopping the service that it started.
        with suppress(ProcessLookupError):
            os.killpg(setup["service"], signal.SIGKILL)


if __name__ == "__main__":
    main()
