"""Primaries of a replica set come and go: clients see a delay or a 503, and nothing is lost.

With FHIRPUB_TEST_FULL set, there are more failovers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.monitoring import CommandListener, CommandSucceededEvent
from pymongo.read_concern import ReadConcern

from fhirpub.app.stores import OpenStore, open_store
from fhirpub.config.loader import variable
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb.primary import FormerPrimaries, Primary
from fhirpub.storage.mongodb.store import from_url
from fhirpub.storage.store import Store
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import RunningService
from fhirpub.testing.store_contract import LAB, a_version
from tests.faults.broken_stores import AcknowledgesBeforeAMajority, opening
from tests.faults.histories import (
    Client,
    assert_right,
    everything_wrong,
    look_again,
    of_lab,
    record,
)
from tests.faults.linearizability import Outcome, Patch, Register, Registered, Updated
from tests.faults.load import check_store
from tests.faults.nemesis import failovers
from tests.faults.wire import Connection
from tests.mongod.replica_set import SHORTER_THAN_AN_ELECTION_SECONDS, ReplicaSet
from tests.mongod.server import Mongod, eventually

pytestmark = pytest.mark.slow

_LONGER_THAN_ANY_ELECTION_SECONDS = 20.0
"""On a busy machine an election takes long, and so does the first write after it."""

_FAR_AWAY_SECONDS = 120.0
"""Without an interruption, half of this deadline is spent on a primary that is silent."""

_FAILOVERS = (
    {"step_downs": 5, "kills": 5, "pauses": 2}
    if variable("FHIRPUB_TEST_FULL")
    else {"step_downs": 1, "kills": 1, "pauses": 1}
)

_ATTEMPTS = 3
"""On a busy machine a primary may be lost when no request is in progress."""

LosePrimary = Callable[[ReplicaSet], Mongod]

_LOSSES = [ReplicaSet.step_down, ReplicaSet.kill_primary, ReplicaSet.pause_primary]
_SUDDEN_LOSSES = [
    ReplicaSet.kill_primary,
    *([ReplicaSet.pause_primary] if variable("FHIRPUB_TEST_FULL") else []),
]


@pytest.fixture
def failover_url(set_of_three: ReplicaSet, request: pytest.FixtureRequest) -> str:
    """A database of one test on the set of three."""
    return set_of_three.url(f"t{abs(hash(request.node.name))}")


@pytest.fixture
def two_workers(tmp_path: Path, failover_url: str) -> Iterator[ServiceProcess]:
    storage = {"url": failover_url, "deadline_seconds": SHORTER_THAN_AN_ELECTION_SECONDS}
    with ServiceProcess(tmp_path, workers=2, settings={"storage": storage}) as process:
        yield process


@pytest.fixture
async def store(failover_url: str) -> AsyncIterator[Store]:
    store = from_url(
        failover_url, deadline_seconds=SHORTER_THAN_AN_ELECTION_SECONDS, production=True
    )
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
async def patient_store(failover_url: str) -> AsyncIterator[Store]:
    """A store that could wait for a silent primary for a minute, as could its driver."""
    url = f"{failover_url}&connectTimeoutMS=60000"
    store = from_url(url, deadline_seconds=_FAR_AWAY_SECONDS, production=True)
    await store.start()
    yield store
    await store.stop()


async def test_every_history_under_failovers_is_linearizable(
    two_workers: ServiceProcess, set_of_three: ReplicaSet, seed: int, tmp_path: Path
) -> None:
    for attempt in range(_ATTEMPTS):
        lab = two_workers.integrator()
        histories = await of_lab(lab, seed=seed + attempt)
        nemesis = failovers(set_of_three, Random(seed + attempt), **_FAILOVERS)

        await record([two_workers.base_url], lab, histories, nemesis=nemesis)

        await assert_right(histories, two_workers.config, tmp_path)
        check_store(two_workers.config.storage.url)
        assert len(histories) > 25 * sum(_FAILOVERS.values())
        if any(
            operation.outcome is None for every in histories.of.values() for operation in every
        ):
            return
    pytest.fail("the primaries were lost when nothing was under way")


@pytest.mark.parametrize("lose_primary", _LOSSES)
async def test_within_the_deadline_a_failover_is_only_a_delay(
    lose_primary: LosePrimary, set_of_three: ReplicaSet, failover_url: str, tmp_path: Path
) -> None:
    config = Config(storage=StorageConfig(deadline_seconds=_LONGER_THAN_ANY_ELECTION_SECONDS))
    # the lookup and the insert have a deadline each
    patience = 3 * _LONGER_THAN_ANY_ELECTION_SECONDS
    with RunningService(tmp_path, config=config, store_url=failover_url) as service:
        histories = await of_lab(lab := service.integrator(), seed=0)
        async with Connection(service.base_url, token=lab.token, seconds=patience) as connection:
            client = Client(histories, connection, 0)
            losing = asyncio.create_task(asyncio.to_thread(lose_primary, set_of_three))
            outcomes: list[Outcome | None] = []
            while not losing.done() or len(outcomes) < 10:
                number = len(outcomes)
                call = Register(f"content {number}")
                outcomes.append(await client.call(f"report {number}", call))
            await losing

    assert outcomes == [Registered(f"content {number}") for number in range(len(outcomes))]


async def test_what_waits_for_a_primary_that_froze_is_answered_by_its_successor(
    patient_store: Store, set_of_three: ReplicaSet
) -> None:
    store = patient_store
    known, new = a_version(), replace(a_version(), id="new", value="new")
    await store.add(LAB, known)

    await asyncio.to_thread(set_of_three.pause_primary)
    adding = asyncio.create_task(store.add(LAB, new))
    reading = asyncio.create_task(store.latest(LAB, known.id))
    await asyncio.to_thread(set_of_three.primary)
    async with asyncio.timeout(_FAR_AWAY_SECONDS / 5):
        added, found = await asyncio.gather(adding, reading)
    await asyncio.to_thread(set_of_three.restore)

    assert added
    assert found == known
    assert await store.latest(LAB, new.id) == new
    assert not await store.add(LAB, new)


async def test_a_read_of_several_batches_that_an_election_interrupts_starts_again(
    set_of_three: ReplicaSet, failover_url: str
) -> None:
    former = FormerPrimaries()
    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(
        failover_url, event_listeners=[former]
    )
    former.observe(client.delegate)
    database = client.get_default_database()
    await database["numbers"].insert_many({"_id": number} for number in range(10))
    primary = Primary(database, certain=ReadConcern("linearizable"), seconds=_FAR_AWAY_SECONDS)
    looks: list[list[int]] = []

    async def look() -> list[int]:
        cursor = database["numbers"].find({}, sort=[("_id", 1)], batch_size=2)
        looks.append([document["_id"] for document in await cursor.to_list(2)])
        if len(looks) == 1:
            await asyncio.to_thread(set_of_three.pause_primary)
        return looks[-1] + [document["_id"] for document in await cursor.to_list(None)]

    assert await primary.answer(look) == list(range(10))
    assert len(looks) > 1
    client.close()


@contextmanager
def secondaries_behind(members: ReplicaSet) -> Iterator[None]:
    """Stop the secondaries' replication while they can still vote."""
    primary, point = members.primary(), "stopReplProducer"
    secondaries = [member for member in members.members if member is not primary]
    with ExitStack() as stack:
        before = [stack.enter_context(member.failing(point)) for member in secondaries]
        # What a secondary is fetching already it takes, and only then looks at the fail point.
        for member, times in zip(secondaries, before, strict=True):
            member.wait_for(point, times=times + 1)
        yield


async def outcomes_and_complaints(
    members: ReplicaSet, lose_primary: LosePrimary, service: RunningService
) -> tuple[list[Outcome | None], str]:
    """Send writes to the primary alone and lose it; return the complaints of clients and audit."""
    lab = service.integrator()
    histories = await of_lab(lab, seed=0)
    async with Connection(service.base_url, token=lab.token) as connection:
        client = Client(histories, connection, 0)
        await client.call("known", Register("first"))
        await asyncio.to_thread(members.settle)
        with secondaries_behind(members):
            outcomes = [
                await client.call("new", Register("lost")),
                await client.call("known", Patch("lost too", 1)),
            ]
            await asyncio.to_thread(lose_primary, members)
        await asyncio.to_thread(members.primary)  # another takes over before this one returns
        await asyncio.to_thread(members.restore)
        await look_again(client, histories)
    wrong = await everything_wrong(histories, service.config)
    return outcomes, "\n".join(name for every in wrong.values() for name in every)


@pytest.fixture(params=_SUDDEN_LOSSES)
def lose_primary(request: pytest.FixtureRequest) -> LosePrimary:
    chosen: LosePrimary = request.param
    return chosen


@contextmanager
def service_of(folder: Path, url: str, open_store: OpenStore) -> Iterator[RunningService]:
    config = Config(storage=StorageConfig(deadline_seconds=SHORTER_THAN_AN_ELECTION_SECONDS))
    with RunningService(folder, config=config, store_url=url, open_store=open_store) as service:
        yield service


async def test_what_only_the_lost_primary_had_was_never_acknowledged(
    lose_primary: LosePrimary, set_of_three: ReplicaSet, failover_url: str, tmp_path: Path
) -> None:
    with service_of(tmp_path, failover_url, open_store) as service:
        outcomes, wrong = await outcomes_and_complaints(set_of_three, lose_primary, service)

    assert outcomes == [None, None]
    assert wrong == ""


async def test_a_version_that_only_the_lost_primary_had_was_not_added(
    lose_primary: LosePrimary, store: Store, set_of_three: ReplicaSet
) -> None:
    version = a_version()  # without documents, because their own write would fail first

    with secondaries_behind(set_of_three):
        with pytest.raises(StoreUnavailable):
            await store.add(LAB, version)
        await asyncio.to_thread(lose_primary, set_of_three)
    await asyncio.to_thread(set_of_three.primary)
    await asyncio.to_thread(set_of_three.restore)

    assert await store.latest(LAB, version.id) is None
    assert await store.add(LAB, version)


async def test_a_new_primary_is_not_believed_before_it_knows_what_a_majority_has(
    store: Store, set_of_three: ReplicaSet
) -> None:
    first = a_version()
    await store.add(LAB, first)
    await asyncio.to_thread(set_of_three.settle)
    heir = next(member for member in set_of_three.members if member.hello()["secondary"])

    with heir.failing("disableSnapshotting"):  # it has the second version, but does not show it
        assert await store.add(LAB, replace(first, version=2))
        await asyncio.to_thread(set_of_three.settle)
        with set_of_three.led_by(heir), pytest.raises(StoreUnavailable):
            await store.latest(LAB, first.id)

    latest = await store.latest(LAB, first.id)
    assert latest is not None
    assert latest.version == 2


async def test_what_is_found_while_another_takes_over_is_asked_for_again(
    set_of_three: ReplicaSet, failover_url: str
) -> None:
    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(failover_url)
    database = client.get_default_database()
    primary = Primary(database, certain=ReadConcern("linearizable"), seconds=10.0)
    asked = []

    async def look() -> int:
        asked.append(before := client.delegate.primary)
        if len(asked) == 1:
            await asyncio.to_thread(set_of_three.step_down)
            while client.delegate.primary in {before, None}:
                await asyncio.sleep(0.01)
        return len(asked)

    assert await primary.answer(look) == 2
    client.close()


async def test_what_a_former_primary_proved_is_no_proof_for_its_successor(
    set_of_three: ReplicaSet, failover_url: str
) -> None:
    proved: list[tuple[str, int | None]] = []

    class TakenOver(CommandListener):
        """Lets another take over once the first primary has answered."""

        def started(self, event: object) -> None:
            """Do nothing."""

        failed = started

        def succeeded(self, event: CommandSucceededEvent) -> None:
            proved.append(event.connection_id)
            if len(proved) == 1:
                set_of_three.step_down()
                eventually(lambda: None if client.delegate.primary in {*proved, None} else True)

    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(
        failover_url, event_listeners=[TakenOver()]
    )
    database = client.get_default_database()

    await Primary(database, certain=ReadConcern("linearizable"), seconds=10.0).verified_term()

    successor, asked = client.delegate.primary, proved[1:]
    client.close()
    assert asked == [successor]


async def test_what_was_acknowledged_before_a_majority_had_it_is_missed_after_a_failover(
    lose_primary: LosePrimary, set_of_three: ReplicaSet, failover_url: str, tmp_path: Path
) -> None:
    open_store = opening(AcknowledgesBeforeAMajority)
    with service_of(tmp_path, failover_url, open_store) as service:
        outcomes, wrong = await outcomes_and_complaints(set_of_three, lose_primary, service)

    assert [type(outcome) for outcome in outcomes] == [Registered, Updated]
    assert "Version 1 was reported as lost, and is" in wrong
    assert "Version 2 was reported as lost too, and is nothing" in wrong
