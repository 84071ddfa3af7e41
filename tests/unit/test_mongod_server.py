"""Servers and replica sets for the tests start, fail and recover as documented."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient, WriteConcern
from pymongo.errors import OperationFailure

from fhirpub.runtime.clock import now_ms
from tests.mongod.replica_set import ReplicaSet
from tests.mongod.server import eventually
from tests.mongod.server_logs import story
from tests.ports import is_refused
from tests.rounds import ONLY_FULL

_SAFE = WriteConcern(w="majority", j=True)
_ABANDON = """
import os, sys
from pathlib import Path
from tests.mongod.server import Mongod
server = Mongod(Path(sys.argv[1]))
server.start()
print(server.port, flush=True)
os.kill(os.getpid(), 9)
"""


def insert(client: MongoClient[dict[str, Any]], key: str) -> None:
    client["test"].get_collection("kept", write_concern=_SAFE).insert_one({"_id": key})


def kept(client: MongoClient[dict[str, Any]]) -> list[str]:
    return [document["_id"] for document in client["test"]["kept"].find(sort=[("_id", 1)])]


def test_a_database_of_ones_own_takes_a_write_of_a_majority_with_journal(mongodb_url: str) -> None:
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        database = client.get_default_database()

        done = database.get_collection("x", write_concern=_SAFE).insert_one({"_id": 1})

        assert done.acknowledged
        assert database.name.startswith("test_")


def test_a_fail_point_holds_for_its_block(replica_set: ReplicaSet) -> None:
    primary = replica_set.primary()

    with (
        primary.failing(failCommands=["ping"], errorCode=2),
        pytest.raises(OperationFailure) as error,
    ):
        primary.command("ping")

    assert error.value.code == 2
    assert primary.command("ping")["ok"] == 1


def test_a_step_down_yields_another_primary_within_seconds(set_of_three: ReplicaSet) -> None:
    former = set_of_three.primary()
    begun = time.monotonic()

    elected = set_of_three.step_down()

    assert elected is not former
    assert former.hello()["secondary"]
    assert time.monotonic() - begun < 10


def test_a_set_reports_which_member_took_over_since_a_moment(set_of_three: ReplicaSet) -> None:
    begun = now_ms()
    set_of_three.kill_primary()
    elected = set_of_three.primary()

    def transitions() -> list[str] | None:
        lines = story(set_of_three.members, since=begun).splitlines()
        return [name for name in lines if "Transition to primary complete" in name] or None

    (line,) = eventually(transitions)
    assert line.split()[1] == str(elected.port)


@ONLY_FULL
def test_a_set_can_step_down_again_and_again(set_of_three: ReplicaSet) -> None:
    primaries = [set_of_three.primary(), *(set_of_three.step_down() for _ in range(5))]

    assert all(one is not next_one for one, next_one in pairwise(primaries))


@ONLY_FULL
def test_what_was_acknowledged_outlives_a_killed_primary(set_of_three: ReplicaSet) -> None:
    with MongoClient[dict[str, Any]](set_of_three.url()) as client:
        insert(client, "a")
        killed = set_of_three.kill_primary()
        insert(client, "b")
        set_of_three.restore()

        assert killed.is_awake
        assert kept(killed.client) == ["a", "b"]


@ONLY_FULL
def test_a_paused_primary_is_replaced_and_gives_way_when_it_goes_on(
    set_of_three: ReplicaSet,
) -> None:
    paused = set_of_three.pause_primary()

    elected = set_of_three.primary()

    assert elected is not paused
    set_of_three.restore()
    eventually(lambda: paused.hello()["secondary"] or None)


@ONLY_FULL
def test_a_member_that_cannot_catch_up_copies_another(set_of_three: ReplicaSet) -> None:
    primary = set_of_three.primary()
    stuck = next(member for member in set_of_three.members if member is not primary)
    former = stuck.pid
    stuck.command("configureFailPoint", "rsSyncApplyStop", mode="alwaysOn")

    set_of_three.restore(stuck_after=1)

    assert stuck.pid != former
    assert {member.is_running for member in set_of_three.members} == {True}


def test_a_set_of_one_keeps_its_data_over_a_stop_and_a_kill(tmp_path: Path) -> None:
    with ReplicaSet(tmp_path / "set") as alone:
        (member,) = alone.members
        insert(member.client, "a")
        member.kill()
        alone.restore()
        insert(member.client, "b")
        member.stop()
        alone.restore()

        assert kept(member.client) == ["a", "b"]

    assert not list(tmp_path.iterdir())


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    alone = ReplicaSet(tmp_path / "set")
    (tmp_path / "set" / "member-0" / "data" / "mongod.lock").mkdir(parents=True)

    with pytest.raises(RuntimeError, match=r"(?s)did not start:.*mongod\.lock"):
        alone.members[0].start()

    assert not alone.members[0].is_running


def test_a_server_does_not_outlive_tests_that_were_killed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _ABANDON, str(tmp_path)]

    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.returncode == -signal.SIGKILL, done.stderr
    eventually(lambda: not (tmp_path / "data").exists() or None)
    eventually(lambda: is_refused(int(done.stdout)) or None)
