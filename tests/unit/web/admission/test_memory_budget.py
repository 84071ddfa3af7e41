from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace

import pytest
from tornado.httputil import HTTPHeaders, RequestStartLine
from tornado.iostream import IOStream

from fhirpub.errors import Busy
from fhirpub.web.admission import memory_budget as module
from fhirpub.web.admission.memory_budget import MemoryBudget
from fhirpub.web.message.request import Request

Arrive = Callable[[], tuple[Request, socket.socket]]


@pytest.fixture
def arrive() -> Iterator[Arrive]:
    """Create requests on connections of their own; also return the client's end of each."""
    streams: list[IOStream] = []
    clients: list[socket.socket] = []

    def one() -> tuple[Request, socket.socket]:
        ours, theirs = socket.socketpair()
        streams.append(IOStream(ours))
        clients.append(theirs)
        line = RequestStartLine("POST", "/", "HTTP/1.1")
        return Request(line, HTTPHeaders(), SimpleNamespace(stream=streams[-1])), theirs

    yield one
    for stream in streams:
        stream.close()
    for client in clients:
        client.close()


def started(waiting: Awaitable[None] | None) -> asyncio.Task[None]:
    """Wait in a task of its own, as Tornado does."""
    assert waiting is not None, "there was room"

    async def wait() -> None:
        await waiting

    return asyncio.create_task(wait())


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_bodies_that_fit_together_do_not_wait(arrive: Arrive) -> None:
    memory_budget = MemoryBudget(100, patience_seconds=5)

    waits = [memory_budget.acquire(arrive()[0], size) for size in (40, 60)]

    assert waits == [None, None]


async def test_one_too_many_waits_until_there_is_room(arrive: Arrive) -> None:
    memory_budget, (first, _), (second, _) = (
        MemoryBudget(100, patience_seconds=5),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 60)
    waiting = started(memory_budget.acquire(second, 60))
    await settled()
    waited = not waiting.done()

    memory_budget.release(first)
    await asyncio.wait_for(waiting, 20)

    assert waited


async def test_no_request_overtakes_one_that_needs_more(arrive: Arrive) -> None:
    memory_budget, (first, _), (large, _), (small, _) = (
        MemoryBudget(100, patience_seconds=5),
        arrive(),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 60)
    before = started(memory_budget.acquire(large, 90))
    behind = started(memory_budget.acquire(small, 10))
    await settled()

    assert not before.done()
    assert not behind.done()
    memory_budget.release(first)
    await asyncio.wait_for(asyncio.gather(before, behind), 20)


async def test_what_is_released_goes_to_no_request_behind_one_that_needs_more(
    arrive: Arrive,
) -> None:
    memory_budget = MemoryBudget(100, patience_seconds=5)
    (first, _), (second, _), (large, _), (small, _) = (arrive() for _ in range(4))
    memory_budget.acquire(first, 60)
    memory_budget.acquire(second, 30)
    before = started(memory_budget.acquire(large, 90))
    behind = started(memory_budget.acquire(small, 20))

    memory_budget.release(second)
    await settled()

    assert not before.done()
    assert not behind.done()
    memory_budget.release(first)
    await asyncio.wait_for(before, 20)
    memory_budget.release(large)
    await asyncio.wait_for(behind, 20)


async def test_an_owner_that_has_its_share_waits_and_keeps_no_other_waiting(
    arrive: Arrive,
) -> None:
    memory_budget, (first, _), (second, _), (other, _) = (
        MemoryBudget(100, patience_seconds=5),
        arrive(),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 40, owner="lab")
    waiting = started(memory_budget.acquire(second, 30, owner="lab"))
    of_another = memory_budget.acquire(other, 30, owner="clinic")
    await settled()
    waited = not waiting.done()

    memory_budget.release(first)
    await asyncio.wait_for(waiting, 20)

    assert of_another is None
    assert waited


async def test_what_is_larger_than_a_share_needs_the_room_alone_of_its_owner(
    arrive: Arrive,
) -> None:
    memory_budget, (large, _), (other, _) = (
        MemoryBudget(100, patience_seconds=5),
        arrive(),
        arrive(),
    )

    waits = [
        memory_budget.acquire(large, 70, owner="lab"),
        memory_budget.acquire(other, 30, owner="clinic"),
    ]

    assert waits == [None, None]


async def test_one_larger_than_the_room_goes_alone(arrive: Arrive) -> None:
    memory_budget, (first, _), (huge, _), (small, _) = (
        MemoryBudget(100, patience_seconds=5),
        arrive(),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 1)
    alone = started(memory_budget.acquire(huge, 1000))
    after = started(memory_budget.acquire(small, 1))
    await settled()
    waited = not alone.done()

    memory_budget.release(first)
    await asyncio.wait_for(alone, 20)
    await settled()

    assert waited
    assert not after.done()
    memory_budget.release(huge)
    await asyncio.wait_for(after, 20)


async def test_what_was_taken_too_much_is_given_back(arrive: Arrive) -> None:
    memory_budget, (first, _), (second, _) = (
        MemoryBudget(100, patience_seconds=5),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 100)
    waiting = started(memory_budget.acquire(second, 60))

    memory_budget.shrink(first, 40)

    await asyncio.wait_for(waiting, 20)


async def test_a_second_release_gives_nothing_back(arrive: Arrive) -> None:
    memory_budget, (first, _), (second, _) = (
        MemoryBudget(100, patience_seconds=5),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 60)
    memory_budget.acquire(second, 40)

    memory_budget.release(first)
    memory_budget.release(first)

    third = started(memory_budget.acquire(arrive()[0], 61))
    await settled()
    assert not third.done()
    memory_budget.release(second)
    await asyncio.wait_for(third, 20)


async def test_a_request_that_waits_too_long_is_refused_and_later_ones_go_on(
    arrive: Arrive,
) -> None:
    memory_budget, (first, _), (large, _), (small, _) = (
        MemoryBudget(100, patience_seconds=0.2),
        arrive(),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 60)
    refused = started(memory_budget.acquire(large, 90))
    await asyncio.sleep(0.1)
    behind = started(memory_budget.acquire(small, 40))

    with pytest.raises(Busy) as busy:
        await asyncio.wait_for(refused, 20)
    assert small in memory_budget
    assert busy.value.retry_after == 5
    await asyncio.wait_for(behind, 20)


async def test_a_client_that_disconnects_while_waiting_waits_no_longer(arrive: Arrive) -> None:
    memory_budget, (first, _), (gone, client) = (
        MemoryBudget(100, patience_seconds=60),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 60)
    waiting = started(memory_budget.acquire(gone, 90))
    behind = started(memory_budget.acquire(arrive()[0], 40))
    await settled()

    client.sendall(b"a part of the body")
    client.close()

    await asyncio.wait_for(asyncio.gather(waiting, behind), 20)
    assert gone.connection.stream.closed()


async def test_a_reservation_grows_step_by_step(arrive: Arrive) -> None:
    memory_budget, (first, _), (second, _) = (
        MemoryBudget(100, patience_seconds=5),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 30)
    memory_budget.acquire(first, 60)

    waiting = started(memory_budget.acquire(second, 50))
    await settled()

    assert not waiting.done()
    memory_budget.shrink(first, 50)
    await asyncio.wait_for(waiting, 20)


async def test_requests_that_all_wait_for_more_do_not_wait_for_one_another(
    arrive: Arrive,
) -> None:
    memory_budget, (first, _), (second, _) = (
        MemoryBudget(100, patience_seconds=60),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 50)
    memory_budget.acquire(second, 50)

    growing = started(memory_budget.acquire(first, 80))
    behind = started(memory_budget.acquire(second, 80))
    await asyncio.wait_for(growing, 20)
    await settled()

    assert not behind.done()
    memory_budget.release(first)
    await asyncio.wait_for(behind, 20)


async def test_an_owner_that_holds_nothing_finds_room_while_another_takes_all_it_can(
    arrive: Arrive,
) -> None:
    memory_budget = MemoryBudget(120, patience_seconds=60)
    greedy = [arrive()[0] for _ in range(20)]
    waits = [memory_budget.acquire(request, 10, owner="lab") for request in greedy]
    tasks = [started(wait) for wait in waits if wait is not None]

    of_another = memory_budget.acquire(arrive()[0], 40, owner="clinic")
    await settled()

    assert len(greedy) - len(tasks) == 8
    assert of_another is None
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_owner_begins_no_body_that_its_share_has_no_room_for_in_the_end(
    arrive: Arrive,
) -> None:
    memory_budget, (first, _), (second, _), (other, _) = (
        MemoryBudget(90, patience_seconds=5),
        arrive(),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(first, 10, expected=30, owner="lab")
    waiting = started(memory_budget.acquire(second, 10, expected=31, owner="lab"))
    of_another = memory_budget.acquire(other, 10, expected=31, owner="clinic")
    await settled()
    waited = not waiting.done()

    grown = memory_budget.acquire(first, 30, expected=30, owner="lab")
    memory_budget.release(first)
    await asyncio.wait_for(waiting, 20)

    assert waited
    assert (of_another, grown) == (None, None)


async def test_a_body_that_has_stalled_keeps_no_room_for_what_does_not_arrive(
    arrive: Arrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(module, "_STALLED_SECONDS", 0.1)
    memory_budget, (stalled, _), (second, _) = (
        MemoryBudget(90, patience_seconds=20),
        arrive(),
        arrive(),
    )
    memory_budget.acquire(stalled, 10, expected=60, owner="lab")

    await asyncio.wait_for(
        started(memory_budget.acquire(second, 10, expected=30, owner="lab")), 10
    )

    assert second in memory_budget


async def test_bodies_that_do_not_announce_their_size_stay_within_the_share_of_their_owner(
    arrive: Arrive,
) -> None:
    memory_budget, (oldest, _), (second, _), (other, _) = (
        MemoryBudget(90, patience_seconds=5),
        arrive(),
        arrive(),
        arrive(),
    )
    for request in (oldest, second):
        memory_budget.acquire(request, 10, owner="lab")

    grown = memory_budget.acquire(oldest, 50, owner="lab")
    waiting = started(memory_budget.acquire(second, 40, owner="lab"))
    of_another = memory_budget.acquire(other, 20, owner="clinic")
    await settled()
    waited = not waiting.done()
    memory_budget.release(oldest)
    await asyncio.wait_for(waiting, 20)

    assert (grown, of_another) == (None, None)
    assert waited


async def test_bodies_of_unknown_size_leave_room_for_the_oldest_of_them(arrive: Arrive) -> None:
    memory_budget = MemoryBudget(90, patience_seconds=5, largest=40)
    (oldest, _), *others = (arrive() for _ in range(4))
    waits = [
        memory_budget.acquire(request, 10, owner="lab")
        for request in (oldest, *(request for request, _ in others))
    ]
    tasks = [started(wait) for wait in waits if wait is not None]

    grown = memory_budget.acquire(oldest, 40, owner="lab")
    of_another = memory_budget.acquire(arrive()[0], 30, owner="clinic")

    assert [wait is None for wait in waits] == [True, True, True, False]
    assert (grown, of_another) == (None, None)
    memory_budget.release(oldest)
    await asyncio.gather(*tasks)
