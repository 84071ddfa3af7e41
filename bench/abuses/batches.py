"""Abuses by batches of as many entries as one may have."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from bench.abuses import bodies
from bench.abuses.attack import Attack, Phases, Requests, abuse
from bench.payloads import REPORTS
from fhirpub.fhir.strict_json import dumps

_BASE, _, _TYPE = REPORTS.rpartition("/")
_ENTRIES, _MOST = 500, 1_000
_STOCK = 1_000


def _batch(entries: list[bytes]) -> bytes:
    return b'{"resourceType":"Bundle","type":"batch","entry":[%b]}' % b",".join(entries)


def _entry(method: str, url: str, resource: bytes = b"") -> bytes:
    request = dumps({"method": method, "url": url})
    with_resource = b'"resource":%b,' % resource if resource else b""
    return b'{%b"request":%b}' % (with_resource, request)


def _registrations(attack: Attack, **changes: Any) -> Requests:
    """Yield batches of registrations, each with an identifier of its own."""
    body, serials = bodies.registration(**changes), itertools.count()

    def entries() -> Iterator[bytes]:
        for serial in itertools.islice(serials, _ENTRIES):
            yield _entry("POST", f"{_TYPE}/$register", b"".join(body.numbered(serial)))

    return (next(attack.post(_BASE, _batch([*entries()]))) for _ in itertools.count())


@abuse(200)
async def batches_of_500(attack: Attack) -> Phases:
    """Sends batches of 500 registrations."""
    yield
    await attack.flood(_registrations(attack))


@abuse(200)
async def batches_of_wrong_entries(attack: Attack) -> Phases:
    """Sends batches of 500 registrations, each of which is wrong in several places."""
    yield
    await attack.flood(_registrations(attack, status="lost", code=1, category={}, issued="x"))


@abuse(200)
async def batches_of_searches(attack: Attack) -> Phases:
    """Sends batches of 1,000 searches of 1,000 reports, sorted and with an exact total."""
    await attack.register(bodies.registration(), _STOCK)
    search = f"{_TYPE}?status=final&_sort=category,-issued&_total=accurate&_count=20"
    yield
    await attack.flood(attack.post(_BASE, _batch([_entry("GET", search)] * _MOST)))


@abuse(200)
async def batches_of_unknown_addresses(attack: Attack) -> Phases:
    """Sends batches of 1,000 reads of addresses that do not exist."""
    yield
    await attack.flood(attack.post(_BASE, _batch([_entry("GET", "Diagnosticreprt/1")] * _MOST)))
