"""Whether the servers of a MongoDB store keep what they acknowledge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from fhirpub.errors import ConfigurationError
from fhirpub.runtime.logging import logger

Client = AsyncIOMotorClient[dict[str, Any]]

_MONGODB_5_0, _MONGODB_6_0 = 13, 17
"""Wire versions: 5.0 has snapshots outside transactions, 6.0 look-ups across shards."""
_UNAUTHORIZED = 13
_MAX_SKEW_MS = 5_000

_log = logger()


@dataclass(frozen=True, slots=True)
class Concerns:
    """The read concerns that these servers have for two special cases.

    ``certain``: nothing is read that may be undone, nothing by a server that was deposed.
    ``one_moment``: all that one command reads is of one moment.
    """

    certain: ReadConcern
    one_moment: ReadConcern


_REPLICA_SET = Concerns(ReadConcern("linearizable"), ReadConcern("snapshot"))
# A router picks the moment of a snapshot by its own idea of the time, which may be older than
# the last commit. To be stale is worse than to have page and total of different moments.
_CLUSTER = Concerns(ReadConcern("linearizable"), ReadConcern("majority"))
_STANDALONE = Concerns(ReadConcern("local"), ReadConcern("local"))


async def examine(client: Client, *, production: bool, now: int) -> Concerns:
    """Return the concerns to use, or raise ConfigurationError for servers that are unsafe."""
    hello = await client.admin.command("hello")
    _refuse_old(hello)
    await _refuse_without_read_concern(client)
    skew = skew_ms(hello, now)
    if abs(skew) >= _MAX_SKEW_MS:
        # No refusal: every time in the store is of our own clocks, and between them an hour may
        # lie before a document could be swept too early.
        _log.warning("the clock differs from the store's", milliseconds=skew)
    if hello.get("msg") == "isdbgrid":  # its shards' own settings cannot be seen from here
        return _CLUSTER
    if "setName" not in hello:
        if production:
            raise ConfigurationError(
                "[storage] url: the server is no member of a replica set; in production that "
                "cannot be: a single server may lose what it acknowledged"
            )
        _log.warning("the store is a single server, without a replica set")
        return _STANDALONE
    await _refuse_unsafe_set(client)
    return _REPLICA_SET


def _refuse_old(hello: Mapping[str, Any]) -> None:
    sharded = hello.get("msg") == "isdbgrid"
    if hello.get("maxWireVersion", 0) < (_MONGODB_6_0 if sharded else _MONGODB_5_0):
        least = "6.0 for a sharded cluster" if sharded else "5.0"
        raise ConfigurationError(f"[storage] url: the server is older than MongoDB {least}")


async def _refuse_without_read_concern(client: Client) -> None:
    """Refuse servers that speak MongoDB's language but ignore how durable an answer must be."""
    question = {"find": "store", "limit": 1, "readConcern": {"level": "no-such-level"}}
    try:
        await client.get_default_database().command(question)
    except OperationFailure as error:
        if error.code == _UNAUTHORIZED:
            raise
        return
    raise ConfigurationError(
        "[storage] url: the server ignores read concerns, so that what it acknowledges may be lost"
    )


def skew_ms(hello: Mapping[str, Any], now: int) -> int:
    """Return by how much a moment is ahead of the server that greeted."""
    theirs: datetime = hello["localTime"].replace(tzinfo=UTC)
    return now - int(theirs.timestamp() * 1000)


async def _refuse_unsafe_set(client: Client) -> None:
    try:
        answer = await client.admin.command("replSetGetConfig")
        defaults = await client.admin.command("getDefaultRWConcern")
    except OperationFailure as error:
        if error.code != _UNAUTHORIZED:
            raise
        _log.warning("the replica set's configuration cannot be checked: the role is missing")
        return
    check_set(answer["config"], defaults)


def check_set(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if a set may lose what a majority acknowledged.

    ``config`` is that of ``replSetGetConfig``, ``defaults`` the answer to ``getDefaultRWConcern``.
    """
    if not config.get("writeConcernMajorityJournalDefault", True):
        raise ConfigurationError(
            "[storage] url: the replica set has writeConcernMajorityJournalDefault = false: "
            "a majority may acknowledge what is not in its journals"
        )
    arbiter = any(member.get("arbiterOnly") for member in config["members"])
    if arbiter and defaults.get("defaultWriteConcernSource") != "global":
        raise ConfigurationError(
            "[storage] url: the replica set has an arbiter and no default write concern; set one "
            "with setDefaultRWConcern, or replace the arbiter by a member with data"
        )
