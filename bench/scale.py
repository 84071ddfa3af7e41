"""What searches cost when a store is large: CPU of the service and of the database for one page.

A new store is loaded by batches with reports of many patients, times and codes: of nine in ten
the status is final, each of 200 codes stands in one of 200. Each search is then sent several times
over one connection. The figures are milliseconds of CPU for the first page of 20, without a total
and with the one that is counted by default.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
from collections.abc import Iterator
from random import Random
from time import monotonic
from typing import Any
from urllib.parse import quote

from bench.baseline import LOOPBACK
from bench.cpu import cpu_seconds
from bench.payloads import REPORTS, SMALL_DOCUMENT, Caller, RegisterRequests
from bench.targets import DEFAULT_STORAGE_URL, Target, mongodb, service
from bench.wire import Wire

_PER_BATCH, _CONNECTIONS, _PAGE = 200, 4, 20
_PATIENTS_SHARE = 10
"""So many reports has a patient."""
_REPEATED = 10
"""The system counts CPU in hundredths of a second."""
_CODE, _PATIENT = "1007-0", "http://hl7.org/fhir/sid/uy|P-0000007"
SEARCHES = (
    "",
    "status=final",
    "status=preliminary",
    f"code={_CODE}",
    "category=HM",
    "date=ge2026-01-01",
    "date=2024-05",
    "issued=ge2024-01-01",
    f"patient.identifier={quote(_PATIENT, safe='')}",
    f"status=final&code={_CODE}",
    f"code={_CODE}&status=final",
    f"status=preliminary&code={_CODE}",
    f"patient.identifier={quote(_PATIENT, safe='')}&code={_CODE}",
    f"patient.identifier={quote(_PATIENT, safe='')}&date=ge2024-01-01",
    "category=HM&date=ge2026-01-01",
    "date=2024-05&category=HM",
    "status=final&_sort=date",
)


class Bodies:
    """Creates the bodies of registrations."""

    def __init__(self, caller: Caller) -> None:
        self._requests = RegisterRequests(caller, SMALL_DOCUMENT)

    def body(self, serial: int) -> dict[str, Any]:
        """Return the body of a report; always the same."""
        random = Random(serial)
        request = b"".join(self._requests.request(serial))
        body: dict[str, Any] = json.loads(request.partition(b"\r\n\r\n")[2])
        patient, _organization, report = (entry["resource"] for entry in body["parameter"])
        patient["identifier"][0]["value"] = (
            f"P-{random.randrange(serial // _PATIENTS_SHARE + 9):07}"
        )
        report["status"] = random.choices(["final", "preliminary", "partial"], [90, 1, 9])[0]
        report["code"]["coding"][0]["code"] = f"{1000 + random.randrange(200)}-0"
        report["category"][0]["coding"][0]["code"] = random.choice(["HM", "CH", "MB"])
        month, date = random.randrange(1, 13), random.randrange(1, 29)
        day = f"{random.randrange(2023, 2027)}-{month:02}-{date:02}"
        report["effectiveDateTime"], report["issued"] = f"{day}T08:30:00Z", f"{day}T12:00:00Z"
        return body


async def load(target: Target, serials: Iterator[int]) -> None:
    """Register reports by batches, over several connections."""
    caller = Caller(f"{LOOPBACK}:{target.port}", target.token)
    bodies = Bodies(caller)
    request = {"method": "POST", "url": "DiagnosticReport/$register"}

    async def send_some() -> None:
        with await Wire.open(target.port, source=LOOPBACK) as wire:
            while some := [*itertools.islice(serials, _PER_BATCH)]:
                entries = [{"resource": bodies.body(one), "request": request} for one in some]
                batch = {"resourceType": "Bundle", "type": "batch", "entry": entries}
                raw = json.dumps(batch, separators=(",", ":")).encode()
                await wire.send(caller.head("POST", "/fhir/r4", length=len(raw)) + raw)
                status, _head = await wire.answer()
                if status != 200:
                    raise RuntimeError(f"status {status}")

    await asyncio.gather(*(send_some() for _ in range(_CONNECTIONS)))


async def measure(target: Target, search: str, rounds: int, database: int | None) -> str:
    """Return the status of a search, and its least CPU for service and database."""
    caller = Caller(f"{LOOPBACK}:{target.port}", target.token)
    head = caller.head("GET", f"{REPORTS}?{search}&_count={_PAGE}")
    pids = [target.pid, *([database] if database else [])]
    costs: list[list[float]] = []
    seconds = []
    status = 0
    with await Wire.open(target.port, source=LOOPBACK) as wire:
        for _ in range(rounds + 1):
            before, began = [cpu_seconds(pid) for pid in pids], monotonic()
            for _ in range(_REPEATED):
                await wire.send(head)
                status, _head = await wire.answer()
            seconds.append((monotonic() - began) / _REPEATED)
            spent = [cpu_seconds(pid) - since for pid, since in zip(pids, before, strict=True)]
            costs.append([one / _REPEATED * 1e3 for one in spent])
    least = [min(column) for column in zip(*costs[1:], strict=True)]
    figures = "".join(f"{one:9.1f}" for one in least)
    return f"{status:6}{figures}{statistics.median(seconds[1:]) * 1e3:9.1f}"


async def run(target: Target, options: argparse.Namespace, database: int | None) -> None:
    """Load in steps, and print what each search costs at each size."""
    serials = itertools.count()
    at = 0
    for size in options.reports:
        began, before = monotonic(), cpu_seconds(target.pid)
        await load(target, iter([next(serials) for _ in range(size - at)]))
        spent = (cpu_seconds(target.pid) - before) / (size - at) * 1e6
        print(f"{size:,} reports, loaded in {monotonic() - began:.0f} s, {spent:.0f} us each")
        at = size
        names = ["status", "service", *(["database"] if database else []), "ms"]
        print(f"{'':58}" + "".join(f"{name:>9}" for name in names)[3:])
        for search in options.searches or SEARCHES:
            for total in ("&_total=none", ""):
                found = await measure(target, search + total, options.rounds, database)
                print(f"{(search + total).lstrip('&')[:57]:58}{found}", flush=True)


def main() -> None:
    """Load, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--searches", nargs="+", help="queries, in place of the usual ones")
    parser.add_argument("--mongodb", action="store_true", help="on the server that the tests use")
    options = parser.parse_args()
    if options.mongodb:
        with mongodb() as server, service("scale", storage_url=server.url("scale")) as target:
            asyncio.run(run(target, options, server.members[0].pid))
        return
    with service("scale", storage_url=DEFAULT_STORAGE_URL) as target:
        asyncio.run(run(target, options, None))


if __name__ == "__main__":
    main()
