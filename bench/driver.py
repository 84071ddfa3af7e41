"""The speed of MongoDB's driver alone on the same server: a command for each document, no HTTP.

It inserts and finds a copy of what the service has stored of a report, its document included, in a
collection of its own. The URL is read from standard input, as it may contain a password. The
output is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import gc
import json
import random
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter, process_time
from typing import Any

from bson.objectid import ObjectId
from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorCollection
from pymongo import WriteConcern
from pymongo.read_concern import ReadConcern

from bench.connection import Tally
from bench.load import Result, result_of

Records = AsyncIOMotorCollection[dict[str, Any]]
Operation = Callable[[], Awaitable[object]]

DONE = 200
_DURABLE = WriteConcern("majority", j=True)
_COMMITTED = ReadConcern("majority")


async def run(url: str, operation: str, *, seconds: float, tasks: int, stock: int) -> Result:
    """Repeat one operation in a number of tasks, with the concerns that the service uses."""
    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(url)
    database = client.get_default_database()
    document = await database["version"].find_one({"version": 1}) or {}
    records: Records = database.get_collection(
        "driver", write_concern=_DURABLE, read_concern=_COMMITTED
    )
    prepared = _inserting if operation == "insert" else _finding
    try:
        repeated = await prepared(records, document, stock)
        return await _drive(repeated, seconds=seconds, tasks=tasks)
    finally:
        await records.drop()
        client.close()


async def _inserting(records: Records, document: dict[str, Any], _stock: int) -> Operation:
    async def insert() -> None:
        await records.insert_one({**document, "_id": ObjectId()})

    return insert


async def _finding(records: Records, document: dict[str, Any], stock: int) -> Operation:
    ids = [ObjectId() for _ in range(stock)]
    await records.insert_many([{**document, "_id": name} for name in ids])

    async def find() -> None:
        await records.find_one({"_id": random.choice(ids)})

    return find


async def _drive(repeated: Operation, *, seconds: float, tasks: int) -> Result:
    gc.collect()
    tally = Tally(status=DONE, seconds=seconds, most=sys.maxsize)

    async def repeat() -> None:
        while tally.begin():
            since = perf_counter()
            await repeated()
            tally.answered(DONE, since, b"")

    await asyncio.gather(*(repeat() for _ in range(tasks)))
    return result_of(tally, busy_seconds=process_time() - tally.started_cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operation", choices=("insert", "find"), required=True)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--tasks", type=int, default=32)
    parser.add_argument("--stock", type=int, default=2_000, help="documents to find")
    arguments = vars(parser.parse_args())
    result = asyncio.run(run(sys.stdin.readline().strip(), **arguments))
    print(json.dumps(dataclasses.asdict(result)))


if __name__ == "__main__":
    main()
