"""An answer counts if the primary that gave it was proved, and is the primary still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pymongo
import pytest
from pymongo.errors import AutoReconnect, ExecutionTimeout, OperationFailure
from pymongo.read_concern import ReadConcern

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb.primary import FormerPrimaries, Primary

_CERTAIN = ReadConcern("linearizable")


def described(
    *servers: tuple[str, str, object], kind: str = "ReplicaSetWithPrimary"
) -> SimpleNamespace:
    """Return what the driver knows of servers: the address, the state and the election of each."""
    found = {
        address: SimpleNamespace(address=address, server_type_name=state, election_id=election)
        for address, state, election in servers
    }
    return SimpleNamespace(server_descriptions=lambda: found, topology_type_name=kind)


_FIRST = described(("a", "RSPrimary", 1), ("b", "RSSecondary", None))
_SECOND = described(("a", "RSSecondary", None), ("b", "RSPrimary", 2))
_AGAIN = described(("a", "RSPrimary", 3), ("b", "RSSecondary", None))
_NONE = described(("a", "RSSecondary", None), kind="ReplicaSetNoPrimary")


class Server:
    """A database whose primary changes when a test wants it to."""

    def __init__(self, description: SimpleNamespace = _FIRST) -> None:
        self.client = SimpleNamespace(delegate=SimpleNamespace(topology_description=description))
        self.proofs: list[Any] = []
        self.before_a_proof: list[Callable[[], None]] = []
        self.concerns: list[object] = []

    def becomes(self, description: SimpleNamespace) -> None:
        self.client.delegate.topology_description = description

    def __getitem__(self, name: str) -> Server:
        assert name == "store"
        return self

    def with_options(self, *, read_concern: object) -> Server:
        self.concerns.append(read_concern)
        return self

    def find(self, wanted: dict[str, Any]) -> Server:
        self.proofs.append(wanted)
        return self

    async def to_list(self, _most: None) -> list[Any]:
        await asyncio.sleep(0)
        if self.before_a_proof:
            self.before_a_proof.pop(0)()
        return []

    def primary(self, seconds: float = 20) -> Primary:
        return Primary(self, certain=_CERTAIN, seconds=seconds)  # type: ignore[arg-type]


def failing(*errors: Exception, then: object = "found") -> Callable[[], Any]:
    """Return a read that fails with each of the errors first."""
    left = [*errors]

    async def look() -> object:
        if left:
            raise left.pop(0)
        return then

    return look


async def test_a_primary_is_proved_by_a_certain_read_once() -> None:
    server = Server()
    primary = server.primary()

    assert [await primary.answer(failing(then=number)) for number in (1, 2)] == [1, 2]
    assert server.proofs == [{"_id": "probe"}]
    assert server.concerns == [_CERTAIN]


async def test_those_who_come_together_wait_for_one_proof() -> None:
    server = Server()
    primary = server.primary()

    terms = await asyncio.gather(*(primary.verified_term() for _ in range(5)))

    assert terms == [("a", 1)] * 5
    assert len(server.proofs) == 1


@pytest.mark.parametrize("later", [_SECOND, _AGAIN])
async def test_each_term_is_proved(later: SimpleNamespace) -> None:
    server = Server()
    primary = server.primary()
    await primary.verified_term()

    server.becomes(later)
    await primary.verified_term()

    assert len(server.proofs) == 2


async def test_a_proof_during_which_another_took_over_proves_neither() -> None:
    server = Server()
    server.before_a_proof.append(lambda: server.becomes(_SECOND))

    assert await server.primary().verified_term() == ("b", 2)
    assert len(server.proofs) == 2


async def test_an_answer_during_which_another_took_over_is_asked_for_again() -> None:
    server = Server()
    answers = [("old", _SECOND), ("new", _SECOND)]

    async def look() -> str:
        answer, description = answers.pop(0)
        server.becomes(description)
        return answer

    assert await server.primary().answer(look) == "new"
    assert len(server.proofs) == 2


async def test_what_has_no_elections_is_proved_too_and_stays_so() -> None:
    for kind in ("Single", "Sharded", "LoadBalanced"):
        server = Server(described(("a", "Mongos", None), kind=kind))
        primary = server.primary()

        assert [await primary.verified_term() for _ in range(2)] == [(), ()]
        assert len(server.proofs) == 1


async def test_without_a_primary_a_proof_is_tried_until_there_is_one() -> None:
    server = Server(_NONE)
    server.before_a_proof.append(lambda: server.becomes(_FIRST))

    assert await server.primary().verified_term() == ("a", 1)


async def test_a_proof_that_fails_is_unavailable_with_its_reason() -> None:
    server = Server()

    def fail() -> None:
        raise OperationFailure("words", 13)

    server.before_a_proof.append(fail)
    primary = server.primary()

    with pytest.raises(StoreUnavailable) as failed:
        await primary.verified_term()

    assert failed.value.reason == "OperationFailure 13"
    assert await primary.verified_term() == ("a", 1)


async def test_a_proof_has_a_deadline_of_its_own_and_not_that_of_the_first_caller() -> None:
    server, left = Server(), list[float | None]()
    server.before_a_proof.append(lambda: left.append(pymongo._csot.remaining()))

    with pymongo.timeout(100):
        await server.primary(seconds=1_000).verified_term()

    (seconds,) = left
    assert seconds is not None
    assert seconds > 300


async def test_a_caller_that_goes_away_ends_no_proof_of_others() -> None:
    server = Server()
    primary = server.primary()
    first, second = (asyncio.ensure_future(primary.verified_term()) for _ in range(2))
    await asyncio.sleep(0)

    first.cancel()

    assert await second == ("a", 1)
    assert len(server.proofs) == 1


@pytest.mark.parametrize("error", [AutoReconnect("lost"), ExecutionTimeout("late", 50)])
async def test_a_read_is_tried_again_once(error: Exception) -> None:
    primary = Server().primary()

    assert await primary.answer(failing(error)) == "found"
    with pytest.raises(StoreUnavailable):
        await primary.answer(failing(error, error))


async def test_the_first_try_of_a_read_has_half_of_the_time_and_the_second_what_is_left() -> None:
    given: list[float] = []

    async def look() -> object:
        left = pymongo._csot.remaining()
        assert left is not None
        given.append(left)
        raise AutoReconnect("lost")

    with pytest.raises(StoreUnavailable):
        await Server().primary(seconds=1_000).answer(look)

    first, second = given
    assert first <= 500 < second <= 1_000


async def test_a_read_that_the_server_refuses_is_not_tried_again() -> None:
    with pytest.raises(StoreUnavailable) as failed:
        await Server().primary().answer(failing(OperationFailure("words", 13)))

    assert failed.value.reason == "OperationFailure 13"


class Pool:
    """The connections to a server."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def ready(self) -> None:
        self.calls.append("ready")

    def reset(self, *, interrupt_connections: bool) -> None:
        self.calls.append(interrupt_connections)


class Client:
    """A client of two servers."""

    def __init__(self, description: SimpleNamespace) -> None:
        self.topology_description = description
        self.pools = {"a": Pool(), "b": Pool()}
        servers = {name: SimpleNamespace(pool=pool) for name, pool in self.pools.items()}
        self._topology = SimpleNamespace(_servers=servers)

    def calls(self) -> dict[str, list[object]]:
        return {name: pool.calls for name, pool in self.pools.items()}


def observing(client: Client) -> FormerPrimaries:
    former = FormerPrimaries()
    former.observe(client)  # type: ignore[arg-type]
    return former


def beat(former: FormerPrimaries) -> None:
    former.started(SimpleNamespace())  # type: ignore[arg-type]


def test_what_waits_for_a_former_primary_is_interrupted_once() -> None:
    client = Client(_SECOND)
    former = observing(client)

    beat(former)
    beat(former)

    assert client.calls() == {"a": [True], "b": ["ready"]}


def test_each_new_primary_interrupts_what_waits_for_the_one_before() -> None:
    client = Client(_FIRST)
    former = observing(client)

    beat(former)
    client.topology_description = _SECOND
    beat(former)

    assert client.calls() == {"a": ["ready", True], "b": [True, "ready"]}


def test_without_a_primary_nothing_is_interrupted() -> None:
    client = Client(_NONE)

    beat(observing(client))

    assert client.calls() == {"a": [], "b": []}


def test_neither_a_reply_nor_a_silence_interrupts() -> None:
    client = Client(_SECOND)
    former = observing(client)

    former.succeeded(SimpleNamespace())  # type: ignore[arg-type]
    former.failed(SimpleNamespace())  # type: ignore[arg-type]

    assert client.calls() == {"a": [], "b": []}


def test_a_listener_without_a_client_or_with_one_that_is_gone_does_nothing() -> None:
    beat(FormerPrimaries())

    beat(observing(Client(_SECOND)))
