"""Names are looked up once at a time, and one that hangs is kept apart."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from fhirpub.webhooks.transport import name_lookup as module
from fhirpub.webhooks.transport.name_lookup import (
    _RESOLVING_THREADS,
    AddressInfo,
    NameLookup,
    address_in,
)
from tests.waiting import until


def info(number: int = 1) -> AddressInfo:
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"192.0.2.{number}", 443))


class Names:
    """Finds addresses, some of them once they may be found; keeps what it was asked."""

    def __init__(self, addresses: int = 1) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.threads: list[str] = []
        self.may = threading.Event()
        self._addresses = addresses

    def __call__(self, *name: object) -> Sequence[AddressInfo]:
        self.asked.append(name)
        self.threads.append(threading.current_thread().name)
        if name[0] == "unknown.example":
            raise socket.gaierror
        if name[0] == "slow.example":
            assert self.may.wait(30)
        return [info(number) for number in range(self._addresses)]


@pytest.fixture
def names() -> Names:
    return Names()


LAB = ("lab.example", 443, socket.AF_INET)
SLOW = ("slow.example", 443, socket.AF_INET)


async def test_a_name_is_asked_for_with_its_port_and_family(names: Names) -> None:
    lookup = NameLookup(names, patience_seconds=5)

    assert await lookup.resolve(LAB) == [info(0)]
    assert names.asked == [("lab.example", 443, socket.AF_INET, socket.SOCK_STREAM)]
    lookup.stop()


async def test_an_unknown_host_is_asked_for_in_any_family_and_apart(names: Names) -> None:
    lookup = NameLookup(names, patience_seconds=5)

    await lookup.resolve_unknown("lab.example", 443)

    assert names.asked[0][2] == socket.AF_UNSPEC
    assert names.threads[0].startswith("webhook-names-apart")
    lookup.stop()


@pytest.mark.parametrize(("addresses", "taken"), [(8, 8), (9, 8)])
async def test_of_many_addresses_eight_are_taken(addresses: int, taken: int) -> None:
    lookup = NameLookup(Names(addresses), patience_seconds=5)

    assert await lookup.resolve(LAB) == [info(number) for number in range(taken)]
    lookup.stop()


async def test_many_who_wait_for_a_name_have_one_thread(names: Names) -> None:
    lookup = NameLookup(names, patience_seconds=5)
    waiting = [asyncio.create_task(lookup.resolve(SLOW)) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    names.may.set()

    found = await asyncio.gather(*waiting, return_exceptions=True)

    assert found[1:] == [[info(0)]] * 4
    assert len(names.asked) == 1
    lookup.stop()


async def test_a_name_is_asked_for_again_afterwards(names: Names) -> None:
    lookup = NameLookup(names, patience_seconds=5)

    await lookup.resolve(LAB)
    await lookup.resolve(LAB)

    assert len(names.asked) == 2
    lookup.stop()


async def test_a_name_that_cannot_be_found_raises_and_may_be_asked_for_again(
    names: Names,
) -> None:
    lookup = NameLookup(names, patience_seconds=5)

    for _ in range(2):
        with pytest.raises(socket.gaierror):
            await lookup.resolve(("unknown.example", 443, socket.AF_INET))

    assert len(names.asked) == 2
    lookup.stop()


async def test_a_name_that_took_too_long_is_looked_up_apart_until_it_is_quick(
    names: Names,
) -> None:
    lookup = NameLookup(names, patience_seconds=0.05)
    first = asyncio.create_task(lookup.resolve(SLOW))
    await until(lambda: names.asked)
    await asyncio.sleep(0.06)
    names.may.set()
    await first

    for _ in range(2):
        await lookup.resolve(LAB)
        await lookup.resolve(SLOW)

    slow = [
        thread.startswith("webhook-names-apart")
        for name, thread in zip(names.asked, names.threads, strict=True)
        if name[0] == "slow.example"
    ]
    assert slow == [False, True, False]
    lookup.stop()


def test_the_address_is_the_first_part_of_where_it_is() -> None:
    assert address_in(info(7)) == "192.0.2.7"


async def test_a_name_that_all_have_given_up_fails_in_silence(names: Names) -> None:
    def fail(*_name: object) -> Sequence[AddressInfo]:
        assert names.may.wait(5)
        raise socket.gaierror

    problems: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, what: problems.append(what))
    lookup = NameLookup(fail, patience_seconds=5)
    waiting = asyncio.create_task(lookup.resolve(LAB))
    await asyncio.sleep(0)
    (search,) = lookup._under_way.values()
    ended = asyncio.Event()
    search.add_done_callback(lambda _search: ended.set())
    waiting.cancel()
    await asyncio.sleep(0)
    del search, waiting
    names.may.set()
    await ended.wait()
    await asyncio.sleep(0)
    gc.collect()

    assert problems == []
    lookup.stop()


async def test_a_lookup_that_has_not_begun_at_the_end_is_left_out(names: Names) -> None:
    lookup = NameLookup(names, patience_seconds=5)
    slow = [
        asyncio.create_task(lookup.resolve(("slow.example", port, socket.AF_INET)))
        for port in range(_RESOLVING_THREADS)
    ]
    behind = asyncio.create_task(lookup.resolve(LAB))
    await until(lambda: len(names.asked) == _RESOLVING_THREADS)

    lookup.stop()
    names.may.set()
    await asyncio.gather(*slow)

    with pytest.raises(asyncio.CancelledError):
        await behind
    assert {name[0] for name in names.asked} == {"slow.example"}


async def test_a_lookup_of_an_unknown_host_that_has_not_begun_at_the_end_is_left_out(
    names: Names,
) -> None:
    lookup = NameLookup(names, patience_seconds=5)
    slow = [
        asyncio.create_task(lookup.resolve_unknown("slow.example", port))
        for port in range(_RESOLVING_THREADS)
    ]
    behind = asyncio.create_task(lookup.resolve_unknown("lab.example", 443))
    await until(lambda: len(names.asked) == _RESOLVING_THREADS)

    lookup.stop()
    names.may.set()
    await asyncio.gather(*slow)

    with pytest.raises(asyncio.CancelledError):
        await behind


async def test_a_name_that_fails_late_is_looked_up_apart_as_well() -> None:
    threads: list[str] = []

    def fail(*_name: object) -> Sequence[AddressInfo]:
        threads.append(threading.current_thread().name)
        raise socket.gaierror

    lookup = NameLookup(fail, patience_seconds=-1)  # whatever it takes is too long

    for _twice in range(2):
        with pytest.raises(socket.gaierror):
            await lookup.resolve(LAB)

    assert [thread.startswith("webhook-names-apart") for thread in threads] == [False, True]
    lookup.stop()


async def test_of_too_many_names_that_hang_the_oldest_is_usual_again(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_HANGING_LOOKUPS", 2)
    lookup = NameLookup(names, patience_seconds=-1)
    hosts = [(f"{letter}.example", 443, socket.AF_INET) for letter in "abc"]
    for host in hosts:
        await lookup.resolve(host)

    for host in hosts[1:]:
        await lookup.resolve(host)

    apart = [thread.startswith("webhook-names-apart") for thread in names.threads]
    assert apart == [False, False, False, True, True]
    lookup.stop()


async def test_a_name_is_not_kept_apart_for_the_time_in_which_no_thread_was_free(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(module, "_RESOLVING_THREADS", 1)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    lookup = NameLookup(names, patience_seconds=5)
    slow = asyncio.create_task(lookup.resolve(SLOW))
    await until(lambda: names.asked)
    waiting = asyncio.create_task(lookup.resolve(LAB))
    await asyncio.sleep(0)

    now[0] = 100.0
    names.may.set()
    await asyncio.gather(slow, waiting)
    await asyncio.gather(lookup.resolve(SLOW), lookup.resolve(LAB))

    assert [thread.rpartition("_")[0] for thread in names.threads[-2:]].count(
        "webhook-names-apart"
    ) == 1
    lookup.stop()
