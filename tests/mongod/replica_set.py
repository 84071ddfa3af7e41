"""Replica sets of one and of three members on this machine, and what can befall them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Self

from pymongo.errors import NotPrimaryError, OperationFailure, PyMongoError

from tests.mongod.server import SET_NAME, Mongod, eventually
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


class ReplicaSet:
    """A replica set that writes; use it as a context manager, its data end with it."""

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
        """The address for a client, with the database to use."""
        return f"mongodb://{','.join(self.addresses)}/{database}?replicaSet={SET_NAME}"

    def start(self) -> None:
        """Start the members and make them a set; return when all of them replicate."""
        self._start(self.members)
        members = [
            {"_id": number, "host": address} for number, address in enumerate(self.addresses)
        ]
        configuration = {"_id": SET_NAME, "members": members, "settings": _SETTINGS}
        self.members[0].command("replSetInitiate", configuration)
        self.settle()

    def close(self) -> None:
        """Kill what is left of it and delete its data."""
        for member in self.members:
            if member.is_running:
                member.kill()
        shutil.rmtree(self.folder)

    def primary(self) -> Mongod:
        """Return the member that takes writes, once there is one."""
        return eventually(lambda: self._claimant(None))

    def step_down(self) -> Mongod:
        """Make the primary hand over; return the member that was elected instead."""
        former = self.primary()
        elected = eventually(lambda: self._successor(former))
        former.command("replSetFreeze", 0)  # it may be elected again at once
        return elected

    @contextmanager
    def led_by(self, heir: Mongod) -> Iterator[None]:
        """Make a secondary the primary, as all know; none takes over from it until the end."""
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

    def restore(self) -> None:
        """Resume the paused and start the dead; return when all members replicate."""
        for member in self.members:
            if member.is_running:
                member.resume()
        self._start([member for member in self.members if not member.is_running])
        self.settle()

    def settle(self) -> None:
        """Return when a write has reached every member that is awake, and a majority of all."""
        try:
            eventually(self._settled)
        except TimeoutError:
            states = ", ".join(f"{member.address} {_state(member)}" for member in self.members)
            raise TimeoutError(f"the members do not settle: {states}") from None

    def _start(self, members: Sequence[Mongod]) -> None:
        with ThreadPoolExecutor(len(self.members)) as threads:
            list(threads.map(Mongod.start, members))

    def _settled(self) -> bool | None:
        awake = [member for member in self.members if member.is_awake]
        majority = len(self.members) // 2 + 1
        concern = {"w": max(len(awake), majority), "j": True, "wtimeout": 5000}
        try:
            noted = self.primary().command("appendOplogNote", data={}, writeConcern=concern)
            said = [member.hello() for member in awake]
        except PyMongoError:  # an election came in between
            return None
        if "writeConcernError" in noted:  # which the driver does not raise here
            return None
        return (
            all(document["isWritablePrimary"] or document["secondary"] for document in said)
            or None
        )

    def _successor(self, former: Mongod) -> Mongod | None:
        with suppress(NotPrimaryError):  # on a slow machine it steps down of itself, meanwhile
            seconds = {"secondaryCatchUpPeriodSecs": _CATCH_UP_SECONDS}
            former.command("replSetStepDown", _STEP_DOWN_SECONDS, **seconds)
        return self._claimant(former)

    def _claimant(self, former: Mongod | None) -> Mongod | None:
        claims = []
        for member in self.members:
            if member is former or not member.is_awake:
                continue
            try:
                said = member.hello()
            except PyMongoError:  # it may close connections while it changes its state
                continue
            if said["isWritablePrimary"]:
                claims.append((said["electionId"], member))
        # One that was cut off may not know yet that another was elected after it.
        return max(claims, key=lambda claim: claim[0])[1] if claims else None


def _frozen(member: Mongod, seconds: int) -> bool | None:
    """Let a member seek no election for a while; None if it still believes to be elected."""
    try:
        member.command("replSetFreeze", seconds)
    except OperationFailure:
        return None
    return True


def _state(member: Mongod) -> str:
    """Return what a member says of its state, for people."""
    if not member.is_awake:
        return "is asleep"
    try:
        status = member.command("replSetGetStatus")
    except PyMongoError as error:
        return type(error).__name__
    told = {item["name"]: item for item in status["members"]}[member.address]
    return f"{told['stateStr']} at {told['optime']}"


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

    def restore(self) -> None:
        self.proxy.heal()  # first: a member that starts looks itself up by its address
        super().restore()
