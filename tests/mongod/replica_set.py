"""Replica sets of one and of three members on this machine, and faults to inject."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Self

from pymongo.errors import NotPrimaryError, OperationFailure, PyMongoError

from tests.mongod.server import PATIENCE_SECONDS, SET_NAME, Mongod, eventually
from tests.mongodb_proxy import Proxy

_SETTINGS = {
    "electionTimeoutMillis": 1000,
    "heartbeatIntervalMillis": 200,
    "heartbeatTimeoutSecs": 1,
}
SHORTER_THAN_AN_ELECTION_SECONDS = 1.5
_STEP_DOWN_SECONDS = 10
_CATCH_UP_SECONDS = 5
_LONGER_THAN_A_TEST_SECONDS = 60
_STUCK_SECONDS = 90.0
"""A member on a busy machine catches up sooner, or has no source that it accepts."""


class ReplicaSet:
    """A writable replica set; a context manager that deletes its data at the end."""

    def __init__(self, folder: Path, *, size: int = 1) -> None:
        self.folder = folder
        self.members = [Mongod(folder / f"member-{number}") for number in range(size)]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def addresses(self) -> Sequence[str]:
        """Host and port of each member, as clients and the other members know it."""
        return [member.address for member in self.members]

    def url(self, database: str = "") -> str:
        """The URL for a client, with the database to use."""
        return f"mongodb://{','.join(self.addresses)}/{database}?replicaSet={SET_NAME}"

    def start(self) -> None:
        """Start the members and initiate the set; return when all of them replicate."""
        self._start(self.members)
        members = [
            {"_id": number, "host": address} for number, address in enumerate(self.addresses)
        ]
        configuration = {"_id": SET_NAME, "members": members, "settings": _SETTINGS}
        self.members[0].command("replSetInitiate", configuration)
        self.settle()

    def close(self) -> None:
        """Kill the remaining processes and delete their data."""
        for member in self.members:
            if member.is_running:
                member.kill()
        shutil.rmtree(self.folder)

    def primary(self) -> Mongod:
        """Return the member that accepts writes, once there is one."""
        return eventually(lambda: self._claimant(None))

    def step_down(self) -> Mongod:
        """Make the primary step down; return the member that was elected instead."""
        former = self.primary()
        elected = eventually(lambda: self._successor(former))
        former.command("replSetFreeze", 0)  # the same member may be elected again at once
        return elected

    @contextmanager
    def led_by(self, heir: Mongod) -> Iterator[None]:
        """Make a secondary the primary, as known to all; none replaces it until the end."""
        others = [member for member in self.members if member is not heir]
        heir.command("replSetStepUp")
        for other in others:
            eventually(partial(_frozen, other, _LONGER_THAN_A_TEST_SECONDS))
        try:
            yield
        finally:
            for other in others:
                other.command("replSetFreeze", 0)

    def kill_primary(self) -> Mongod:
        """Kill the primary and return it; ``primary`` waits for the next one."""
        former = self.primary()
        former.kill()
        return former

    def pause_primary(self) -> Mongod:
        """Pause the primary and return it; ``primary`` waits for the next one."""
        former = self.primary()
        former.pause()
        return former

    def restore(self, *, stuck_after: float = _STUCK_SECONDS) -> None:
        """Resume paused members and start dead ones; return when all members replicate.

        After losses in quick succession, a member may refuse each source that it could catch up
        from, for good. One that has not caught up after ``stuck_after`` seconds is emptied, and
        copies another.
        """
        for member in self.members:
            if member.is_running:
                member.resume()
        self._start([member for member in self.members if not member.is_running])
        try:
            self.settle(seconds=stuck_after)
        except TimeoutError:
            self._empty_stuck_member()
            self.settle()

    def settle(self, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Return when a write has reached every member that is awake, and a majority of all."""
        try:
            eventually(self._settled, seconds)
        except TimeoutError:
            states = ", ".join(f"{member.address} {_state(member)}" for member in self.members)
            raise TimeoutError(f"the members do not settle: {states}") from None

    def _empty_stuck_member(self) -> None:
        """Let the member that is furthest behind copy another; the others are a majority."""
        primary = self.primary()
        others = [member for member in self.members if member is not primary]
        status = primary.command("replSetGetStatus")
        times = {item["name"]: item["optime"]["ts"] for item in status["members"]}
        stuck = min(others, key=lambda member: times[member.address])
        stuck.kill()
        stuck.delete_data()
        stuck.start()

    def _start(self, members: Sequence[Mongod]) -> None:
        with ThreadPoolExecutor(len(self.members)) as threads:
            list(threads.map(Mongod.start, members))

    def _settled(self) -> bool | None:
        awake = [member for member in self.members if member.is_awake]
        majority = len(self.members) // 2 + 1
        concern = {"w": max(len(awake), majority), "j": True, "wtimeout": 5000}
        try:
            noted = self.primary().command("appendOplogNote", data={}, writeConcern=concern)
            replies = [member.hello() for member in awake]
        except PyMongoError:  # an election came in between
            return None
        if "writeConcernError" in noted:  # the driver does not raise this error here
            return None
        return (
            all(document["isWritablePrimary"] or document["secondary"] for document in replies)
            or None
        )

    def _successor(self, former: Mongod) -> Mongod | None:
        # on a slow machine it may step down on its own in the meantime
        with suppress(NotPrimaryError):
            seconds = {"secondaryCatchUpPeriodSecs": _CATCH_UP_SECONDS}
            former.command("replSetStepDown", _STEP_DOWN_SECONDS, **seconds)
        return self._claimant(former)

    def _claimant(self, former: Mongod | None) -> Mongod | None:
        claims = []
        for member in self.members:
            if member is former or not member.is_awake:
                continue
            try:
                reply = member.hello()
            except PyMongoError:  # it may close connections while its state changes
                continue
            if reply["isWritablePrimary"]:
                claims.append((reply["electionId"], member))
        # A member that was cut off may not know yet that another was elected after it.
        return max(claims, key=lambda claim: claim[0])[1] if claims else None


def _frozen(member: Mongod, seconds: int) -> bool | None:
    """Keep a member from seeking election for a while; None if it still believes to be elected."""
    try:
        member.command("replSetFreeze", seconds)
    except OperationFailure:
        return None
    return True


def _state(member: Mongod) -> str:
    """Return what a member reports of its state, for diagnostics."""
    if not member.is_awake:
        return "is asleep"
    try:
        status = member.command("replSetGetStatus")
    except PyMongoError as error:
        return type(error).__name__
    entry = {item["name"]: item for item in status["members"]}[member.address]
    return f"{entry['stateStr']} at {entry['optime']}"


class ProxiedSet(ReplicaSet):
    """A set of one that clients only reach through a proxy: the set itself names its address."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (member,) = self.members
        self.proxy = Proxy(member.port)

    @property
    def addresses(self) -> Sequence[str]:
        return [self.proxy.address]

    def start(self) -> None:
        self.proxy.start()
        super().start()

    def close(self) -> None:
        super().close()
        self.proxy.close()

    def restore(self, *, stuck_after: float = _STUCK_SECONDS) -> None:
        self.proxy.heal()  # first: a member that starts looks itself up by its address
        super().restore(stuck_after=stuck_after)
