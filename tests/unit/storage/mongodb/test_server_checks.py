"""Which servers are refused at the start, and how the others are read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from pymongo.errors import OperationFailure
from structlog.testing import capture_logs

from fhirpub.errors import ConfigurationError
from fhirpub.storage.mongodb.server_checks import Client, Concerns, check_set, examine

NOW = 1_767_268_800_000
MEMBER = {"localTime": datetime(2026, 1, 1, 12, tzinfo=UTC), "maxWireVersion": 13, "setName": "s"}
ROUTER = {"localTime": MEMBER["localTime"], "maxWireVersion": 17, "msg": "isdbgrid"}
SINGLE = {"localTime": MEMBER["localTime"], "maxWireVersion": 13}
SAFE: dict[str, Any] = {"members": [{"_id": 0}]}
WITH_ARBITER: dict[str, Any] = {"members": [{"_id": 0}, {"_id": 1, "arbiterOnly": True}]}

NOT_ALLOWED = OperationFailure("not allowed", 13)
UNKNOWN_LEVEL = OperationFailure("no such level", 9)


class Answers:
    """Answers of servers in states that no server of the tests is in, such as a router's."""

    def __init__(self, hello: Mapping[str, Any], **answers: Any) -> None:
        usual = {
            "find": UNKNOWN_LEVEL,
            "replSetGetConfig": {"config": SAFE},
            "getDefaultRWConcern": {},
        }
        self._answers = {**usual, "hello": hello, **answers}
        self.asked: list[Any] = []
        self.admin = self

    def get_default_database(self) -> Answers:
        return self

    async def command(self, question: str | Mapping[str, Any]) -> Any:
        self.asked.append(question)
        name = question if isinstance(question, str) else next(iter(question))
        answer = self._answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def concerns_of(answers: Answers, *, production: bool = True, now: int = NOW) -> Concerns:
    """Return the concerns for servers that answer so."""
    return await examine(cast("Client", answers), production=production, now=now)


def levels(concerns: Concerns) -> tuple[str | None, str | None]:
    """Return the levels of both concerns."""
    return concerns.certain.level, concerns.one_moment.level


async def test_a_replica_set_is_read_by_its_snapshots() -> None:
    assert levels(await concerns_of(Answers(MEMBER))) == ("linearizable", "snapshot")


async def test_a_cluster_is_read_as_of_its_last_commits() -> None:
    answers = Answers(ROUTER)

    assert levels(await concerns_of(answers)) == ("linearizable", "majority")
    assert "replSetGetConfig" not in answers.asked


async def test_a_single_server_is_read_as_it_is() -> None:
    with capture_logs() as lines:
        found = await concerns_of(Answers(SINGLE), production=False)

    assert levels(found) == ("local", "local")
    warning = "the store is a single server, without a replica set"
    assert lines == [{"event": warning, "log_level": "warning"}]


async def test_a_single_server_is_refused_in_production() -> None:
    with pytest.raises(ConfigurationError) as refused:
        await concerns_of(Answers(SINGLE))

    assert str(refused.value) == (
        "[storage] url: the server is no member of a replica set; in production that "
        "cannot be: a single server may lose what it acknowledged"
    )


@pytest.mark.parametrize(
    ("hello", "least"),
    [
        ({**MEMBER, "maxWireVersion": 12}, "5.0"),
        ({**ROUTER, "maxWireVersion": 16}, "6.0 for a sharded cluster"),
        ({"setName": "s"}, "5.0"),
    ],
)
async def test_a_server_of_the_version_before_is_refused(
    hello: dict[str, Any], least: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        await concerns_of(Answers(hello))

    text = f"[storage] url: the server is older than MongoDB {least}"
    assert str(refused.value) == text


async def test_a_server_is_asked_for_a_read_concern_that_there_is_not() -> None:
    answers = Answers(MEMBER)

    await concerns_of(answers)

    level = {"level": "no-such-level"}
    assert answers.asked[1] == {"find": "store", "limit": 1, "readConcern": level}


async def test_a_server_that_knows_each_read_concern_is_refused() -> None:
    with pytest.raises(ConfigurationError) as refused:
        await concerns_of(Answers(MEMBER, find={"ok": 1}))

    assert str(refused.value) == (
        "[storage] url: the server ignores read concerns, so that what it acknowledges may be lost"
    )


async def test_a_user_who_may_not_read_is_not_taken_for_an_answer() -> None:
    with pytest.raises(OperationFailure) as raised:
        await concerns_of(Answers(MEMBER, find=NOT_ALLOWED))

    assert raised.value is NOT_ALLOWED


@pytest.mark.parametrize("command", ["replSetGetConfig", "getDefaultRWConcern"])
async def test_a_user_who_may_not_see_the_configuration_is_warned(command: str) -> None:
    with capture_logs() as lines:
        found = await concerns_of(Answers(MEMBER, **{command: NOT_ALLOWED}))

    assert levels(found) == ("linearizable", "snapshot")
    warning = "the replica set's configuration cannot be checked: the role is missing"
    assert lines == [{"event": warning, "log_level": "warning"}]


async def test_a_configuration_that_cannot_be_read_otherwise_is_an_error() -> None:
    failure = OperationFailure("shutting down", 91)

    with pytest.raises(OperationFailure) as raised:
        await concerns_of(Answers(MEMBER, replSetGetConfig=failure))

    assert raised.value is failure


async def test_the_configuration_of_a_set_is_checked() -> None:
    with pytest.raises(ConfigurationError):
        await concerns_of(Answers(MEMBER, replSetGetConfig={"config": WITH_ARBITER}))


async def test_the_default_concern_of_a_set_is_checked() -> None:
    defaults = {"defaultWriteConcernSource": "global"}

    found = await concerns_of(
        Answers(MEMBER, replSetGetConfig={"config": WITH_ARBITER}, getDefaultRWConcern=defaults)
    )

    assert levels(found) == ("linearizable", "snapshot")


@pytest.mark.parametrize("ahead", [5_000, -5_000])
async def test_clocks_that_differ_by_five_seconds_are_logged(ahead: int) -> None:
    with capture_logs() as lines:
        await concerns_of(Answers(MEMBER), now=NOW + ahead)

    event = "the clock differs from the store's"
    assert lines == [{"event": event, "log_level": "warning", "milliseconds": ahead}]


@pytest.mark.parametrize("ahead", [4_999, -4_999])
async def test_clocks_that_differ_by_less_are_not_logged(ahead: int) -> None:
    with capture_logs() as lines:
        await concerns_of(Answers(MEMBER), now=NOW + ahead)

    assert lines == []


def test_a_set_that_does_not_state_how_it_acknowledges_does_so_with_its_journals() -> None:
    check_set(SAFE, {})
    check_set({**SAFE, "writeConcernMajorityJournalDefault": True}, {})


def test_a_set_that_acknowledges_without_its_journals_is_refused() -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_set({**SAFE, "writeConcernMajorityJournalDefault": False}, {})

    assert str(refused.value) == (
        "[storage] url: the replica set has writeConcernMajorityJournalDefault = false: "
        "a majority may acknowledge what is not in its journals"
    )


@pytest.mark.parametrize("defaults", [{}, {"defaultWriteConcernSource": "implicit"}])
def test_a_set_with_an_arbiter_and_without_a_concern_of_its_own_is_refused(
    defaults: dict[str, Any],
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_set(WITH_ARBITER, defaults)

    assert str(refused.value) == (
        "[storage] url: the replica set has an arbiter and no default write concern; set one "
        "with setDefaultRWConcern, or replace the arbiter by a member with data"
    )


def test_a_set_without_an_arbiter_needs_no_concern_of_its_own() -> None:
    check_set({"members": [{"_id": 0, "arbiterOnly": False}]}, {})
