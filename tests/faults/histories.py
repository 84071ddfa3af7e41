"""Clients that register, update and read a few reports over sockets, and record the outcomes.

A client's decisions follow from the seed and from its responses; the timing of clients does not.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config
from fhirpub.fhir.strict_json import dumps, loads, loads_stored
from fhirpub.storage.contract import SearchQuery, Version
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.service import Answer, Integrator
from fhirpub.testing.store_contract import whole_blobs
from tests.bodies import SYSTEM, document, register_body
from tests.faults.linearizability import (
    Absent,
    Call,
    Conflict,
    Found,
    Kept,
    Operation,
    Outcome,
    Patch,
    Read,
    Register,
    Registered,
    Updated,
    complaints,
)
from tests.faults.wire import Connection, NoAnswerError, NotSentError

TYPE = "DiagnosticReport"
_CURRENT = re.compile(r"current version (\d+)$")
_ETAG = re.compile(r'W/"(\d+)"')
_TOGETHER = 4
"""The number of reports in use at a time."""
_PAUSE_SECONDS = 0.02
_PATIENCE_SECONDS = 60.0

Nemesis = Callable[[], Coroutine[Any, Any, None]]
"""Does its harm, and returns when every address responds again."""


class UnexpectedAnswerError(Exception):
    """A response that no call of these clients can get, whatever fails."""


@dataclass(slots=True)
class Histories:
    """The calls and outcomes of each report, by the value of its identifier.

    ``tenant`` has its salt, so that reports can be read before they exist.
    """

    tenant: Tenant
    seed: int
    of: defaultdict[str, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    strange: list[str] = field(default_factory=list)
    """Unexplained responses, and calls without a response although all was well again."""

    def id_of(self, value: str) -> str:
        """Return the id that a report has or would get."""
        return self.tenant.resource_id(TYPE, SYSTEM, value)

    def __len__(self) -> int:
        return sum(map(len, self.of.values()))

    def write(self, value: str, folder: Path) -> Path:
        """Write the history of a report to a file."""
        path = folder / f"{value}.history"
        operations = sorted(self.of[value], key=lambda each: each.invoked)
        path.write_text("".join(f"{operation}\n" for operation in operations))
        return path


class Client:
    """Makes one call after another and records each, except those that were never sent."""

    def __init__(self, histories: Histories, connection: Connection, number: int) -> None:
        self.number = number
        self._histories = histories
        self._connection = connection
        self._markers = count(1)

    async def call(self, value: str, call: Call) -> Outcome | None:
        """Make a call and return its outcome, None if it is unknown; raises NotSentError."""
        request = self._request(value, call)
        await self._connection.open()
        operation = Operation(client=self.number, call=call, invoked=time.monotonic())
        try:
            outcome = _outcome(call, await self._connection.request(*request))
            if outcome is not None:
                operation = replace(operation, outcome=outcome, completed=time.monotonic())
        except NoAnswerError:
            pass
        except UnexpectedAnswerError as problem:
            self._histories.strange.append(f"{value}: {call} got {problem}.")
        self._histories.of[value].append(operation)
        return operation.outcome

    def marker(self) -> str:
        """Return a content that no other call sends."""
        return f"content {self.number}.{next(self._markers)}"

    def _request(self, value: str, call: Call) -> tuple[str, str, bytes, dict[str, str]]:
        path = f"/fhir/r4/{TYPE}/{self._histories.id_of(value)}"
        if isinstance(call, Read):
            return "GET", path, b"", {}
        fields = {"conclusion": call.marker, "presentedForm": [document(_data(call.marker))]}
        if isinstance(call, Register):
            body = register_body(value, **fields)
            return "POST", f"/fhir/r4/{TYPE}/$register", dumps(body), {}
        tag = {} if call.if_match is None else {"If-Match": f'W/"{call.if_match}"'}
        body = {"resourceType": TYPE, "status": "amended", **fields}
        return "PATCH", path, dumps(body), tag


async def record(
    base_urls: Sequence[str],
    lab: Integrator,
    histories: Histories,
    *,
    nemesis: Nemesis,
    clients: int = 16,
    calls_each: int = 150,
) -> None:
    """Let clients work until the nemesis has finished, then read every report once more.

    A report gets about ``calls_each`` calls before another takes its place. The clients are spread
    over the addresses, and in the end every report is read from each address.
    """
    through = asyncio.Event()

    async def work(number: int) -> None:
        address = base_urls[number % len(base_urls)]
        random = Random(f"{histories.seed} {number}")
        async with Connection(address, token=lab.token) as connection:
            client = Client(histories, connection, number)
            await _work(client, histories, random, through, calls_each)

    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(work(number))
        await nemesis()
        through.set()
    async with AsyncExitStack() as stack:
        for number, address in enumerate(base_urls, start=clients):
            connection = await stack.enter_async_context(Connection(address, token=lab.token))
            await look_again(Client(histories, connection, number), histories)


async def look_again(client: Client, histories: Histories) -> None:
    """Read every report once more, when all is well."""
    for value in list(histories.of):
        for call in (Read(), Register(client.marker()), Read()):
            with suppress(NotSentError):
                if await client.call(value, call) is not None:
                    continue
            histories.strange.append(f"{value}: {call} got no answer at the end.")


async def everything_wrong(histories: Histories, config: Config) -> dict[str, list[str]]:
    """Return the problems of each report; those of the tenant are under "".

    ``config`` names the store, which is read directly.
    """
    wrong: dict[str, list[str]] = {}
    registered = 0
    # The service may give up early; the check waits for a set of servers that is still recovering.
    patient = replace(config.storage, deadline_seconds=_PATIENCE_SECONDS)
    async with open_store(replace(config, storage=patient)) as store:
        for value, history in histories.of.items():
            kept = await _kept(store, histories.tenant.id, histories.id_of(value))
            registered += bool(kept)
            wrong[value] = list(complaints(history, kept))
        page = await store.search(histories.tenant.id, SearchQuery(type=TYPE, limit=0))
    wrong[""] = histories.strange.copy()
    if page.total != registered:
        wrong[""].append(f"There are {page.total} reports instead of {registered}.")
    return {value: problems for value, problems in wrong.items() if problems}


async def of_lab(lab: Integrator, *, seed: int) -> Histories:
    """Return empty histories of a new laboratory."""
    async with open_store(lab.service.config) as store:
        tenant = await store.tenant(lab.tenant.id)
    assert tenant is not None
    return Histories(tenant, seed)


async def assert_right(histories: Histories, config: Config, folder: Path) -> None:
    """Assert that nothing is wrong, or report the problems and the files with the histories."""
    wrong = await everything_wrong(histories, config)
    files = [str(histories.write(value, folder)) for value in wrong if value]
    text = "\n".join(f"{value}: {name}" for value, every in wrong.items() for name in every)
    assert not wrong, f"with seed {histories.seed}:\n{text}\nhistories: {files}"


async def _work(
    client: Client,
    histories: Histories,
    random: Random,
    through: asyncio.Event,
    calls_each: int,
) -> None:
    known: dict[str, int] = {}
    while not through.is_set():
        # The reports change over time: there is always a new one.
        number = len(histories) // calls_each + random.randrange(_TOGETHER)
        value = f"{histories.seed}-{number}"
        try:
            outcome = await client.call(value, _chosen(client, random, known.get(value, 1)))
        except NotSentError:
            outcome = None
        if isinstance(outcome, Found | Updated):
            known[value] = outcome.version
        elif isinstance(outcome, Conflict):
            known[value] = outcome.current
        await asyncio.sleep(random.uniform(0, _PAUSE_SECONDS))


def _chosen(client: Client, random: Random, version: int) -> Call:
    what = random.random()
    if what < 0.4:
        return Read()
    if what < 0.5:
        return Register(client.marker())
    return Patch(client.marker(), version if what < 0.9 else None)


def _outcome(call: Call, answer: Answer) -> Outcome | None:
    """Return the outcome that a response states, or None if the store could not confirm it."""
    if answer.status == 503 and answer.headers.get("retry-after", "").isdecimal():
        return None
    if answer.status == 404:
        return Absent()
    if answer.status == 201 and isinstance(call, Register):
        first = answer.json["parameter"][0]["resource"]["conclusion"]
        return Registered(first, hashlib.sha256(_stable(answer)).hexdigest()[:16])
    if answer.status == 204 and isinstance(call, Patch):
        return Updated(_number(_ETAG.fullmatch(answer.headers["etag"])))
    if answer.status == 412 and isinstance(call, Patch):
        return Conflict(_number(_CURRENT.search(answer.issues[0]["diagnostics"])))
    if answer.status == 200 and isinstance(call, Read):
        return _found(answer)
    raise UnexpectedAnswerError(answer.status)


def _stable(answer: Answer) -> bytes:
    """Return the parts that must be the same in every response to a registration (D-78)."""
    headers = [answer.headers[name] for name in ("location", "etag", "last-modified")]
    return "\n".join(headers).encode() + answer.body


def _found(answer: Answer) -> Found:
    report = answer.json
    marker: str = report["conclusion"]
    if report["presentedForm"] != [document(_data(marker))]:
        marker += " with another document"
    version = int(report["meta"]["versionId"])
    if answer.headers["etag"] != f'W/"{version}"':
        marker += " with another version's ETag"
    return Found(version, marker)


def _number(match: re.Match[str] | None) -> int:
    if match is None:
        raise UnexpectedAnswerError("an answer without its version")
    return int(match[1])


def _data(marker: str) -> bytes:
    return f"%PDF-1.4 {marker}".encode()


async def _kept(store: Store, tenant_id: str, report_id: str) -> list[Kept]:
    versions: Collection[Version] = await store.history(tenant_id, report_id, limit=1_000_000)
    names = {name for version in versions for name in version.documents}
    blobs = set(await whole_blobs(store, tenant_id, names))
    return [
        Kept(version.version, _content(version, blobs), tuple(_events(version)))
        for version in sorted(versions, key=lambda each: each.version)
    ]


def _content(version: Version, blobs: set[str]) -> str:
    marker: str = loads_stored(version.body)["conclusion"]
    if version.documents != (hashlib.sha256(_data(marker)).hexdigest(),):
        return f"{marker} with another document"
    return marker if blobs.issuperset(version.documents) else f"{marker} without its document"


def _events(version: Version) -> Iterator[str]:
    for load in loads(version.events):
        yield f"{load['type']} {load['data']['version']}"
