"""Abuses by reads, searches, histories and updates of what the tenant has registered."""

from __future__ import annotations

import asyncio
import hashlib
import os
from functools import partial

from bench.abuses import bodies
from bench.abuses.attack import CONNECTIONS, FHIR_XML, Attack, NotPrepared, Phases, abuse
from bench.abuses.bodies import RESOURCE, SMALL
from bench.payloads import REPORTS
from fhirpub.fhir.strict_json import dumps

_STOCK = 3_000
_PAGE = 100
_VERSIONS = 300
_READERS = 64
_BYTE_SECONDS = 0.1
_DOCUMENT = 5_000_000
_FORM = "application/x-www-form-urlencoded"
_JSON_PATCH = "application/json-patch+json"


@abuse(200)
async def reads(attack: Attack) -> Phases:
    """Reads one report of 3 KB: no abuse, for comparison."""
    (path,) = await attack.register(bodies.registration())
    yield
    await attack.flood(attack.get(path))


@abuse(200, 422)
async def searches_by_99_dates(attack: Attack) -> Phases:
    """Searches 3,000 reports by 99 times date=ne, sorted by five keys, with an exact total."""
    await attack.register(bodies.registration(), _STOCK)
    dates = "&".join(f"date=ne19{number:02}-01-01" for number in range(99))
    order = "_sort=category,code,-date,issued,_lastUpdated&_total=accurate&_count=100"
    yield
    await attack.flood(attack.get(f"{REPORTS}?{dates}&{order}"))


@abuse(200, 422)
async def searches_by_9000_codes(attack: Attack) -> Phases:
    """Searches 3,000 reports by a list of 9,000 codes."""
    await attack.register(bodies.registration(), _STOCK)
    codes = ",".join(str(number) for number in range(100_000, 109_000))
    form = f"code={codes}&_total=accurate".encode()
    yield
    await attack.flood(attack.post(f"{REPORTS}/_search", form, media_type=_FORM))


@abuse(200, 422)
async def patients_counted(attack: Attack) -> Phases:
    """Searches the patients of 3,000 reports by how a name begins, with an exact total."""
    await attack.register(bodies.registration(), _STOCK)
    yield
    await attack.flood(attack.get("/fhir/r4/Patient?name=a,j&_total=accurate&_count=100"))


@abuse(200)
async def searches_with_includes(attack: Attack) -> Phases:
    """Searches pages of 100 reports of 60 KB with all their patients and organizations."""
    await attack.register(bodies.registration(**bodies.extensions(SMALL - 2_500)), _PAGE)
    yield
    await attack.flood(attack.get(f"{REPORTS}?_include=*&_count=100&_sort=-date"))


@abuse(200)
async def histories_of_300_versions(attack: Attack) -> Phases:
    """Lists pages of 100 of a report of 30 KB with 300 versions."""
    (path,) = await attack.register(bodies.registration(**bodies.extensions(SMALL // 2)))
    for number in range(_VERSIONS):
        update = {"resourceType": "DiagnosticReport", "conclusion": f"Revision {number}"}
        status, _head = await attack.send_once("PATCH", path, update)
        if status != 204:
            raise NotPrepared(f"status {status}")
    yield
    await attack.flood(attack.get(f"{path}/_history?_count=100"))


@abuse(204, 503)
async def json_patches_of_1000(attack: Attack) -> Phases:
    """Updates reports of 7 MB by JSON Patch with 1,000 operations, one per connection."""
    paths = await attack.register(
        bodies.registration(**bodies.extensions(RESOURCE - 1_000_000)), CONNECTIONS
    )
    body = dumps(bodies.patch_operations(1_000))

    async def updated(path: str) -> None:
        request = next(attack.patch(path, body, media_type=_JSON_PATCH))
        with await attack.connect() as wire:
            while not attack.is_over:
                attack.count(await attack.ask(wire, request))

    yield
    async with asyncio.TaskGroup() as group:
        for path in paths:
            group.create_task(attack.repeat(partial(updated, path), 1))


@abuse(200)
async def reads_of_8mb(attack: Attack) -> Phases:
    """Reads a report of 8 MB."""
    (path,) = await attack.register(bodies.registration(**bodies.extensions(RESOURCE)))
    yield
    await attack.flood(attack.get(path))


@abuse(200)
async def reads_of_8mb_pretty(attack: Attack) -> Phases:
    """Reads a report of 8 MB with _pretty."""
    (path,) = await attack.register(bodies.registration(**bodies.extensions(RESOURCE)))
    yield
    await attack.flood(attack.get(f"{path}?_pretty=true"))


@abuse(200)
async def reads_of_8mb_in_xml(attack: Attack) -> Phases:
    """Reads a report of 8 MB in XML."""
    (path,) = await attack.register(bodies.registration(**bodies.extensions(RESOURCE)))
    yield
    await attack.flood(attack.get(path, f"Accept: {FHIR_XML}"))


async def _read_slowly(attack: Attack, path: str) -> None:
    """Receive one byte each tenth of a second over a small buffer."""
    with await attack.connect(receive_buffer=4_096) as wire:
        await wire.send(attack.head(f"GET {path}"))
        attack.requests += 1
        started = False
        while data := await wire.receive(1):
            if data and not started:
                attack.count("began")
                started = True
            await asyncio.sleep(_BYTE_SECONDS)


@abuse("began")
async def slow_readers_of_8mb(attack: Attack) -> Phases:
    """Reads a report of 8 MB over 64 connections, one byte each tenth of a second."""
    (path,) = await attack.register(bodies.registration(**bodies.extensions(RESOURCE)))
    yield
    await attack.repeat(lambda: _read_slowly(attack, path), _READERS)


@abuse("began")
async def slow_readers_of_documents(attack: Attack) -> Phases:
    """Reads a document of 5 MB over 64 connections, one byte each tenth of a second."""
    data = os.urandom(_DOCUMENT)
    await attack.register(bodies.with_data(data))
    yield
    path = f"/fhir/r4/Binary/{hashlib.sha256(data).hexdigest()}"
    await attack.repeat(lambda: _read_slowly(attack, path), _READERS)


@abuse(200)
async def ranges_of_one_byte(attack: Attack) -> Phases:
    """Reads a document of 5 MB with a Range of 1,000 parts of one byte."""
    data = os.urandom(_DOCUMENT)
    await attack.register(bodies.with_data(data))
    parts = ",".join(f"{place}-{place}" for place in range(0, 2_000, 2))
    yield
    path = f"/fhir/r4/Binary/{hashlib.sha256(data).hexdigest()}"
    await attack.flood(attack.get(path, f"Range: bytes={parts}"))
