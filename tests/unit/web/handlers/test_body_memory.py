"""A body that waits for memory, and the quotas and limits that end it."""

from __future__ import annotations

import asyncio
import gzip
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import Busy, TooLarge
from fhirpub.interactions.context import Context
from fhirpub.runtime.stages import Stages
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.admission.memory_budget import MemoryBudget
from fhirpub.web.handlers.placement import LARGE
from tests.unit.web.handlers.asking import (
    MOST,
    REPORTS,
    Asked,
    asked,
    named,
    on_request,
    running,
    small_parts,
)

VALIDATE = f"{REPORTS}/$validate"
CHUNKED = {"Transfer-Encoding": "chunked"}
GZIP = {"Content-Encoding": "gzip"}


@pytest.fixture
def lab(few: Integrator) -> Integrator:
    """A client of a service that takes small bodies only."""
    return few


def full(
    lab: Integrator,
    use: Callable[[Asked, Asked], Awaitable[Any]],
    patience: float = 0.02,
    /,
    **headers: str,
) -> Any:
    """Begin a body while another one, of another tenant, holds all of the memory."""
    memory = MemoryBudget(100_000, patience_seconds=patience)
    services = replace(running(lab).services, request_memory=memory)

    async def used() -> Any:
        large = {"Content-Length": "100000"}
        async with asked(lab, "POST", VALIDATE, large, services=services) as first:
            memory._held[first.request].owner = "other"
            async with asked(lab, "POST", VALIDATE, named(headers), services=services) as second:
                return await use(second, first)

    return running(lab).call(used())


def test_a_body_reserves_no_more_than_it_announces(lab: Integrator) -> None:
    async def held() -> int:
        async with asked(lab, "POST", VALIDATE, {"Content-Length": "70000"}) as one:
            return one.handler.services.request_memory._held[one.request].size

    assert running(lab).call(held()) == 70_000


def test_a_body_of_unknown_size_reserves_no_more_than_the_limit(lab: Integrator) -> None:
    async def held() -> int:
        async with asked(lab, "POST", VALIDATE, CHUNKED) as one:
            one.handler.data_received(b" " * (MOST - 1))
            return one.handler.services.request_memory._held[one.request].size

    assert running(lab).call(held()) == MOST


def test_the_length_of_gzip_is_not_that_of_the_body(lab: Integrator) -> None:
    async def held() -> bool:
        given = {**GZIP, "Content-Length": "100000"}
        async with asked(lab, "POST", VALIDATE, given) as one:
            return one.request in one.handler.services.request_memory

    assert running(lab).call(held()) is False


def test_a_body_without_memory_is_busy(lab: Integrator) -> None:
    async def use(one: Asked, _first: Asked) -> Exception | None:
        return one.handler._refusal

    assert isinstance(full(lab, use, Content_Length="90000"), Busy)


def test_a_body_goes_on_when_there_is_memory_and_its_time_stands_until_then(
    lab: Integrator,
) -> None:
    async def use(one: Asked, first: Asked) -> list[Any]:
        handler = one.body_handler
        handler._announced = 90_000
        later, since = handler._reserve_memory(), handler.services.body_timeout._since
        assert later is not None
        waiting = asyncio.ensure_future(later)
        await asyncio.sleep(0)
        found = [waiting.done(), one.request in since]
        first.handler.cancel()
        await waiting
        return [*found, one.request in since, one.request in handler.services.request_memory]

    assert full(lab, use, 30, **CHUNKED) == [False, False, True, True]


def test_a_body_that_gets_no_memory_on_its_way_is_refused_and_dropped(lab: Integrator) -> None:
    async def use(one: Asked, _first: Asked) -> list[Any]:
        later = one.handler.data_received(b" " * (LARGE + 1))
        assert later is not None
        await later
        return [type(one.handler._refusal), one.body_handler.take_chunks()]

    assert full(lab, use, **CHUNKED) == [Busy, []]


@pytest.mark.parametrize("level", [1, 0])
def test_gzip_that_gets_no_memory_is_refused(lab: Integrator, level: int) -> None:
    coded = gzip.compress(b" " * 200_000, level)

    async def use(one: Asked, _first: Asked) -> list[Any]:
        waited = 0
        for piece in small_parts(coded, 16_000):
            later = one.handler.data_received(piece)
            if later is not None:
                await later
                waited += 1
        return [type(one.handler._refusal), waited]

    assert full(lab, use, Transfer_Encoding="chunked", **GZIP) == [Busy, 1]


def test_nothing_more_is_decoded_for_a_client_that_has_left(lab: Integrator) -> None:
    async def received() -> int:
        async with asked(lab, "POST", VALIDATE, {**CHUNKED, **GZIP}) as one:
            one.exchange.stream.close()
            later = one.handler.data_received(gzip.compress(b" " * 200_000))
            assert later is not None
            await later
            return one.body_handler._received

    assert running(lab).call(received()) == LARGE


@pytest.mark.parametrize("over", [0, 1])
def test_gzip_may_be_as_long_as_the_limit_of_bodies(lab: Integrator, over: int) -> None:
    coded = gzip.compress(os.urandom(MOST), 0)[: MOST + over]

    async def refusal() -> Exception | None:
        async with asked(lab, "POST", VALIDATE, {**CHUNKED, **GZIP}) as one:
            for piece in small_parts(coded, 16_000):
                later = one.handler.data_received(piece)
                if later is not None:
                    await later
            return one.handler._refusal

    assert isinstance(running(lab).call(refusal()), TooLarge) is bool(over)


# Where it is computed.


@pytest.mark.parametrize(
    ("size", "stored", "on_loop"),
    [(LARGE, 0, True), (LARGE + 1, 0, False), (LARGE, 1, False), (10, LARGE, False)],
)
def test_a_small_body_is_computed_on_the_event_loop(
    lab: Integrator, size: int, stored: int, *, on_loop: bool
) -> None:
    def work(_context: Context, body: bytes) -> Stages[tuple[int, int]]:
        yield
        return threading.get_ident(), len(body)

    async def computed() -> tuple[bool, int]:
        async with asked(lab, "POST", VALIDATE, CHUNKED) as one:
            chunks = [b" " * (size - 1), b" "]
            handler = one.body_handler
            ident, length = await handler.compute_chunks(work, chunks, stored=b" " * stored)
            return ident == threading.get_ident(), length

    assert running(lab).call(computed()) == (on_loop, size)


# Quotas.


def at_once(lab: Integrator, used: int, headers: dict[str, str]) -> int:
    """Return the status before the body of a client that has sent some bytes already."""
    if used:
        lab.request("POST", VALIDATE, b"{}" + b" " * (used - 2))

    async def status() -> int:
        given = {**headers, "Expect": "100-continue"}
        async with asked(lab, "POST", VALIDATE, given) as one:
            return one.exchange.status

    return running(lab).call(status())


@pytest.mark.parametrize(
    ("used", "headers", "status"),
    [
        (0, {"Content-Length": "1000"}, 0),
        (0, {"Content-Length": "1001"}, 429),
        (999, CHUNKED, 0),
        (1_000, CHUNKED, 429),
        (1_000, {"Content-Length": "0"}, 0),
        (1_000, {}, 0),
    ],
)
def test_a_body_beyond_a_quota_is_refused_before_it_comes(
    counted: RunningService, used: int, headers: dict[str, str], status: int
) -> None:
    assert at_once(counted.integrator(), used, headers) == status


def test_what_comes_beyond_a_quota_is_not_kept(counted: RunningService) -> None:
    lab = counted.integrator()

    async def kept() -> list[bytes]:
        async with asked(lab, "POST", VALIDATE, CHUNKED) as one:
            for size in (1_000, 1):
                one.handler.data_received(b" " * size)
            return one.body_handler.take_chunks()

    assert counted.call(kept()) == []


@pytest.mark.parametrize("kind", ["application/json-patch+json", "application/merge-patch+json"])
def test_a_handler_may_read_other_types_than_those_of_fhir(lab: Integrator, kind: str) -> None:
    answers = [
        lab.request(method, path, b"[]", {"Content-Type": kind})
        for method, path in (("PATCH", f"{REPORTS}/x"), ("POST", VALIDATE))
    ]

    assert [answer.status for answer in answers] == [404, 415]


def test_a_body_that_is_complete_gives_back_what_it_did_not_need(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[bool, int]:
        memory = one.handler.services.request_memory
        one.handler.data_received(b" " * 100_000)
        reserved = memory._held[one.request].size
        answering = one.handler.answer()
        size = memory._held[one.request].size
        if answering is not None:
            await answering
        return reserved > size, size

    path, headers = f"{REPORTS}/$validate", {"Transfer-Encoding": "chunked"}
    assert on_request(lab, use, "POST", path, headers) == (True, 100_000)


def test_bytes_of_a_body_that_is_refused_count_in_no_quota(counted: RunningService) -> None:
    lab = counted.integrator()

    async def statuses() -> list[int]:
        found = []
        for kind, size in (("text/plain", 900), ("application/fhir+json", 900)):
            given = {"Content-Type": kind, "Transfer-Encoding": "chunked"}
            async with asked(lab, "POST", f"{REPORTS}/$validate", given) as one:
                one.handler.data_received(b" " * size)
                one.handler.run()
                await one.exchange.wait_ended()
                found.append(one.exchange.status)
        return found

    assert counted.call(statuses()) == [415, 400]


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_a_body_that_is_announced_too_large_is_refused_before_it_comes(
    few: Integrator, coding: str
) -> None:
    given = {"Content-Encoding": coding, "Content-Length": str(MOST + 1)}

    async def use(one: Asked) -> Exception | None:
        return one.handler._refusal

    refusal = on_request(few, use, "POST", f"{REPORTS}/$validate", given)
    assert isinstance(refusal, TooLarge)
