"""Loading by batches against single registrations, in turns on one service.

Each phase sends new registrations over the same number of connections for some seconds: alone, or
so many in a batch. The figures are registrations a second, and the microseconds of CPU that the
service and its children took for each, which depend less on what else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from time import monotonic

from bench.baseline import LOOPBACK
from bench.cpu import cpu_seconds
from bench.payloads import SMALL_DOCUMENT, Caller, RegisterRequests
from bench.targets import DEFAULT_STORAGE_URL, Target, service
from bench.wire import Wire

_BASE, _REGISTER = "/fhir/r4", "DiagnosticReport/$register"


class Requests:
    """Creates requests with new registrations."""

    def __init__(self, target: Target) -> None:
        self._caller = Caller(f"{LOOPBACK}:{target.port}", target.token)
        self._single = RegisterRequests(self._caller, SMALL_DOCUMENT)
        self._serials = itertools.count()

    def take(self, size: int) -> bytes:
        """Return a request with ``size`` registrations; 0 means a single request."""
        every = [b"".join(self._single.request(next(self._serials))) for _ in range(size or 1)]
        return self._batch(every) if size else every[0]

    def _batch(self, requests: Sequence[bytes]) -> bytes:
        request = json.dumps({"method": "POST", "url": _REGISTER}, separators=(",", ":")).encode()
        entries = b",".join(
            b'{"resource":%b,"request":%b}' % (one.partition(b"\r\n\r\n")[2], request)
            for one in requests
        )
        body = b'{"resourceType":"Bundle","type":"batch","entry":[%b]}' % entries
        return self._caller.head("POST", _BASE, length=len(body)) + body


async def phase(target: Target, requests: Requests, size: int, options: argparse.Namespace) -> int:
    """Send requests until the time is over, and return how many registrations were answered."""
    until = monotonic() + options.seconds
    answered = 0

    async def one() -> None:
        nonlocal answered
        with await Wire.open(target.port, source=LOOPBACK) as wire:
            while monotonic() < until:
                await wire.send(requests.take(size))
                status, _head = await wire.answer()
                if status != (200 if size else 201):
                    raise RuntimeError(f"status {status}")
                answered += size or 1

    await asyncio.gather(*(one() for _ in range(options.connections)))
    return answered


async def measure(target: Target, options: argparse.Namespace) -> None:
    """Run the phases in turns, and print the median of each."""
    requests = Requests(target)
    rates, costs = defaultdict(list), defaultdict(list)
    for turn in range(options.rounds + 1):
        for size in options.sizes:
            began, cpu = monotonic(), cpu_seconds(target.pid)
            answered = await phase(target, requests, size, options)
            seconds = monotonic() - began
            if turn:  # the first is for warming up
                rates[size].append(answered / seconds)
                costs[size].append((cpu_seconds(target.pid) - cpu) / answered * 1e6)
    single = statistics.median(rates[0]) if rates[0] else 0.0
    for size in options.sizes:
        rate, cost = statistics.median(rates[size]), statistics.median(costs[size])
        name = f"batches of {size}" if size else "single requests"
        times = f"  {rate / single:.2f} times" if size and single else ""
        print(f"{name:16}{rate:9.0f}/s{cost:9.0f} us CPU{times}")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storage-url", default=DEFAULT_STORAGE_URL)
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 50, 100])
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with service("batches", storage_url=options.storage_url) as target:
        asyncio.run(measure(target, options))


if __name__ == "__main__":
    main()
