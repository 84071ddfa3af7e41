"""The workloads: what each sends, the response that it must get, and what it is compared with."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from bench.payloads import (
    MEGABYTE,
    SMALL_DOCUMENT,
    Caller,
    RegisterRequests,
    Request,
    read_request,
    search_request,
    update_requests,
)


@dataclass(frozen=True, slots=True)
class Stock:
    """Reports that were registered before the clock starts."""

    serials: range
    ids: list[str]


@dataclass(frozen=True, slots=True)
class Session:
    """One run of the generator: its caller, its server, and the reports that exist already."""

    caller: Caller
    on_floor: bool
    stock: Stock
    fresh: Iterator[int] = field(default_factory=itertools.count)


Streams = Callable[[Session, int], list[Iterator[Request]]]
"""Returns an endless stream of requests for each of a number of connections."""


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of request."""

    title: str
    status: int
    floor: Literal["GET", "POST"]
    streams: Streams
    stock: Literal["none", "many", "one a connection"] = "none"
    most: int = 1_000_000
    """The maximum number of requests of one run, so that its disk and memory stay bounded."""
    driver: Literal["", "insert", "find"] = ""
    """The operation of MongoDB's driver to compare with, or nothing."""


def registering(document_bytes: int, *, results: int = 0, indent: int | None = None) -> Streams:
    """Register new reports, each with a number of results, compact or indented."""

    def streams(session: Session, connections: int) -> list[Iterator[Request]]:
        body = RegisterRequests(session.caller, document_bytes, results=results, indent=indent)
        return [map(body.request, session.fresh) for _ in range(connections)]

    return streams


def _resubmitting(session: Session, connections: int) -> list[Iterator[Request]]:
    body = RegisterRequests(session.caller, SMALL_DOCUMENT)
    return _drawn([body.request(serial) for serial in session.stock.serials], connections)


def _reading(session: Session, connections: int) -> list[Iterator[Request]]:
    requests = [read_request(session.caller, report_id) for report_id in session.stock.ids]
    return _drawn(requests, connections)


def _searching(session: Session, connections: int) -> list[Iterator[Request]]:
    requests = [search_request(session.caller, serial) for serial in session.stock.serials]
    return _drawn(requests, connections)


def _updating(*, conditional: bool) -> Streams:
    def streams(session: Session, connections: int) -> list[Iterator[Request]]:
        method = "POST" if session.on_floor else "PATCH"
        return [
            update_requests(session.caller, report_id, method=method, conditional=conditional)
            for report_id in session.stock.ids[:connections]
        ]

    return streams


def _drawn(requests: list[Request], connections: int) -> list[Iterator[Request]]:
    """Draw from the same requests in another random order on every connection."""
    return [itertools.cycle(random.sample(requests, len(requests))) for _ in range(connections)]


WORKS: dict[str, Work] = {
    "register": Work("register, 3 KB", 201, "POST", registering(SMALL_DOCUMENT), driver="insert"),
    "register-indented": Work(
        "register, 3 KB, indented", 201, "POST", registering(SMALL_DOCUMENT, indent=2)
    ),
    "panel": Work(
        "register with 40 results", 201, "POST", registering(SMALL_DOCUMENT, results=40)
    ),
    "resubmit": Work("resubmit, 3 KB", 201, "POST", _resubmitting, stock="many"),
    "read": Work("read by id", 200, "GET", _reading, stock="many", driver="find"),
    "search": Work("search by identifier", 200, "GET", _searching, stock="many"),
    "patch": Work("PATCH", 204, "POST", _updating(conditional=False), stock="one a connection"),
    "patch-if-match": Work(
        "PATCH with If-Match", 204, "POST", _updating(conditional=True), stock="one a connection"
    ),
    "register-1mb": Work(
        "register, 1 MB document", 201, "POST", registering(MEGABYTE), most=1_500
    ),
    "register-5mb": Work(
        "register, 5 MB document", 201, "POST", registering(5 * MEGABYTE), most=300
    ),
}
