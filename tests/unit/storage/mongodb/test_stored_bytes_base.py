"""What was stored before a database counted its bytes is counted once, up to one moment."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from bson.objectid import ObjectId
from motor.motor_asyncio import AsyncIOMotorClient
from structlog.testing import capture_logs

from fhirpub.storage.mongodb import schema, stored_bytes
from fhirpub.storage.mongodb.stored_bytes import count_base
from fhirpub.testing.samples import LAB, OTHER
from tests.storage.mongodb.helpers import COMMANDS, Database

NOW = 1_800_000_000_999
BEFORE = 1_800_000_001_000
"""The full second behind it."""


@pytest.fixture
async def motor(url: str) -> AsyncIterator[schema.Database]:
    """The database of a test, as the store uses it."""
    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(url)
    yield client.get_default_database()
    client.close()


@pytest.fixture
def _far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine that shows the time of another zone."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def version_id(second: int, number: int = 0) -> ObjectId:
    """Return the id of a version that was written in a second."""
    begun = ObjectId.from_datetime(datetime.fromtimestamp(second, UTC)).binary
    return ObjectId(begun[:4] + number.to_bytes(8, "big"))


def a_record(tenant: str, size: int, *, at: int, number: int = 1) -> dict[str, Any]:
    """Return a version with so many bytes."""
    return {"_id": version_id(at // 1000, number), "tenant": tenant, "body": bytes(size)}


def a_document(tenant: str, size: int, *, added: int) -> dict[str, Any]:
    """Return a document that was added at a time."""
    return {"_id": f"{tenant}/{added}/{size}", "tenant": tenant, "size": size, "added": added}


def bases(database: Database) -> dict[str, int]:
    found = database[schema.STORED_BYTES].find({})
    return {document["_id"]: document["base"] for document in found if "base" in document}


@pytest.mark.parametrize(
    ("now", "before"), [(NOW, BEFORE), (BEFORE - 1_000, BEFORE), (BEFORE, BEFORE + 1_000)]
)
async def test_the_moment_is_the_next_full_second(
    motor: schema.Database, database: Database, now: int, before: int
) -> None:
    await count_base(motor, now=now)

    marker = database[schema.STORE].find_one({"_id": schema.STORED_BYTES})
    assert marker == {"_id": schema.STORED_BYTES, "before": before, "counted": True}


async def test_versions_count_that_were_written_before_the_moment(
    motor: schema.Database, database: Database
) -> None:
    database[schema.VERSION].insert_many(
        [
            a_record(LAB, 1, at=0),
            a_record(LAB, 20, at=BEFORE - 1_000),
            a_record(LAB, 300, at=BEFORE, number=0),
            a_record(LAB, 4_000, at=BEFORE + 5_000),
        ]
    )

    await count_base(motor, now=NOW)

    assert bases(database) == {LAB: 21}


@pytest.mark.usefixtures("_far_east")
async def test_the_zone_of_the_machine_moves_no_version_behind_the_moment(
    motor: schema.Database, database: Database
) -> None:
    database[schema.VERSION].insert_many(
        [a_record(LAB, 1, at=BEFORE - 1_000), a_record(LAB, 20, at=BEFORE + 3_600_000)]
    )

    await count_base(motor, now=NOW)

    assert bases(database) == {LAB: 1}


async def test_documents_count_that_were_added_before_the_moment(
    motor: schema.Database, database: Database
) -> None:
    times = (0, BEFORE - 1, BEFORE, BEFORE + 1)
    database[schema.BLOB].insert_many(
        [a_document(LAB, 10**place, added=time) for place, time in enumerate(times)]
    )

    await count_base(motor, now=NOW)

    assert bases(database) == {LAB: 11}


async def test_versions_and_documents_of_a_tenant_count_together(
    motor: schema.Database, database: Database
) -> None:
    database[schema.VERSION].insert_many(
        [a_record(LAB, 1, at=0), a_record(OTHER, 20, at=0, number=2)]
    )
    database[schema.BLOB].insert_many(
        [a_document(LAB, 300, added=1), a_document(OTHER, 4_000, added=1)]
    )

    await count_base(motor, now=NOW)

    assert bases(database) == {LAB: 301, OTHER: 4_020}


async def test_the_parts_of_a_version_count_each(
    motor: schema.Database, database: Database
) -> None:
    whole = {
        **dict.fromkeys(("events", "body", "response", "parts"), bytes(10)),
        "members": [{"body": bytes(100)}, {"body": bytes(100)}],
        "attached": [{"data": bytes(1_000)}],
    }
    database[schema.VERSION].insert_one({**a_record(LAB, 0, at=0), **whole})

    await count_base(motor, now=NOW)

    assert bases(database) == {LAB: 40 + 2 * (100 + len(b"[]")) + 1_000}


async def test_a_moment_that_was_chosen_before_stays(
    motor: schema.Database, database: Database
) -> None:
    marker = {"_id": schema.STORED_BYTES, "before": 5_000, "counted": False}
    database[schema.STORE].insert_many([{"_id": schema.SCHEMA, "before": 1}, marker])
    database[schema.BLOB].insert_many(
        [a_document(LAB, 1, added=4_999), a_document(LAB, 20, added=5_000)]
    )

    await count_base(motor, now=NOW)

    assert bases(database) == {LAB: 1}
    found = database[schema.STORE].find_one({"_id": schema.STORED_BYTES})
    assert found == {**marker, "counted": True}


async def test_what_was_counted_is_not_looked_at_again(
    motor: schema.Database, database: Database
) -> None:
    await count_base(motor, now=NOW)
    database[schema.BLOB].insert_one(a_document(LAB, 1, added=1))

    with COMMANDS.recorded() as sent, capture_logs() as lines:
        await count_base(motor, now=NOW + 5_000)

    assert [command["command"] for command in sent] == ["update", "find"]
    assert bases(database) == {}
    assert lines == []


async def test_a_base_that_was_written_before_stays_beside_what_was_added(
    motor: schema.Database, database: Database
) -> None:
    kept = {"_id": LAB, "base": 7, "added": 3}
    database[schema.STORED_BYTES].insert_many([kept, {"_id": OTHER, "added": 4}])
    database[schema.BLOB].insert_many(
        [a_document(LAB, 100, added=1), a_document(OTHER, 200, added=1)]
    )

    await count_base(motor, now=NOW)

    assert database[schema.STORED_BYTES].find_one({"_id": LAB}) == kept
    assert database[schema.STORED_BYTES].find_one({"_id": OTHER}) == {
        "_id": OTHER,
        "added": 4,
        "base": 200,
    }


async def test_a_count_is_logged_with_the_number_of_tenants(
    motor: schema.Database, database: Database
) -> None:
    database[schema.BLOB].insert_many(
        [a_document(LAB, 1, added=1), a_document(LAB, 2, added=1), a_document(OTHER, 3, added=1)]
    )

    with capture_logs() as lines:
        await count_base(motor, now=NOW)

    assert lines == [{"event": "stored bytes counted", "tenants": 2, "log_level": "info"}]


async def test_an_empty_database_is_counted_without_a_word(motor: schema.Database) -> None:
    with capture_logs() as lines:
        await count_base(motor, now=NOW)

    assert lines == []


@pytest.mark.parametrize("count", [0, 1, 3, 4, 6])
async def test_what_is_counted_in_steps_is_all_of_it(
    motor: schema.Database,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    monkeypatch.setattr(stored_bytes, "_CHUNK", 3)
    documents = [a_document((LAB, OTHER)[n % 2], 10**n, added=n) for n in range(count)]
    excluded = [a_document(LAB, 9, added=BEFORE + n) for n in range(4)]
    database[schema.BLOB].insert_many([*documents, *excluded])

    with COMMANDS.recorded() as sent:
        await count_base(motor, now=NOW)

    expected: dict[str, int] = {}
    for document in documents:
        expected[document["tenant"]] = expected.get(document["tenant"], 0) + document["size"]
    assert bases(database) == expected
    steps = [one for one in sent if one["command"] == "aggregate" and one["aggregate"] == "blob"]
    assert len(steps) == -(-count // 3) + 1


async def test_versions_that_are_counted_in_steps_add_up(
    motor: schema.Database, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_bytes, "_CHUNK", 1)
    versions = [a_record(LAB, 10**number, at=0, number=number) for number in range(3)]
    database[schema.VERSION].insert_many(versions)

    await count_base(motor, now=NOW)

    assert bases(database) == {LAB: 111}
