"""Which deliveries are deleted, and which of each endpoint stays."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.removal import delivery_sweep
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.testing.contracts.webhooks.records import a_delivery, an_endpoint, sequences
from fhirpub.testing.samples import LAB, new_id

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT = 1_700_000_000_000


@pytest_asyncio.fixture(loop_scope="module")
async def store(shared: MongoStore) -> MongoStore:
    """A store without endpoints and deliveries."""
    for name in (schema.ENDPOINT, schema.DELIVERY):
        await shared._collection(name).delete_many({})
    return shared


async def endpoint(store: MongoStore, state: Any = "active", **changes: Any) -> Endpoint:
    made = an_endpoint(state=state, **changes)
    await store.put_endpoint(LAB, made)
    return made


async def put(store: MongoStore, of: str, count: int, **changes: Any) -> None:
    """Store deliveries, and one behind them that waits."""
    deliveries = [a_delivery(of, number, **changes) for number in range(1, count + 1)]
    await store.put_deliveries([*deliveries, a_delivery(of, count + 1, created=AT, due=AT)])


async def sweep(store: MongoStore, **changes: int) -> int:
    """Sweep what is given, and nothing else."""
    return await store.sweep_deliveries(**{"delivered": 0, "dead": 0, "open_": 0, **changes})


@pytest.mark.parametrize(
    ("state", "given", "swept"),
    [
        ("delivered", {"delivered": AT + 1}, 2),
        ("delivered", {"delivered": AT}, 0),
        ("delivered", {"dead": AT + 1, "open_": AT + 1}, 0),
        ("dead", {"dead": AT + 1}, 2),
        ("dead", {"dead": AT}, 0),
        ("dead", {"delivered": AT + 1, "open_": AT + 1}, 0),
    ],
)
async def test_what_ended_before_the_time_of_its_state_is_swept(
    store: MongoStore, state: str, given: dict[str, int], swept: int
) -> None:
    of = (await endpoint(store)).id
    await put(store, of, 2, state=state, ended=AT, created=AT - 9)

    assert await sweep(store, **given) == swept
    assert await sequences(store, of) == [1, 2, 3][swept:]


@pytest.mark.parametrize(
    ("created", "due", "is_swept"),
    [(AT - 1, AT - 1, True), (AT, AT - 1, False), (AT - 1, AT, False)],
)
async def test_what_waits_for_an_endpoint_is_swept_if_it_was_queued_and_due_before(
    store: MongoStore, created: int, due: int, *, is_swept: bool
) -> None:
    of = (await endpoint(store, "paused")).id
    await put(store, of, 1, created=created, due=due, state="retrying")

    assert await sweep(store, open_=AT) == int(is_swept)


@pytest.mark.parametrize(
    ("state", "swept"),
    [("active", 0), ("unverified", 2), ("paused", 2), ("disabled", 2), ("deleted", 3)],
)
async def test_what_waits_is_swept_of_endpoints_that_are_not_active(
    store: MongoStore, state: str, swept: int
) -> None:
    of = (await endpoint(store, state)).id
    await put(store, of, 2, created=AT, due=AT)

    assert await sweep(store, open_=AT + 1) == swept
    assert await sequences(store, of) == [1, 2, 3][swept:]


async def test_the_newest_of_each_endpoint_stays_though_it_has_ended(store: MongoStore) -> None:
    ids = [(await endpoint(store)).id, new_id()]  # one is unknown
    for of in ids:
        await store.put_deliveries(
            [a_delivery(of, number, state="dead", ended=AT) for number in (1, 2, 3)]
        )

    assert await sweep(store, dead=AT + 1) == 4

    assert [await sequences(store, of) for of in ids] == [[3], [3]]


async def test_of_a_deleted_endpoint_the_newest_goes_too_and_of_others_it_stays(
    store: MongoStore,
) -> None:
    ids = [(await endpoint(store, state)).id for state in ("deleted", "disabled")]
    for of in ids:
        await store.put_deliveries(
            [a_delivery(of, number, state="delivered", ended=AT) for number in (1, 2)]
        )

    assert await sweep(store, delivered=AT + 1) == 3

    assert [await sequences(store, of) for of in ids] == [[], [2]]


async def test_all_batches_of_all_states_and_endpoints_are_swept_and_counted(
    store: MongoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_sweep, "_SWEEP_BATCH_SIZE", 2)
    ids = [(await endpoint(store, state)).id for state in ("paused", "disabled", "active")]
    for of in ids:
        states: list[dict[str, Any]] = [
            *[{"state": "delivered", "ended": AT}] * 3,
            *[{"state": "dead", "ended": AT}] * 3,
            *[{"state": "pending"}] * 3,
        ]
        await store.put_deliveries(
            [
                a_delivery(of, number, created=AT, due=AT, **changes)
                for number, changes in enumerate(states, start=1)
            ]
        )

    assert await sweep(store, delivered=AT + 1, dead=AT + 1, open_=AT + 1) == 8 + 8 + 6

    assert [await sequences(store, of) for of in ids] == [[9], [9], [7, 8, 9]]
